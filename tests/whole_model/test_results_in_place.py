"""A result that is written into a tensor that was given counts as the same result in a tensor of its own."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from equal_accounts import Read, assert_equal
from unrolled.errors import UnsupportedOperationError
from whole_model_zoo import WORDS, D, E, ids


def product(model, h):
    z = torch.empty(len(h), D, dtype=h.dtype)
    torch.mm(h, model.dense, out=z)
    return z


def repeated(model, h):
    z = torch.zeros_like(h)
    for _ in range(3):
        torch.mm(h, model.dense, out=z)
        h = torch.tanh(z)
    return h


def repeated_freely(model, h):
    for _ in range(3):
        h = torch.tanh(torch.mm(h, model.dense))
    return h


def joined(_, h):
    z = torch.empty(0, dtype=h.dtype)
    torch.cat((h, torch.ones_like(h)), 1, out=z)
    return z


def summed(model, h):
    z = torch.empty_like(h)
    torch.add(h, model.middle.bias, alpha=2.0, out=z)
    return z


def into_a_part(_, h):
    z = torch.ones(len(h), 2 * D, dtype=h.dtype)
    torch.tanh(h, out=z[:, D:])
    return z


def in_a_part(_, h):
    z = torch.ones(len(h), 2 * D, dtype=h.dtype)
    z[:, D:].add_(h)
    return z


def largest(_, h):
    values, places = torch.empty(len(h), dtype=h.dtype), torch.empty(len(h), dtype=torch.int64)
    torch.max(h, 1, out=(values, places))
    return values[:, None] * h.gather(1, places[:, None])


def largest_freely(_, h):
    values, places = h.max(1)
    return values[:, None] * h.gather(1, places[:, None])


def constant(model, h):
    z = torch.empty(D, dtype=h.dtype)
    torch.add(model.middle.bias, model.middle.bias, out=z)
    return h + z


def in_place(*names):
    """Call the operations of these names in place, each with its own arguments."""
    arguments = {"unsqueeze_": (0,), "squeeze_": (0,), "t_": (), "transpose_": (0, 1), "swapaxes_": (0, 1)}

    def read(_, h):
        z = 2.0 * h
        for name in names:
            getattr(z, name)(*arguments[name])
        return (z * torch.tanh(z)).reshape(len(h), -1) if names[-1] == "squeeze_" else (z * torch.tanh(z)).mT

    return read


def of_a_part(_, h):
    z = 2.0 * h
    part = z[:, :4]
    part.t_()
    return part.t() * z[:, 4:]


def of_detached(_, h):
    z = 2.0 * h
    z.detach().t_()
    z.data.unsqueeze_(0)
    return z * torch.tanh(z)


def of_a_detached_constant(model, h):
    model.dense.detach().unsqueeze_(0)
    return torch.mm(h, model.dense)


def held_in_place(name, *arguments):
    """Add what an operation in place makes of value, which is held, and multiply value by it."""

    def read(model, h):
        z = model.middle(h).abs() + 0.5
        getattr(z, name)(*arguments)
        return h + z + model.middle(h) * z

    return read


def held(name, *arguments):
    def read(model, h):
        z = getattr(model.middle(h).abs() + 0.5, name)(*arguments)
        return h + z + model.middle(h) * z

    return read


def held_out(model, h):
    z = model.middle(h).abs() + 0.5
    torch.exp(z, out=z)
    return h + z + model.middle(h) * z


def part_held_in_place(model, h):
    z = model.middle(h)
    z[:, 2:].exp_()
    return z


def part_held(model, h):
    z = model.middle(h)
    return torch.cat((z[:, :2], z[:, 2:].exp()), 1)


def over_a_constant(_, h):
    z = torch.full_like(h, 2.0)
    return h + z.pow_(h)


def emptied(model, h):
    z = model.middle(h)
    return z.zero_().add_(h.exp()) * h


EQUAL = {
    **{
        f"{name}_": (held_in_place(f"{name}_", *arguments), held(name, *arguments))
        for name, arguments in {
            "exp": (),
            "log": (),
            "reciprocal": (),
            "rsqrt": (),
            "pow": (-1,),
            "cumprod": (1,),
        }.items()
    },
    "exp by out= over its operand": (held_out, held("exp")),
    "exp_ of a part": (part_held_in_place, part_held),
    "pow_ of a constant": (over_a_constant, lambda _, h: h + torch.pow(2.0, h)),
    "zero_ and add_": (emptied, lambda _, h: h.exp() * h),
    "mm": (product, lambda model, h: torch.mm(h, model.dense)),
    "a buffer in a loop": (repeated, repeated_freely),
    "cat into nothing": (joined, lambda _, h: torch.cat((h, torch.ones_like(h)), 1)),
    "add": (summed, lambda model, h: h + 2.0 * model.middle.bias),
    "a part": (into_a_part, lambda _, h: torch.cat((torch.ones_like(h), torch.tanh(h)), 1)),
    "a part of a constant, in place": (in_a_part, lambda _, h: torch.cat((torch.ones_like(h), 1.0 + h), 1)),
    "two results": (largest, largest_freely),
    "a result without value": (constant, lambda model, h: h + 2.0 * model.middle.bias),
    "t_": (in_place("t_"), lambda _, h: 2.0 * h * torch.tanh(2.0 * h)),
    "transpose_": (in_place("transpose_"), lambda _, h: 2.0 * h * torch.tanh(2.0 * h)),
    "swapaxes_": (in_place("swapaxes_"), lambda _, h: 2.0 * h * torch.tanh(2.0 * h)),
    "unsqueeze_ and squeeze_": (in_place("unsqueeze_", "squeeze_"), lambda _, h: 2.0 * h * torch.tanh(2.0 * h)),
    "what was detached": (of_detached, lambda _, h: 2.0 * h * torch.tanh(2.0 * h)),
    "a constant that was detached": (of_a_detached_constant, lambda model, h: torch.mm(h, model.dense)),
    "a part of a tensor": (of_a_part, lambda _, h: 2.0 * h[:, :4] * (2.0 * h[:, 4:])),
}


@pytest.mark.parametrize("name", EQUAL)
def test_the_account_is_that_of_the_plain_operation(name):
    assert_equal(*EQUAL[name])


def test_what_is_held_in_place_is_no_value_for_other_operations():
    found = unrolled.account(Read(held_in_place("exp_")), ids(3, 4), target=1)
    assert found.closes
    assert "exp" in found.constants
    with pytest.raises(AssertionError):
        assert_equal(held_in_place("exp_"), held("rsqrt"))


def test_a_result_of_another_value_has_another_account():
    with pytest.raises(AssertionError):
        assert_equal(product, lambda model, h: torch.mm(h, model.dense.T))


def test_an_exponential_of_a_logarithm_that_was_taken_or_re_arranged_in_place_gives_its_value():
    def read(_, h):
        u = (h.abs() + 1.0).log()
        u.t_()
        return u.t().exp()

    def taken_in_place(_, h):
        u = (h.abs() + 1.0).log_()
        u += 1.0
        return u.exp_()

    assert_equal(read, lambda _, h: (h.abs() + 1.0).log().exp())
    assert_equal(read, lambda _, h: h.abs() + 1.0)
    assert_equal(taken_in_place, lambda _, h: (h.abs() + 1.0) * torch.e)


def test_tokens_are_found_behind_a_join_into_a_buffer():
    class Padded(nn.Module):
        def __init__(self, buffer):
            super().__init__()
            torch.manual_seed(0)
            self.embed, self.rnn, self.head = nn.Embedding(WORDS, E), nn.GRU(E, D, batch_first=True), nn.Linear(D, 2)
            self.buffer = buffer
            self.double()

        def forward(self, tokens):
            start = torch.ones_like(tokens[:, :1])
            if self.buffer:
                both = torch.zeros(len(tokens), 1 + tokens.shape[1], dtype=tokens.dtype)
                torch.cat((start, tokens), 1, out=both)
            else:
                both = torch.cat((start, tokens), 1)
            return self.head(self.rnn(self.embed(both))[0][:, -1])

    tokens = ids(2, 4)
    found, expected = (unrolled.account(Padded(buffer), tokens, target=1) for buffer in (True, False))
    torch.testing.assert_close(found.tokens, expected.tokens)
    assert found.tokens.abs().max() > 1e-3


def test_value_that_is_written_into_a_coarser_tensor_is_as_exact_as_that():
    def read(_, h):
        z = torch.full((len(h), D + 1), 0.1)
        z[:, :-1] = h
        return z.double() * 0.37

    found = unrolled.account(Read(read), ids(3, 4), target=1)
    assert found.closes
    assert found.coarsest == torch.float32
    assert not any("not accounted for" in note for note in found.notes)
    fine = unrolled.account(Read(lambda _, h: h * 0.37), ids(3, 4), target=1)  # the control
    assert fine.coarsest == torch.float64


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_what_autograd_refuses_is_refused_in_one_line():
    def over_value(_, h):
        z = 2.0 * h
        torch.cat((h, h), 1, out=z)
        return z

    def of_a_chunk(_, h):
        part = (2.0 * h).chunk(2, 1)[0]
        part.t_()
        return part.t()

    messages = {
        over_value: r"writes the result of cat, of shape \(1, 16\), by out= over a tensor.*leave out= away",
        of_a_chunk: r"changes a part of a tensor in place \(t_\) that chunk.*or t without the underscore",
    }
    for read, message in messages.items():
        with pytest.raises(UnsupportedOperationError, match=message) as told:
            unrolled.account(Read(read), ids(1, 3), target=1)
        assert "\n" not in str(told.value)
