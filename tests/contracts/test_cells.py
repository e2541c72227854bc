"""Every registered cell: the published contract, and the equations in an independent implementation."""

from __future__ import annotations

import copy

import pytest
import torch

import unrolled.cells
from reference_cells import STEPS, shift
from unrolled.cells import CELLS
from unrolled.cells.elman import Elman
from unrolled.cells.memorising import Memorising
from unrolled.cells.multi_matrix import MMLSTM, MMRNN
from unrolled.cells.second_order import Dyck, TensorRNN
from unrolled.errors import UsageError
from unrolled.testing import CLAUSES, check_cell

E, D, T = 2, 6, 5  # a multiple, for the cells that hold whole slots


def made(name, scale=1.0, **options):
    torch.manual_seed(1)
    cell = CELLS.get(name)(E, D, **options).double()
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.mul_(scale)
    return cell


@pytest.mark.quick_diagonal(2)  # quick: every clause, every cell; test_check_cell runs all clauses on every cell
@pytest.mark.parametrize("clause", CLAUSES)
@pytest.mark.parametrize("name", CELLS.names())
def test_contract(name, clause):
    torch.manual_seed(0)
    CLAUSES[clause](made(name, 1.5 if name != "memorising" else 1.0))


@pytest.mark.slow
@pytest.mark.parametrize("name", CELLS.names())
def test_check_cell_runs_them_all_and_changes_nothing(name):
    cell = CELLS.get(name)(E, D)
    before, seed = copy.deepcopy(cell.state_dict()), torch.get_rng_state()
    check_cell(cell)
    assert torch.equal(seed, torch.get_rng_state())
    assert all(torch.equal(value, before[key]) for key, value in cell.state_dict().items())
    assert all(p.grad is None and p.dtype == torch.float32 for p in cell.parameters())


@pytest.mark.parametrize("name", STEPS)
def test_equals_the_equations(name):
    cell = made(name, 2.0 if name != "memorising" else 1.0)
    with torch.no_grad():  # gains away from one, or a swap of the two betas would not show
        for parameter in cell.parameters():
            if name.startswith("mi_"):
                parameter.add_(0.5 * torch.randn_like(parameter))
    weights = {key: value.detach() for key, value in cell.named_parameters()}
    x, s = torch.randn(T, E).double(), cell.initial_state(1)[0] + 0.5 * torch.randn(cell.state_size).double()
    states = cell.unroll(x[:, None], s[None])[:, 0].detach()
    for t in range(T):
        torch.testing.assert_close(states[t + 1], STEPS[name](weights, x[t], states[t]), rtol=1e-12, atol=1e-12)


def test_every_cell_of_the_papers_is_here():
    assert set(STEPS) <= set(unrolled.cells.list())
    assert list(unrolled.cells.list()) == sorted(unrolled.cells.list())


COUNTS = {
    "elman": D * E + D * D + 2 * D,
    "gru": 3 * (D * E + D * D + 2 * D),
    "gru_before": 3 * (D * E + D * D + D),
    "lstm": 4 * (D * E + D * D + 2 * D),
    "tensor_rnn": D * E + E * D * D + D,
    "mrnn": 2 * D * E + 2 * D * D + D,
    "mlstm": (D * E + D * D) + 4 * (D * E + D * D + D),
    "mi_rnn": D * E + D * D + 4 * D,
    "mi_gru": 3 * (D * E + D * D + 4 * D),
    "mi_lstm": 4 * (D * E + D * D + 4 * D),
    "mmrnn": D * E + 4 * D * D + D + 4 * (4 + D + E),
    "mmlstm": 4 * (D * E + 4 * D * D + D + 4 * (4 + D + E)),
    "dyck": E,
    "memorising": D * E + D * D,
}


@pytest.mark.parametrize("name", COUNTS)
def test_parameter_counts(name):
    assert sum(p.numel() for p in CELLS.get(name)(E, D).parameters()) == COUNTS[name]


