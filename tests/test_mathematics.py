"""What docs/mathematics.md says of each rule, and the examples in which each fails."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import nn

import unrolled
from unrolled.cells.base import Cell

PAGE = (Path(__file__).parents[1] / "docs" / "mathematics.md").read_text(encoding="utf-8")


class Function(nn.Module):
    """A function of two numbers, or more, as a model."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def account(function, *numbers, **options):
    x = torch.tensor([numbers], dtype=torch.float64)
    found = unrolled.account(Function(function), x, target=0, **options)
    assert found.closes
    return found.features["0"][0].tolist(), float(sum(found.constants.values(), torch.zeros(1)))


def test_a_line_from_zero():
    (x, y), rest = account(lambda v: torch.sigmoid(v.sum(1, keepdim=True)), 0.3, 0.9)
    rise = torch.sigmoid(torch.tensor(1.2).double()).item() - 0.5
    assert x == pytest.approx(rise * 0.3 / 1.2)
    assert y == pytest.approx(rise * 0.9 / 1.2)
    assert rest == pytest.approx(0.5)


@pytest.mark.parametrize("p", [0.5, 0.75, 1.0])
def test_a_gate_and_its_content_share_what_the_gate_adds(p):
    (gate, content), rest = account(lambda v: torch.sigmoid(v[:, :1]) * v[:, 1:], 2.0, 3.0, share=p)
    rise = torch.sigmoid(torch.tensor(2.0).double()).item() - 0.5
    assert content == pytest.approx(3 * (0.5 + p * rise))
    assert gate == pytest.approx(3 * (1 - p) * rise)
    assert rest == pytest.approx(0)


def test_a_product_of_three_is_shared_equally():
    found, _ = account(lambda v: torch.einsum("b,b,b->b", *v.unbind(1))[:, None], 2.0, 3.0, 5.0)
    assert found == pytest.approx([10.0, 10.0, 10.0])
    by_steps, _ = account(lambda v: v[:, :1] * v[:, 1:2] * v[:, 2:], 2.0, 3.0, 5.0)
    assert by_steps == pytest.approx([7.5, 7.5, 15.0])


