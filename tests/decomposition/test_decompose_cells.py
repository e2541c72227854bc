"""Networks of our cells are opened as torch.nn's are: layers, directions, lengths, states, parity."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

import unrolled
from reference import affine, ngrams, run
from reference_cells import STEPS
from sizes_of_cells import SLOTS
from unrolled.cells import CELLS, recurrent
from unrolled.cells.recurrent import Recurrent
from unrolled.errors import NonFiniteError, ParityError, ShapeError, UsageError

E, D, B, T = 2, 4, 3, 4
LENGTHS = [3, 4, 1]
LINEAR = [name for name, cell in CELLS.members.items() if cell.linear]


def build(name, layers=1, both=False, scale=1.5, **options):
    torch.manual_seed(0)
    network = recurrent(name, E, D, layers, both, **options).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(1.0 if name == "memorising" else scale)
    return network


def shapes(name):
    return [(1, False), (1, True)] if name in SLOTS else [(1, True), (2, False), (2, True)]


def random_state(network):
    count, cell = len(network.cells), network.cell(0, 0)
    h = torch.randn(count, B, cell.output_size).double()
    rest = cell.state_size - cell.output_size
    return (h, torch.rand(count, B, rest).double()) if rest else h


def dirty_batch(batch_first):
    """A batch whose padding would be felt if it were read, padded and packed."""
    x = torch.randn(B, T, E).double()
    for b, n in enumerate(LENGTHS):
        x[b, n:] = 1e3
    given = x if batch_first else x.transpose(0, 1)
    return given, pack_padded_sequence(given, torch.tensor(LENGTHS), batch_first, enforce_sorted=False)


@pytest.mark.slow_diagonal(2)
@pytest.mark.parametrize("others", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CELLS.names())
def test_exact_over_the_grid(name, others):
    """One shape and one layout, which differ from cell to cell, or all others."""
    layouts, first = list(itertools.product((False, True), (False, True))), CELLS.names().index(name)
    quick = [(shapes(name)[first % len(shapes(name))], layouts[first % 4])]
    slow = [each for each in itertools.product(shapes(name), layouts) if each not in quick]
    for (layers, both), (batch_first, with_state) in slow if others else quick:
        network = build(name, layers, both, batch_first=batch_first)
        state = random_state(network) if with_state else None
        given, packed = dirty_batch(batch_first)
        own = network(given, state, lengths=LENGTHS)[0].detach()
        own = own if batch_first else own.transpose(0, 1)
        for inputs, lengths in ((given, LENGTHS), (packed, None)):
            found = unrolled.decompose(network, inputs, lengths, state, expansion="operating")
            assert found.parity < 1e-12
            for d in range(1 + both):
                total = found.vectors(d).sum(dim=2) + found.initial(d)
                expected = own[..., d * D : (d + 1) * D]
                torch.testing.assert_close(total, expected, rtol=1e-9, atol=1e-9)
                torch.testing.assert_close(found.states(d), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("others", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CELLS.names())
def test_path_is_exact_within_its_tolerance(name, others):
    for layers, both in shapes(name)[:-1] if others else shapes(name)[-1:]:
        network = build(name, layers, both)
        found = unrolled.decompose(network, dirty_batch(False)[1], state=random_state(network), expansion="path")
        for d in range(1 + both):
            total = found.vectors(d).sum(dim=2) + found.initial(d)
            torch.testing.assert_close(total, found.states(d), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CELLS.names())
def test_the_control_zero_sums_for_linear_cells_only(name):
    x = torch.randn(T, B, E).double()
    for layers, both in shapes(name):
        residual = unrolled.decompose(build(name, layers, both, 2.5), x, expansion="zero").residual().max()
        # a stack is not: its upper layer multiplies by what depends on the state below
        assert (residual < 1e-12) == (name in LINEAR and layers == 1)


@pytest.mark.quick_diagonal(3)  # quick: every cell, every rule
@pytest.mark.parametrize("rule", ["zero", "operating", "path"])
@pytest.mark.parametrize("name", STEPS)
def test_terms_equal_the_definition(name, rule):
    network = build(name)
    cell = network.cell(0, 0)
    weights = {key: value.detach() for key, value in cell.named_parameters()}
    step = lambda x, s: STEPS[name](weights, x, s)
    x = torch.randn(T, E).double()
    states = run(step, x, cell.initial_state(1)[0])
    expected = ngrams([affine(step, rule, x[t], states[t]) for t in range(T)])[..., -D:]
    found = unrolled.decompose(network, x[:, None], expansion=rule, tolerance=1e-12).vectors()[0]
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", ["mlstm", "mmlstm", "gru_before", "mi_lstm"])
def test_a_cell_alone_is_a_network_of_one(name):
    network = build(name)
    cell, x = network.cell(0, 0), torch.randn(T, B, E).double()
    alone = unrolled.decompose(cell, x, LENGTHS)
    together = unrolled.decompose(network, x, LENGTHS)
    torch.testing.assert_close(alone.vectors(), together.vectors(), rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(alone.lengths, together.lengths)


@pytest.mark.parametrize(("name", "kind"), [("elman", nn.RNN), ("gru", nn.GRU), ("lstm", nn.LSTM)])
def test_the_same_weights_have_the_same_ngrams(name, kind):
    network, theirs = build(name, 2), kind(E, D, 2).double()
    with torch.no_grad():
        for level in range(2):
            for key, parameter in network.cell(level, 0).named_parameters():
                getattr(theirs, f"{key}_l{level}").copy_(parameter)
    x = torch.randn(T, B, E).double()
    for expansion in ("path", "zero", "gates", "activation", "taylor(2)"):
        mine = unrolled.decompose(network, x, expansion=expansion).vectors()
        torch.testing.assert_close(mine, unrolled.decompose(theirs, x, expansion=expansion).vectors())


@pytest.mark.parametrize("expansion", ["secant", "operating", "shares"])
@pytest.mark.parametrize("name", ["mi_gru", "lstm"])
def test_it_is_the_same_in_inference_mode(name, expansion):
    torch.manual_seed(0)
    net, inputs = recurrent(name, 3, 4).double(), torch.randn(2, 5, 3, dtype=torch.float64)
    inputs[:, 1:3] = 0.0  # short lines, whose slope is a derivative
    plain = unrolled.decompose(net, inputs, expansion=expansion).vectors()
    with torch.inference_mode():
        found = unrolled.decompose(net, inputs, expansion=expansion).vectors()
    torch.testing.assert_close(found, plain, rtol=1e-12, atol=1e-14)


def test_half_precision_is_opened_in_float32_and_left_alone():
    network = build("mlstm", 2, scale=1.0).bfloat16()
    found = unrolled.decompose(network, torch.randn(T, B, E).bfloat16(), expansion="operating")
    assert found.vectors().dtype == torch.float32
    assert all(p.dtype == torch.bfloat16 for p in network.parameters())


def test_the_network_is_left_as_it_was():
    network = build("mmlstm", 2, dropout=0.5)
    before = {key: value.clone() for key, value in network.state_dict().items()}
    calls = []
    network.register_forward_hook(lambda *_: calls.append(1))
    x = torch.randn(T, B, E).double()
    seed = torch.get_rng_state()
    assert unrolled.decompose(network, x).residual().max() < 1e-5  # dropout was off while it ran
    assert network.training
    assert not calls
    assert torch.equal(seed, torch.get_rng_state())
    assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())
    assert all(p.grad is None and p.requires_grad for p in network.parameters())


class Doubled(Recurrent):
    """A network that is not what it says it is."""

    def forward(self, input, hx=None, *, lengths=None):
        outputs, final = super().forward(input, hx, lengths=lengths)
        return 2 * outputs, final


def test_a_network_that_is_not_itself_is_refused():
    with pytest.raises(ParityError, match=r"our states differ from the Doubled's own by .* the one of unrolled"):
        unrolled.decompose(Doubled(CELLS.get("mrnn"), E, D), torch.randn(T, 1, E))


X = torch.zeros(T, B, E).double()
BAD = [
    (lambda r: unrolled.decompose(r, X[..., :1]), ShapeError, r"expected \(time, batch, 2\)"),
    (lambda r: unrolled.decompose(r, X, [7, 1, 1]), UsageError, "lengths run from 1 to 7"),
    (lambda r: unrolled.decompose(r, X, [1, 1]), ShapeError, r"expected \(3,\) whole numbers"),
    (lambda r: unrolled.decompose(r, X, state=torch.zeros(1, B, D)), ShapeError, r"expected \(h_0, c_0\)"),
    (
        lambda r: unrolled.decompose(r, X, state=(torch.zeros(1, B, D),) * 2),
        ShapeError,
        r"c_0 has shape \(1, 3, 4\); expected \(1, 3, 20\)",
    ),
    (lambda r: unrolled.decompose(r, X + torch.nan), NonFiniteError, "inputs hold NaN"),
    (lambda r: unrolled.decompose(r, X, expansion="gates"), UsageError, "declares no gates"),
    (lambda r: unrolled.decompose(r.cell(0, 0), X, [9, 1, 1]), UsageError, "lengths run from 1 to 9"),
    (
        lambda r: unrolled.decompose(r.cell(0, 0), X.float()),
        UsageError,
        "inputs are torch.float32; expected torch.float64",
    ),
    (lambda r: unrolled.decompose(r.cell(0, 0), X + torch.nan), NonFiniteError, "inputs hold NaN"),
    (
        lambda r: unrolled.decompose(r.cell(0, 0), X, state=torch.zeros(B, 24)),
        UsageError,
        "the numbers of the state are torch.float32; expected torch.float64",
    ),
    (
        lambda r: unrolled.decompose(r.cell(0, 0), X, state=(X, X)),
        UsageError,
        "the state is a tuple; expected a flat one",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_input_is_named_in_one_line(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call(build("mmlstm"))
    assert "\n" not in str(caught.value)