@pytest.mark.parametrize("name", [n for n in STEPS if n not in ("dyck", "memorising")])
def test_without_bias(name):
    cell = made(name, bias=False)
    assert not any("bias" in key for key, _ in cell.named_parameters())
    zero = torch.zeros(1, E).double()
    assert not cell.hidden(cell.step(zero, torch.zeros(1, cell.state_size).double())).any()
    biased = made(name)
    assert biased.hidden(biased.step(zero, torch.zeros(1, biased.state_size).double())).any()


def test_the_tensor_rnn_has_a_matrix_for_each_symbol():
    cell = made("tensor_rnn")
    h = torch.randn(D).double()
    for symbol in range(E):
        U = cell.weight_hh[symbol * D : (symbol + 1) * D]
        expected = torch.tanh(cell.weight_ih[:, symbol] + U @ h + cell.bias)
        torch.testing.assert_close(cell.step(torch.eye(E).double()[symbol], h), expected)
    assert isinstance(cell, TensorRNN)


@pytest.mark.quick_diagonal(2)  # quick: every choice
@pytest.mark.parametrize("kind", [MMRNN, MMLSTM])
@pytest.mark.parametrize("choices", [1, 2, 4, 7])
def test_choices(kind, choices):
    cell = kind(E, D, choices=choices).double()
    gates = (cell.state_size - cell.output_size) // choices if kind is MMRNN else 4
    start = cell.initial_state(3)
    keys = start[:, : gates * choices].view(3, gates, choices)
    torch.testing.assert_close(keys, torch.full_like(keys, 1 / choices))
    assert not start[:, gates * choices :].any()
    after = cell.unroll(torch.randn(T, 3, E).double())[-1, :, : gates * choices].view(3, gates, choices)
    torch.testing.assert_close(after.sum(-1), torch.ones(3, gates).double())
    if choices > 1:  # no gradient moves a key that has no choice
        check_cell(cell)


@pytest.mark.parametrize(("many", "one"), [("mmrnn", "elman"), ("mmlstm", "lstm")])
def test_one_choice_is_no_choice(many, one):
    mixed, plain = made(many, choices=1), made(one)
    with torch.no_grad():
        plain.weight_ih.copy_(mixed.weight_ih)
        plain.weight_hh.copy_(mixed.weight_hh)
        plain.bias_ih.copy_(mixed.bias)
        plain.bias_hh.zero_()
    x = torch.randn(T, 1, E).double()
    torch.testing.assert_close(mixed.hidden(mixed.unroll(x)), plain.hidden(plain.unroll(x)))


@pytest.mark.parametrize(("integrated", "plain"), [("mi_rnn", "elman"), ("mi_gru", "gru"), ("mi_lstm", "lstm")])
def test_integration_without_its_product_is_the_ordinary_cell(integrated, plain):
    a, b = made(integrated), made(plain)
    with torch.no_grad():
        b.weight_ih.copy_(a.weight_ih)
        b.weight_hh.copy_(a.weight_hh)
        b.bias_ih.copy_(a.bias)
        b.bias_hh.zero_()
        x = torch.randn(T, 1, E).double()
        assert not torch.allclose(a.unroll(x), b.unroll(x))  # the control: the product is felt
        a.alpha.zero_()
        torch.testing.assert_close(a.unroll(x), b.unroll(x))


@pytest.mark.parametrize("name", ["mi_rnn", "mi_gru", "mi_lstm"])
@pytest.mark.parametrize("expansion", ["gates", "activation"])
def test_integrated_cells_open_by_gates_and_activation(name, expansion):
    x = torch.randn(T, 2, E).double()
    found = unrolled.decompose(made(name, 1.5), x, expansion=expansion)
    assert (found.residual().max() < 1e-9) == (expansion == "gates")


@pytest.mark.parametrize("kept", [1, 2, 5])
def test_the_memorising_rnn_recalls_exactly(kept):
    x = torch.randn(9, 4, 3)
    cell = Memorising(3, 3 * kept)
    states = cell.unroll(x)
    for t in range(9):
        recalled = cell.recall(states[t + 1])
        for back in range(kept):
            expected = x[t - back] if back <= t else torch.zeros(4, 3)
            assert torch.equal(recalled[:, back], expected)
    drawn = Elman(3, 3 * kept)  # the control: weights drawn at random recall nothing
    assert not torch.allclose(drawn.unroll(x)[-1][:, :3], x[-1], atol=1e-2)


