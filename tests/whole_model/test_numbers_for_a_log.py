"""A model that takes numbers out of torch for a log has the account of the model without it; else it is refused."""

from __future__ import annotations

import copy
import math
import sys

import numpy as np
import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import ParityError, UnsupportedOperationError

IDS = torch.tensor([[1, 4, 2, 7], [3, 3, 5, 0]])


class Model(nn.Module):
    """Reads a recurrent network's last state, and takes numbers of it out of torch."""

    def __init__(self, take=lambda states: states, log=None):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head = nn.Embedding(9, 4), nn.GRU(4, 5, batch_first=True), nn.Linear(5, 3)
        self.scale = nn.Parameter(torch.tensor(1.5))
        self.take, self.to_log, self.log = take, log, []
        self.double()

    def taken(self, states):
        if self.to_log is not None:
            self.log = [*self.log, self.to_log(states)]
        return self.take(states)

    def forward(self, ids):
        states = self.rnn(self.embed(ids))[0].relu()
        return self.head(self.taken(states)[:, -1])


def share_of(states):
    share = torch.sigmoid(states.sum()).item()
    if not 0.0 <= share <= 1.0:
        raise ValueError("no share")
    return share


def doublings(states):
    number, count = states.norm().item(), 0
    while number < 1000.0:
        number, count = 2 * number, count + 1
    return count


def checked(states):
    if not math.isfinite(states.sum().item()):
        raise ValueError("no finite states")


@torch.jit.script
def scripted(h):
    return h * float(h.sum())


@torch.jit.script
def scripted_log(h):
    return float(h.sum())


LOGS = {
    "by a script": scripted_log,
    "item": lambda h: h.norm().item(),
    "float": lambda h: float(h.mean()),
    "numpy": lambda h: h.detach().cpu().numpy(),
    "an array": lambda h: np.asarray(h.detach()),
    "a list": lambda h: h.tolist(),
    "a text": lambda h: f"mean {h.mean():.3f}",
    "printed": print,
    "its text": repr,
    "infinite": lambda h: h.detach().log().tolist(),
    "checked": checked,
    "its logarithm": lambda h: math.log(h.norm().item()),
    "a share": share_of,
    "by doubling": doublings,
    "a deep copy": lambda h: copy.deepcopy({"states": h.detach()}),
}

TEXTS: dict[str, float] = {}


def by_a_cache(h):
    return h * TEXTS.setdefault(str(h), 1.0 + len(TEXTS))


READS = {
    "a factor": lambda h: h * h.norm().item(),
    "by numpy": lambda h: torch.from_numpy(h.detach().numpy() * 2),
    "a list": lambda h: h + torch.tensor(h.tolist(), dtype=h.dtype),
    "rounded": lambda h: h + round(float(h.sum())),
    "a threshold": lambda h: h if h.sum().item() > 2.0 else 2 * h,
    "by a text": lambda h: h * float(f"{h.max():.4f}"),
    "written into": lambda h: np.multiply(h.detach().numpy(), 2, out=h.detach().numpy()) is None or h,
    "by a script": scripted,
    "by a whole text": lambda h: h * len(repr(h.detach()).split("0.0")),
    "by a cache": by_a_cache,
    "a little": lambda h: h + 1e-12 * h.norm().item(),
    "a correlation": lambda h: h * np.corrcoef(h[0, 0].tolist(), h[0, 1].tolist())[0, 1] ** 2,
    "its bounds": lambda h: h.clamp(max=float(h.max())),
}


@pytest.mark.parametrize("name", LOGS)
def test_what_a_log_takes_changes_no_account_and_no_explanation(name):
    model, plain = Model(log=LOGS[name]), Model()
    found, expected = (unrolled.account(each, IDS, target=1) for each in (model, plain))
    assert torch.equal(found.tokens, expected.tokens)
    assert {key: part.tolist() for key, part in found.biases.items()} == {
        key: part.tolist() for key, part in expected.biases.items()
    }
    assert found.closes
    assert found.notes == expected.notes
    assert model.log == []  # as before: the runs leave nothing in it
    for one, other in zip(*(unrolled.explain_batch(each, IDS, target=1) for each in (model, plain)), strict=True):
        assert torch.equal(one.triangle.contributions, other.triangle.contributions)
        assert one.notes == other.notes  # no ray