def test_linear_attention_has_another_account_in_parallel_and_step_by_step():
    x = torch.randn(3, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def attention(v, mix):
        q, k, values = v.view(3, 9).chunk(3, 1)
        return mix(q, k, values)[-1:].sum().view(1, 1)

    def step_by_step(q, k, v):
        state, found = torch.zeros(3, 3, dtype=v.dtype), []
        for t in range(3):
            state = state + torch.outer(k[t], v[t])
            found.append(q[t] @ state)
        return torch.stack(found)

    in_parallel = lambda q, k, v: (q @ k.T).tril() @ v
    (parallel, _), (steps, _) = (
        account(lambda v, mix=mix: attention(v, mix), *x.flatten().tolist()) for mix in (in_parallel, step_by_step)
    )
    of_queries, of_keys, of_values = (
        [float(torch.tensor(each).view(3, 3, 3)[:, part].sum()) for each in (parallel, steps)] for part in range(3)
    )
    whole = sum(parallel)
    assert sum(steps) == pytest.approx(whole)
    assert of_keys == pytest.approx([whole / 4, whole / 4])
    assert of_queries == pytest.approx([whole / 4, whole / 2])
    assert of_values == pytest.approx([whole / 2, whole / 4])
    assert "in parallel, step by step and for every size of chunks" in PAGE


@pytest.mark.parametrize("scale", [0.0, 2.0])
def test_a_number_that_is_added_to_a_content_has_half_of_what_it_multiplies(scale):
    (x, s), rest = account(lambda v: v[:, :1] * (1 + v[:, 1:]), 3.0, scale)
    assert (x, s, rest) == pytest.approx((1.5 * (1 + scale), 1.5 * scale, 1.5))
    (x, s), rest = account(lambda v: v[:, :1] + v[:, :1] * v[:, 1:], 3.0, scale)
    assert (x, s, rest) == pytest.approx((3 + 1.5 * scale, 1.5 * scale, 0.0))
    (x, _), rest = account(lambda v: v[:, :1] * (1 + torch.sigmoid(v[:, 1:])), 3.0, 0.0)
    assert (x, rest) == pytest.approx((4.5, 0.0))
    assert "Of x (1 + s) the number 1 is credited with half of x" in PAGE


class LearnedStart(nn.Module):
    """One step of a GRU from a learned state: by torch, or the same step written out."""

    def __init__(self, written_out):
        super().__init__()
        torch.manual_seed(0)
        self.cell, self.start = nn.GRUCell(2, 3), nn.Parameter(torch.randn(1, 3))
        self.written_out = written_out

    def forward(self, x):
        if not self.written_out:
            return self.cell(x, self.start)
        from_input = torch.nn.functional.linear(x, self.cell.weight_ih, self.cell.bias_ih).chunk(3, 1)
        from_state = torch.nn.functional.linear(self.start, self.cell.weight_hh, self.cell.bias_hh).chunk(3, 1)
        r, z = (torch.sigmoid(a + b) for a, b in list(zip(from_input, from_state, strict=True))[:2])
        return (1 - z) * torch.tanh(from_input[2] + r * from_state[2]) + z * self.start


def test_a_parameter_beside_a_gate_is_a_factor_and_not_a_content():
    w = nn.Parameter(torch.tensor([3.0], dtype=torch.float64))
    model = Function(lambda v: w * torch.sigmoid(v))
    model.w = w
    found = unrolled.account(model, torch.tensor([[2.0]], dtype=torch.float64), target=0)
    rise = torch.sigmoid(torch.tensor(2.0).double()).item() - 0.5
    assert (found.features["0"].item(), found.constants["constants"].item()) == pytest.approx((3 * rise, 1.5))
    assert not found.biases
    assert "Of w σ(x) the parameter w gets nothing" in PAGE
    x = torch.tensor([[1.0, -2.0]])
    torchs, own = (unrolled.account(LearnedStart(by_hand), x, target=0) for by_hand in (False, True))
    assert torchs.closes
    assert own.closes
    assert float(torchs.initial.abs()) > 0.01 > float(own.initial.abs())
    assert not torch.allclose(torchs.features["0"], own.features["0"], atol=0.01)


@pytest.mark.parametrize("learned", [False, True])
def test_a_lower_bound_that_is_learned_makes_a_gate_an_ordinary_factor(learned):
    bound = torch.tensor([0.2], dtype=torch.float64)
    model = Function(lambda v: (bound + (1 - bound) * torch.sigmoid(v[:, :1])) * v[:, 1:])
    if learned:
        model.bound = nn.Parameter(bound)
        bound = model.bound
    found = unrolled.account(model, torch.tensor([[2.0, 3.0]], dtype=torch.float64), target=0, share=1.0)
    factor = 0.2 + 0.8 * torch.sigmoid(torch.tensor(2.0).double()).item()
    expected = [0.5 * (factor - 0.6) * 3, 0.5 * factor * 3] if learned else [0.0, factor * 3]
    assert found.features["0"][0].tolist() == pytest.approx(expected)
    assert "a forget gate with a learned lower bound, β + (1 − β) σ as in HGRN, is an ordinary factor" in PAGE


@pytest.mark.parametrize("given", [False, True])
def test_a_first_state_of_constants_is_a_factor_in_a_loop_and_a_content_in_log_space(given):
    half = torch.full((1, 1, 1), 0.5, dtype=torch.float64)

    def by_logarithms(x, first=half):
        decays = nn.functional.pad(-nn.functional.softplus(x), (0, 0, 1, 0)).cumsum(1)
        written = torch.cat([first.log(), nn.functional.logsigmoid(x)], 1)
        return (decays + (written - decays).logcumsumexp(1)).exp()[:, -1]

    def by_a_loop(x, first=half):
        h = first[:, 0]
        for u in x.unbind(1):
            h = (1 - torch.sigmoid(u)) * h + torch.sigmoid(u)
        return h

    class Model(Function):
        def forward(self, *given):
            return self.function(*given)

    x = torch.tensor([[[0.7], [-0.3], [1.1]]], dtype=torch.float64)
    arguments = (x, half) if given else (x,)
    logs, loop = (
        unrolled.account(Model(f), *arguments, target=0).features["0"].flatten() for f in (by_logarithms, by_a_loop)
    )
    apart = (logs - loop).tolist()
    assert apart[1:] == pytest.approx([0.0, 0.0], abs=1e-12)
    assert (abs(apart[0]) > 1e-3) is not given
    assert "in log space they are its content, and it has the share 1 − p of that" in PAGE


class Product(Cell):
    """h' = (x + h) (2 x + h): two factors that hold the input and the state."""

    name = "product"

    def __init__(self):
        super().__init__(1, 1)

    def step(self, inputs, state):
        return (inputs + state) * (2 * inputs + state)


def test_the_secant_of_a_product_is_the_shapley_value():
    x, h = 1.5, 0.7
    given = torch.tensor([[[x]]]).double()
    found = unrolled.decompose(Product(), given, state=torch.tensor([[h]]).double(), expansion="secant")
    of = lambda a, b: (x + a * h) * (2 * x + b * h)  # which factors have the state
    first = 0.5 * ((of(1, 0) - of(0, 0)) + (of(1, 1) - of(0, 1)))
    second = 0.5 * ((of(0, 1) - of(0, 0)) + (of(1, 1) - of(1, 0)))
    assert float(found.initial()) == pytest.approx(first + second)
    assert float(found.vectors()) == pytest.approx(2 * x * x)


def test_attention_credits_the_values_and_not_the_search():
    def look(v):  # the query decides which of two values is read
        weights = (v[:, :1] * torch.tensor([1.0, -1.0]).double()).softmax(-1)
        return (weights * v[:, 1:]).sum(1, keepdim=True)

    (query, first, second), _ = account(look, 9.0, 5.0, 1.0)
    assert query == 0
    assert (first, second) == pytest.approx((5.0, 0.0), abs=1e-6)
    other, _ = account(look, -9.0, 5.0, 1.0)
    assert sum(other) == pytest.approx(1.0, abs=1e-6)  # though the query alone changes the output
    assert "its contribution is still 0" in PAGE


def test_the_runner_up_of_a_maximum_gets_nothing():
    found, _ = account(lambda v: v.amax(1, keepdim=True), 5.0, 4.9)
    assert found == [5.0, 0.0]
    assert "The runner-up of a maximum gets nothing" in PAGE


def test_a_deviation_of_torch_is_held_and_one_by_the_norm_carries_value():
    numbers, deviation = (1.0, 2.0, 6.0), math.sqrt(7.0)
    held, rest = account(lambda v: v[:, :1] + v.std(1, keepdim=True), *numbers)
    assert held == pytest.approx([1.0, 0.0, 0.0])
    assert rest == pytest.approx(deviation)
    found, rest = account(lambda v: v[:, :1] + (v - v.mean()).norm(dim=1, keepdim=True) / math.sqrt(2.0), *numbers)
    assert found == pytest.approx([1.0 - 2.0 / (2.0 * deviation), -2.0 / (2.0 * deviation), 18.0 / (2.0 * deviation)])
    assert rest == pytest.approx(0.0)


def test_a_line_from_zero_does_not_see_saturation_by_an_offset():
    (x,), rest = account(lambda v: torch.tanh(v + 10.0), 10.0)
    assert x == pytest.approx(0.5)  # though tanh(x + 10) is 1 whatever x is
    assert rest == pytest.approx(0.5)


def test_the_secant_gives_nothing_to_a_state_behind_an_input_that_saturates():
    cell = nn.RNN(1, 1, bias=False, dtype=torch.float64)
    for weight in cell.parameters():
        weight.data.fill_(1.0)
    state = torch.full((1, 1, 1), 5.0, dtype=torch.float64)
    found = unrolled.decompose(cell, torch.full((1, 1, 1), 20.0).double(), state=state, expansion="secant")
    assert abs(float(found.initial())) < 1e-9


def test_networks_above_one_another_are_a_stack_to_explain_and_not_to_account():
    class Two(nn.Module):
        def __init__(self, whole):
            super().__init__()
            self.lower, self.upper = (nn.GRU(3, 3, batch_first=True).double() for _ in range(2))
            for level, net in enumerate((self.lower, self.upper)):
                for name, weight in net.named_parameters():
                    weight.data = getattr(whole.net, name.replace("l0", f"l{level}")).data
            self.head = whole.head

        def forward(self, x):
            return self.head(self.upper(self.lower(x)[0])[0][:, -1])

    class One(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.net, self.head = nn.GRU(3, 3, 2, batch_first=True).double(), nn.Linear(3, 2).double()

        def forward(self, x):
            return self.head(self.net(x)[0][:, -1])

    one, x = One(), torch.randn(1, 4, 3, dtype=torch.float64)
    two = Two(one)
    explained = [unrolled.explain(model, x, target=1).token_scores for model in (one, two)]
    torch.testing.assert_close(*explained, atol=1e-12, rtol=0)
    accounts = [unrolled.account(model, x, target=1).features["0"] for model in (one, two)]
    assert float((accounts[0] - accounts[1]).abs().max()) > 1e-3
    assert "differs from that of one GRU of two layers" in PAGE.replace("\n", " ")


def test_half_of_an_overwritten_content_stays_credited_and_is_taken_back():
    """h' = σ(4 - 12 h) h: the state closes its own gate."""

    class Closing(Cell):
        name = "closing"

        def __init__(self):
            super().__init__(1, 1)

        def step(self, inputs, state):
            return torch.sigmoid(inputs - 12 * state) * state

    h, x = 1.0, torch.full((1, 1, 1), 4.0).double()
    found = unrolled.decompose(Closing(), x, state=torch.full((1, 1), h).double(), expansion="secant")
    assert float(found.initial()) == pytest.approx(float(found.states()), abs=1e-12)
    open_, closed = torch.sigmoid(torch.tensor([4.0, -8.0])).tolist()
    assert 0.5 * (open_ + closed) * h > 0.49  # credited to the content
    assert 0.5 * (closed - open_) * h < -0.49  # taken back by the gate
    assert "half of the old content stays credited" in PAGE


def test_a_word_that_a_closed_gate_keeps_out_is_credited_by_the_secant_and_not_by_shares():
    """A GRU that keeps the first value: z = σ(40 h - 20) is open before any value, and closed after."""
    latch = nn.GRU(1, 1, dtype=torch.float64)
    for weight in latch.parameters():
        weight.data.zero_()
    latch.weight_hh_l0.data[1], latch.bias_ih_l0.data[1], latch.weight_ih_l0.data[2] = 40.0, -20.0, 3.0
    words = torch.ones(2, 1, 1, dtype=torch.float64)
    other = torch.tensor([1.0, -1.0], dtype=torch.float64).reshape(2, 1, 1)
    with torch.no_grad():  # the second word is not read
        assert torch.allclose(latch(words)[0][-1], latch(other)[0][-1], atol=1e-6)
    by_secant, by_shares = (
        unrolled.decompose(latch, words, expansion=name).vectors()[0, 1, :, 0].tolist() for name in ("secant", "shares")
    )
    assert by_secant == pytest.approx([0.0, math.tanh(3)], abs=1e-2)
    assert by_shares[0] > 0.7 * math.tanh(3)
    assert "`secant` credits the second word" in PAGE