def stack_automaton(word, kinds, depth):
    """What a stack holds, top first: opening brackets 1 … k push, closing ones -1 … -k pop."""
    stack = []
    for bracket in word:
        stack = [bracket, *stack] if bracket > 0 else stack[1:]
    assert len(stack) <= depth
    assert all(1 <= b <= kinds for b in stack)
    return stack + [0] * (depth - len(stack))


def dyck_prefixes(kinds, depth, count, length):
    """Prefixes of strings whose brackets nest at most ``depth`` deep."""
    generator = torch.Generator().manual_seed(0)
    draw = lambda n: int(torch.randint(n, (1,), generator=generator))
    words = []
    for _ in range(count):
        word, stack = [], []
        for _ in range(length):
            if not stack or (len(stack) < depth and draw(2)):
                stack.append(draw(kinds) + 1)
                word.append(stack[-1])
            else:
                word.append(-stack.pop())
        words.append(word)
    return words


@pytest.mark.parametrize("depth", [4, 6, 8])
def test_a_dyck_rnn_with_a_hard_gate_is_the_stack_automaton(depth):
    words = dyck_prefixes(2, depth, 60, 40)
    x = torch.tensor(words).double().T[..., None]
    expected = torch.tensor([stack_automaton(word, 2, depth) for word in words]).double()
    cell = Dyck(1, depth).double()
    with torch.no_grad():
        cell.weight.fill_(60.0)
        torch.testing.assert_close(cell.unroll(x)[-1], expected, rtol=0, atol=1e-12)
        cell.weight.fill_(1.0)  # the control: a soft gate forgets
        assert (cell.unroll(x)[-1] - expected).abs().max() > 0.1


def test_shifts_are_the_matrices_of_the_paper():
    S = shift(4, 1)
    assert torch.equal(S, torch.diag(torch.ones(3).double(), -1))
    cell, h = Dyck(1, 4).double(), torch.randn(4).double()
    zero = torch.zeros(1).double()  # g = 1/2, nothing is written
    torch.testing.assert_close(cell.step(zero, h), 0.5 * (S + S.T) @ h)


def test_identity_initialisation():
    cell = Elman(E, D, nonlinearity="relu")
    cell.initialise_identity()
    h = torch.rand(3, D)
    assert torch.equal(cell.step(torch.zeros(3, E), h), h)
    assert not torch.equal(Elman(E, D, nonlinearity="relu").step(torch.zeros(3, E), h), h)
    bare = Elman(E, D, bias=False, nonlinearity="relu")
    bare.initialise_identity()
    assert torch.equal(bare.step(torch.zeros(3, E), h), h)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Dyck(2, 5), "hidden_size is 5; expected a multiple of input_size, 2"),
        (lambda: Memorising(2, 5), "hidden_size is 5; expected a multiple of input_size, 2"),
        (lambda: MMRNN(2, 5, choices=0), "choices is 0; expected a positive integer"),
        (lambda: MMLSTM(2, 5, choices=1.5), "choices is 1.5; expected a positive integer"),
        (lambda: Dyck(0, 5), "input_size is 0; expected a positive integer"),
        (lambda: TensorRNN(2, -1), "hidden_size is -1; expected a positive integer"),
    ],
)
def test_sizes_that_cannot_be(make, message):
    with pytest.raises(UsageError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [n for n in CELLS.names() if n != "memorising"])
def test_initialisation_is_pytorchs(name):
    torch.manual_seed(0)
    cell = CELLS.get(name)(4, 64)
    for key, parameter in cell.named_parameters():
        if key in ("alpha", "beta_hidden", "beta_input"):
            assert torch.equal(parameter, torch.ones_like(parameter))
        elif parameter.numel() > 100:
            assert float(parameter.detach().abs().max()) == pytest.approx(1 / 8, rel=0.05)
            assert float(parameter.detach().mean()) == pytest.approx(0, abs=0.02)