def until_small(h):
    while h.norm().item() > 1.0:
        h = 0.5 * h
    return h


def ended_by_another(h):
    if bool(h.sum() != h.sum().item()):
        sys.exit("another number")
    return h


READS |= {"a loop that ends by it": until_small, "an exit": ended_by_another}


def test_a_small_output_beside_a_large_one_reads_numbers_too():
    class Two(Model):
        def forward(self, ids):
            large, small = super().forward(ids)
            return torch.stack([1e12 * large, small * (small.norm().item() if self.to_log is None else 2.0)])

    with pytest.raises(UnsupportedOperationError, match="takes numbers out of torch"):
        unrolled.account(Two(), IDS, target=1)
    assert unrolled.account(Two(log=LOGS["item"]), IDS, target=1).closes  # the control


@pytest.mark.parametrize("name", READS)
def test_numbers_that_the_output_reads_are_refused(name):
    with pytest.raises(UnsupportedOperationError, match=r"takes numbers out of torch \(\w+\)"):
        unrolled.account(Model(READS[name]), IDS, target=1)


def test_a_choice_that_all_runs_make_alike_is_held_as_one_of_torch_is():
    def chosen(number):
        return lambda h: h if number(h) > 0.01 else 2 * h

    found, expected = (
        unrolled.account(Model(chosen(number)), IDS, target=1) for number in (lambda h: h.sum().item(), torch.sum)
    )
    assert torch.equal(found.tokens, expected.tokens)


def test_a_model_that_fails_with_all_other_numbers_is_refused():
    """The control is a log that checks a bound."""

    def same(h):
        if bool(h.sum() != h.sum().item()):
            raise ValueError("another number")
        return h

    with pytest.raises(UnsupportedOperationError, match=r"takes numbers out of torch \(item\)") as caught:
        unrolled.account(Model(same), IDS, target=1)
    assert isinstance(caught.value.__cause__, ValueError)
    assert unrolled.account(Model(log=share_of), IDS, target=1).closes


@pytest.mark.parametrize("take", [lambda h: h, ended_by_another])
def test_a_model_that_ends_with_other_numbers_starts_its_next_run_from_its_state(take):
    """Where a held run is refused, a ray runs the model; the control: a model that never ends."""

    class Counts(Model):
        count = 0

        def forward(self, ids):
            self.count += 1
            return self.count * super().forward(ids)

    model = Counts(take)
    found = unrolled.explain_batch(model, IDS, target=1)
    assert model.count == 0
    torch.testing.assert_close(torch.tensor([each.ledger.logit for each in found]).double(), model(IDS)[:, 1])


NUMBERS = {
    "a parameter": (lambda _, model: model.scale.item(), 1.5),
    "made of a parameter": (lambda _, model: (2 * model.scale).item(), 3.0),
    "a buffer": (lambda _, model: model.kept.item(), 0.75),
    "a constant": (lambda *_: torch.linspace(0, 1, 3)[1].item(), 0.5),
    "of ids": (lambda *_: IDS.double().mean().item(), 3.125),
    "what is held": (lambda h, _: (h >= 0).double().mean().item(), 1.0),
}


@pytest.mark.quick_diagonal(2)  # quick: every name, both calls
@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("call", [unrolled.account, unrolled.explain_batch])
def test_a_number_that_carries_no_value_may_be_read_beside_a_log(name, call):
    number, factor = NUMBERS[name]
    model = Model(lambda h: h * number(h, model), log=LOGS["item"])
    model.register_buffer("kept", torch.tensor(0.75))
    found, expected = call(model, IDS, target=1), call(Model(lambda h: h * factor), IDS, target=1)
    if call is unrolled.account:
        torch.testing.assert_close(found.tokens, expected.tokens, rtol=0, atol=1e-15)
    else:
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one.triangle.contributions, other.triangle.contributions, rtol=0, atol=1e-15)
            assert one.notes == other.notes  # no ray


