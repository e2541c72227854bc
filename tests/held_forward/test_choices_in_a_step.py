"""Choices, maxima and steps that jump, in a step of the user's own."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import unrolled
from layered_steps import SERIES, D, model_with
from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.increments.increments import SecantIncrements, ShareIncrements


def inside(z):
    return (z > -1) & (z < 1)


def written(z):
    result = z * 1
    return result.masked_fill(~(z > 0), 0.0)


PAIRS = {
    "leaky relu": (lambda z: torch.where(z > 0, z, 0.1 * z), lambda z: F.leaky_relu(z, 0.1)),
    "relu by a mask": (lambda z: z * (z > 0), torch.relu),
    "relu by a number": (lambda z: z * z.gt(0).to(z.dtype), torch.relu),
    "relu by a fill": (written, torch.relu),
    "relu by an answer in the type": (lambda z: z * (z > 0).to(z), torch.relu),
    "relu by an answer in the same type": (lambda z: z * (z > 0).type_as(z), torch.relu),
    "relu beside answers": (lambda z: torch.cat((z.relu(), torch.ones_like(z) > 0), 1)[:, :6], torch.relu),
    "shift by answers in the type": (lambda z: z.relu() + torch.ones(6).bool().to(z), lambda z: z.relu() + 1.0),
    "shift by answers beside": (
        lambda z: z.relu() + torch.cat((z, torch.ones_like(z).bool()), 1)[:, 6:],
        lambda z: z.relu() + 1.0,
    ),
    "clip": (lambda z: torch.where(z > 1, 1.0, torch.where(z < -1, -1.0, z)), F.hardtanh),
    "clip by both": (lambda z: torch.where(inside(z), z, torch.sign(z)), F.hardtanh),
    "clip by either": (lambda z: torch.where((z >= 1) | (z <= -1), torch.sign(z), z), F.hardtanh),
    "clip by one of two": (lambda z: torch.where((z > -1) ^ (z > 1), z, torch.sign(z)), F.hardtanh),
    "relu by an answer beside a flag": (lambda z: z * ((z > 0) | False), torch.relu),
    "relu by an answer turned by a flag": (lambda z: z * ((z <= 0) ^ True), torch.relu),
    "relu by a number as an answer": (lambda z: z * z.relu().bool(), torch.relu),
    "relu by a number as an answer of a type": (lambda z: z * z.relu().to(torch.bool), torch.relu),
    "relu by a whole number of a type": (lambda z: z * (z > 0).to(torch.long), torch.relu),
    "relu by a whole number": (lambda z: z * (z > 0).long(), torch.relu),
    "relu by a whole number that is compared": (lambda z: torch.where((z > 0).int() == 1, z, 0.0), torch.relu),
    "relu by the rest": (lambda z: z * (1 - (z <= 0).short()), torch.relu),
    "relu by no number": (lambda z: z.masked_fill(torch.logical_not(z.relu()), 0.0), torch.relu),
    "relu by two numbers": (lambda z: z * torch.logical_and(z.relu(), z.new_tensor(2.0)), torch.relu),
    "clip to moving bounds": (
        lambda z: torch.clamp(z, min=0.1 * z.roll(1, -1), max=z.mean(-1, keepdim=True)),
        lambda z: torch.minimum(torch.maximum(z, 0.1 * z.roll(1, -1)), z.mean(-1, keepdim=True)),
    ),
    "clip to one that moves and a number": (
        lambda z: torch.clamp(z, z.new_tensor(-0.2), z.mean(-1, keepdim=True)),
        lambda z: torch.minimum(z.clamp_min(-0.2), z.mean(-1, keepdim=True)),
    ),
    "clip from below": (lambda z: z.clamp_min(z.roll(1, -1)), lambda z: torch.maximum(z, z.roll(1, -1))),
    "clip to tensors": (
        lambda z: z.clamp(torch.full_like(z, -0.2), torch.full_like(z, 0.3)),
        lambda z: F.hardtanh(z, -0.2, 0.3),
    ),
    "clip to a tensor and a number": (
        lambda z: z.clamp(torch.tensor(-0.2, dtype=z.dtype), 0.3),
        lambda z: F.hardtanh(z, -0.2, 0.3),
    ),
    "clip of a constant": (
        lambda z: z + torch.clamp(z.new_tensor(0.2), max=z),
        lambda z: z + torch.minimum(z.new_tensor(0.2), z),
    ),
    "elu": (lambda z: torch.where(z > 0, z, z.clamp(max=0).exp() - 1), F.elu),
    "root": (lambda z: torch.where(z > 0, z.sqrt(), 0.0), lambda z: z.relu().sqrt()),
    "maxout": (
        lambda z: z.reshape(-1, 3, 2).amax(-1).repeat(1, 2),
        lambda z: torch.maximum(z[:, ::2], z[:, 1::2]).repeat(1, 2),
    ),
    "max": (lambda z: z - z[:, :2].max(1, keepdim=True)[0], lambda z: z - torch.maximum(z[:, :1], z[:, 1:2])),
    "min": (lambda z: z - z[:, :2].min(1).values[:, None], lambda z: z - torch.minimum(z[:, :1], z[:, 1:2])),
    "softmax": (
        lambda z: (z - z.amax(1, keepdim=True)).exp() / (z - z.amax(1, keepdim=True)).exp().sum(1, keepdim=True),
        None,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_a_choice_has_the_n_grams_of_the_function_that_it_is(name):
    function, same = PAIRS[name]
    found = unrolled.explain(model_with(function), SERIES[:1], target=1)
    assert abs(found.ledger.remainder) < 1e-12
    assert not any("quadrature" in note for note in found.notes)
    if same is not None:
        expected = unrolled.explain(model_with(same), SERIES[:1], target=1)
        torch.testing.assert_close(found.triangle.contributions, expected.triangle.contributions, rtol=0, atol=1e-12)
    if name == "root":  # of the branch that is not chosen torch's gradient is no number
        return
    zero = unrolled.explain(model_with(function), SERIES[:1], target=1, expansion="zero")
    assert abs(zero.ledger.remainder) > 1e-4


JUMPS = {
    "floor": lambda z: torch.floor(3 * z),
    "round": lambda z: torch.round(3 * z) / 3,
    "sign": lambda z: torch.sign(z),
    "trunc": lambda z: 3 * z.trunc(),
    "long": lambda z: (3 * z).long().to(z.dtype) / 3,
    "long by its type": lambda z: (3 * z).to(torch.int64).to(z.dtype) / 3,
    "long by another's type": lambda z: (3 * z).type_as(torch.ones(1, dtype=torch.int64)).to(z.dtype) / 3,
    "spike": lambda z: z - (z > 0.3).to(z.dtype),
    "threshold": lambda z: torch.where(z > 0.3, z, -1.0),
    "remainder": lambda z: z % 0.5,
    "fmod": lambda z: torch.fmod(z, 0.5),
    "rounded quotient": lambda z: torch.div(z, 0.5, rounding_mode="floor"),
    "straight through": lambda z: z.sigmoid() + (z.sigmoid().round() - z.sigmoid()).detach(),
}


NOT_DIFFERENTIATED = {
    "heaviside": lambda z: z - torch.heaviside(z - 0.3, z.new_tensor(0.5)),
    "floor division": lambda z: z // 0.5,
    "floor division of a number": lambda z: 2.0 // (z.square() + 0.3),
}


@pytest.mark.quick_diagonal(2)  # quick: every step
@pytest.mark.parametrize("name", NOT_DIFFERENTIATED)
@pytest.mark.parametrize("expansion", ["secant", "shares"])
def test_a_step_that_torch_does_not_differentiate_is_exact_where_no_derivative_is_asked_for(name, expansion):
    model = model_with(NOT_DIFFERENTIATED[name])
    found = unrolled.explain(model, SERIES[:1], target=1, expansion=expansion)
    assert abs(found.ledger.remainder) < 1e-11
    assert not any("quadrature" in note for note in found.notes)
    for other in ("path", "zero"):
        with pytest.raises(UnsupportedOperationError, match="torch does not differentiate it"):
            unrolled.explain(model, SERIES[:1], target=1, expansion=other)


def test_what_a_jump_is_at_zero_may_not_move():
    model = model_with(lambda z: torch.heaviside(z[:, :1] - 0.3, z))
    with pytest.raises(UnsupportedOperationError, match="heaviside"):
        unrolled.explain(model, SERIES[:1], target=1)


@pytest.mark.slow
def test_the_bits_of_a_count_have_no_line():
    for name, function in (
        ("and", lambda z: z * ((z > 0).sum(1, keepdim=True) & 1)),
        ("invert", lambda z: z * ~(z > 0).long()),
    ):
        found = unrolled.explain(model_with(function), SERIES[:1], target=1)
        assert any(f"the state changes the bits that {name} reads" in note for note in found.notes)
    is_odd = model_with(lambda z: z * ((z > 0).sum(1, keepdim=True) % 2))  # the control: a jump that has a line
    found = unrolled.explain(is_odd, SERIES[:1], target=1)
    assert abs(found.ledger.remainder) < 1e-12
    assert not found.notes


@pytest.mark.slow
def test_a_whole_number_that_says_where_to_write_has_no_line():
    model = model_with(lambda z: z.scatter(1, (z[:, :1] > 0).long(), 0.0))
    found = unrolled.explain(model, SERIES[:1], target=1)
    assert any("the state changes which entries scatter reads or writes" in note for note in found.notes)


@pytest.mark.parametrize("name", JUMPS)
def test_a_step_that_jumps_is_exact(name):
    model = model_with(JUMPS[name])
    for expansion in ("secant", "shares"):
        found = unrolled.explain(model, SERIES[:1, :3], target=1, expansion=expansion)
        assert abs(found.ledger.remainder) < 1e-11
        assert found.residual < 1e-11
        assert not any("quadrature" in note for note in found.notes)
    zero = [abs(each.ledger.remainder) for each in unrolled.explain_batch(model, SERIES, target=1, expansion="zero")]
    assert max(zero) > 1e-3


def entries(seed=0, shape=(3, 5)):
    return torch.randn(2, *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("sign", [1, -1])
def test_an_entry_has_the_part_of_the_line_along_which_it_is_the_largest(sign):
    base, end = entries()
    mode = SecantIncrements()
    found = []
    for kept in torch.eye(5, dtype=torch.float64):
        with mode:
            block = mode.follow(kept * (end - base), base, end)
            found.append(block.amax(1) if sign > 0 else block.amin(1))
    places = (torch.arange(20000, dtype=torch.float64) + 0.5)[:, None, None] / 20000
    along = base + places * (end - base)
    winners = F.one_hot((sign * along).argmax(-1), 5).double().mean(0)
    torch.testing.assert_close(torch.stack(found, 1), winners * (end - base), atol=1e-3, rtol=0)
    largest = end.amax(1) - base.amax(1) if sign > 0 else end.amin(1) - base.amin(1)
    torch.testing.assert_close(torch.stack(found, 1).sum(1), largest)
    assert float(((winners > 0.02) & (winners < 0.98)).sum()) > 2  # the control: some are largest for a while


def test_equal_entries_share_a_maximum_and_masked_ones_have_no_part():
    base, end = torch.zeros(1, 4, dtype=torch.float64), torch.tensor([[2.0, 2.0, 1.0, -torch.inf]]).double()
    base[:, 3] = -torch.inf
    for mode in (SecantIncrements(), ShareIncrements()):
        with mode:
            found = mode.follow(torch.tensor([[1.0, 0.0, 5.0, 7.0]]).double(), base, end).amax((0, 1))
        assert float(found) == 0.5


def test_by_shares_the_largest_has_all():
    _, end = entries(1)
    mode = ShareIncrements()
    with mode:
        found = mode.follow(end.clone(), torch.zeros_like(end), end).max(1)
    torch.testing.assert_close(found.values, end.max(1).values)


BY_PLACE = {
    "gather": lambda z: z.gather(1, (z.max(1, keepdim=True).indices + 1) % 5),
    "number": lambda z: z.max(1).indices.to(z.dtype),
    "taken": lambda z: z[z > 0],
    "set": lambda z: torch.zeros_like(z).index_put((z > 0,), z[0, 0]),
}


@pytest.mark.parametrize("name", BY_PLACE)
def test_where_the_state_changes_which_entries_are_read_secant_says_so(name):
    base, end = entries(2, (1, 5))
    mode = SecantIncrements()
    with mode, pytest.raises(UnsupportedOperationError, match=r"the state changes|has no rule"):
        BY_PLACE[name](mode.follow(end - base, base, end))
    same = SecantIncrements()
    if name in ("gather", "taken"):
        with same:  # the control: the same places
            found = BY_PLACE[name](same.follow(0.5 * end, end, 1.5 * end))
        torch.testing.assert_close(found, 0.5 * BY_PLACE[name](end))


def test_n_grams_do_not_depend_on_the_order_of_units():
    def widest(z):
        return z - z.max(1, keepdim=True)[0]

    model, other = model_with(widest), model_with(widest)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    with torch.no_grad():
        cell = other.cell
        for each in (cell.x.weight, cell.x.bias, cell.h.bias):
            each.copy_(each[order])
        cell.h.weight.copy_(cell.h.weight[order][:, order])
        other.head.weight.copy_(other.head.weight[:, order])
    found, expected = (unrolled.explain(each, SERIES[:1], target=1).triangle.contributions for each in (model, other))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    assert len(order) == D


FAR = -1e38
"""From which RWKV begins the running maximum that keeps its exponentials small."""


@pytest.mark.parametrize(("choose", "sign"), [(torch.maximum, 1), (torch.minimum, -1)])
def test_a_maximum_with_a_state_far_away_keeps_the_other_operand(choose, sign):
    base, other = sign * torch.tensor([[3.0, -1.0, 0.5]]).double(), sign * torch.tensor([[1.0, 2.0, 0.5]]).double()
    end, mode = torch.full_like(base, sign * FAR), SecantIncrements()
    with mode:
        found = choose(mode.follow(end - base, base, end), other)
    torch.testing.assert_close(found, choose(end, other) - choose(base, other), rtol=1e-15, atol=0)
    by_halves = 0.5 * (end + other + sign * (end - other).abs())
    assert float((by_halves - choose(end, other)).abs().max()) > 0.1  # the control: this formula loses it


class RunningMaximum(torch.nn.Module):
    """The step of RWKV-4: sums of exponentials less a running maximum."""

    def __init__(self, far):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.keys, self.values = torch.nn.Embedding(9, 4), torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        self.decay, self.head, self.far = torch.nn.Parameter(torch.full((4,), -3.0)), torch.nn.Linear(4, 2), far

    def step(self, x, state):
        above, below, most = state
        k, before = self.keys(x), most - self.decay.exp()
        now = torch.maximum(before, k)
        kept, new = (before - now).exp(), (k - now).exp()
        return kept * above + new * self.values(x), kept * below + new, now

    def forward(self, ids):
        x = self.embed(ids)
        state = x.new_zeros(len(ids), 4), x.new_zeros(len(ids), 4), x.new_full((len(ids), 4), self.far)
        for t in range(ids.shape[1]):
            state = self.step(x[:, t], state)
        return self.head(state[0] / state[1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_running_maximum_from_far_away_has_the_n_grams_of_one_from_nearer(dtype):
    ids, eps = torch.tensor([[1, 2, 3, 4, 5]]), torch.finfo(dtype).eps
    found, near = (
        unrolled.explain(RunningMaximum(far).to(dtype), ids, target=1, rnn=unrolled.as_cell("", method="step"))
        for far in (FAR, -1e4)
    )
    assert abs(found.ledger.remainder) < 20 * eps
    assert found.residual < 20 * eps
    torch.testing.assert_close(found.token_scores, near.token_scores, rtol=0, atol=1000 * eps)