def test_a_place_where_numbers_carry_value_and_others_none_is_one_where_they_do():
    def number(tensor):
        return tensor.norm().item()

    model = Model(lambda h: h * number(h) / number(model.scale * 2))
    with pytest.raises(UnsupportedOperationError, match="takes numbers out of torch"):
        unrolled.account(model, IDS, target=1)


@pytest.mark.parametrize(("end", "held"), [(nn.Identity(), 1), (nn.Softmax(-1), 2)])
def test_two_further_runs_tell_it_once(end, held):
    """A model whose output has to be followed is run held twice."""
    runs = []

    class Counted(Model):
        def forward(self, ids):
            runs.append(1)
            return end(super().forward(ids))

    counts = []
    for log in (None, LOGS["item"]):
        runs.clear()
        unrolled.account(Counted(log=log), IDS, target=1)
        counts.append(len(runs))
    assert counts == [1 + held, 1 + held + 2]


@pytest.mark.parametrize(
    ("call", "numbers"),
    [
        (unrolled.account, lambda found: [found.tokens]),
        (unrolled.explain_batch, lambda found: [each.triangle.contributions for each in found]),
    ],
)
def test_deep_copies_of_tokens_and_of_states_are_what_they_are_copies_of(call, numbers):
    class Copies(Model):
        def forward(self, ids):
            return super().forward(copy.deepcopy(ids))

    found, expected = (call(each, IDS, target=1) for each in (Copies(lambda h: copy.deepcopy(h.detach())), Model()))
    assert all(map(torch.equal, numbers(found), numbers(expected)))


def test_copies_that_share_memory_end_in_no_account_of_another_output():
    """A copy of two tensors of one memory is two tensors of one memory, which a held run does not follow."""

    def last(states, shared):
        whole, part = states.detach(), states.detach()[:, -1:]
        first, second = copy.deepcopy((whole, part)) if shared else (copy.deepcopy(whole), copy.deepcopy(part))
        first.zero_()
        return second

    with pytest.raises(ParityError):
        unrolled.account(Model(lambda h: last(h, shared=True)), IDS, target=1)
    model = Model(lambda h: last(h, shared=False))  # the control
    torch.testing.assert_close(unrolled.account(model, IDS, target=1).output, model(IDS)[:, 1])


def test_an_explanation_by_calls_follows_a_log_as_well():
    class Two(Model):
        def forward(self, ids):
            state = self.rnn(self.embed(ids[:, :2]))[1]
            return self.head(self.rnn(self.embed(ids[:, 2:]), self.taken(state))[0][:, -1])

    for log in (LOGS["item"], LOGS["numpy"]):
        found, expected = (unrolled.explain(Two(log=each), IDS[:1], target=1) for each in (log, None))
        assert torch.equal(found.triangle.contributions, expected.triangle.contributions)
        assert found.notes == expected.notes
    with pytest.raises(UnsupportedOperationError, match="takes numbers out of torch"):
        unrolled.explain(Two(READS["a factor"]), IDS[:1], target=1)


class Total(nn.Module):
    def forward(self, h: torch.Tensor) -> float:
        return float(h.sum())


class Length(nn.Module):
    def forward(self, h: torch.Tensor) -> int:
        return h.shape[1]


def test_a_number_that_a_scripted_module_gives_is_refused():
    """Torch keeps no Python function of it; the control: a number of steps is none that carries value."""
    total, length = torch.jit.script(Total()), torch.jit.script(Length())
    with pytest.raises(UnsupportedOperationError, match="the model calls forward, which torch"):
        unrolled.account(Model(lambda h: h * total(h)), IDS, target=1)
    found, expected = (
        unrolled.account(Model(take), IDS, target=1) for take in (lambda h: h * length(h), lambda h: h * 4)
    )
    assert torch.equal(found.tokens, expected.tokens)
