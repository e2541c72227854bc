"""A network of cells replaces one of torch.nn: same shapes, same values, same forms of batches."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

import unrolled
from sizes_of_cells import SLOTS
from unrolled.cells import CELLS, recurrent
from unrolled.cells.recurrent import Recurrent
from unrolled.cells.second_order import MLSTM
from unrolled.errors import UnknownNameError

pytestmark = pytest.mark.usefixtures("double")
E, D, B, T = 2, 4, 3, 6
LENGTHS = [4, 6, 1]
TORCH = {"elman": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
SHAPES = [(1, False), (1, True), (3, False), (3, True)]


def twins(name, layers=1, both=False, **options):
    """torch.nn's network and ours with the same weights."""
    theirs = TORCH[name](E, D, layers, bidirectional=both, **options)
    ours = recurrent(name, E, D, layers, both, **options)
    with torch.no_grad():
        for level, way in itertools.product(range(layers), range(1 + both)):
            for key, parameter in ours.cell(level, way).named_parameters():
                parameter.copy_(getattr(theirs, f"{key}_l{level}" + "_reverse" * way))
    return theirs, ours


def parts(final):
    return final if isinstance(final, tuple) else (final,)


def same(found, expected):
    (a, a_final), (b, b_final) = found, expected
    if isinstance(b, nn.utils.rnn.PackedSequence):
        torch.testing.assert_close(a.data, b.data)
        assert torch.equal(a.batch_sizes, b.batch_sizes)
        for name in ("sorted_indices", "unsorted_indices"):
            mine, theirs = getattr(a, name), getattr(b, name)
            assert (mine is None) == (theirs is None)
            assert theirs is None or torch.equal(mine, theirs)
    else:
        torch.testing.assert_close(a, b)
    assert isinstance(a_final, tuple) == isinstance(b_final, tuple)
    for x, y in zip(parts(a_final), parts(b_final), strict=True):
        torch.testing.assert_close(x, y)


@pytest.mark.quick_diagonal(4)  # quick: every network, each number of layers
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize(("layers", "both"), SHAPES)
@pytest.mark.parametrize("name", TORCH)
def test_drops_in(name, layers, both, batch_first):
    theirs, ours = twins(name, layers, both, batch_first=batch_first)
    x = torch.randn(B, T, E) if batch_first else torch.randn(T, B, E)
    state = torch.randn(layers * (1 + both), B, D)
    hx = (state, torch.randn_like(state)) if name == "lstm" else state
    same(ours(x), theirs(x))
    same(ours(x, hx), theirs(x, hx))
    for enforce_sorted, lengths in ((False, LENGTHS), (True, [6, 3, 1])):
        packed = pack_padded_sequence(x, torch.tensor(lengths), batch_first, enforce_sorted)
        same(ours(packed), theirs(packed))
        same(ours(packed, hx), theirs(packed, hx))
    alone, unbatched = torch.randn(T, E), tuple(p[:, 0].contiguous() for p in parts(hx))
    same(ours(alone), theirs(alone))
    start = unbatched if name == "lstm" else unbatched[0]
    same(ours(alone, start), theirs(alone, start))


@pytest.mark.parametrize("name", TORCH)
def test_lengths_are_packing(name):
    theirs, ours = twins(name, 2, True)
    x = torch.randn(T, B, E)
    packed, final = theirs(pack_padded_sequence(x, torch.tensor(LENGTHS), enforce_sorted=False))
    expected = (pad_packed_sequence(packed)[0], final)
    for lengths in (LENGTHS, torch.tensor(LENGTHS), torch.tensor(LENGTHS, dtype=torch.int32)):
        same(ours(x, lengths=lengths), expected)
    plain = ours(x)[0]
    assert not torch.allclose(plain, expected[0])  # the control: without lengths the padding is read


def test_two_cells_hold_whole_inputs_and_most_are_of_any_size():
    assert {"dyck", "memorising"} <= SLOTS
    assert not {"elman", "gru", "lstm", "mmlstm", "mvma_e"} & SLOTS


@pytest.mark.parametrize("name", CELLS.names())
def test_padding_never_leaks_and_takes_no_gradient(name):
    layers, both = (1, True) if name in SLOTS else (2, True)
    network = recurrent(name, E, D, layers, both)
    x = torch.randn(T, B, E)
    for b, n in enumerate(LENGTHS):
        x[n:, b] = torch.inf
    x.requires_grad_()
    outputs, final = network(x, lengths=LENGTHS)
    (outputs.sum() + sum(part.sum() for part in parts(final))).backward()
    assert torch.isfinite(outputs).all()
    for b, n in enumerate(LENGTHS):
        assert not x.grad[n:, b].any()
        assert x.grad[:n, b].any(dim=-1).all()
        alone, last = network(x[:n, b].detach())
        torch.testing.assert_close(outputs[:n, b], alone)
        assert not outputs[n:, b].any()
        for part, other in zip(parts(final), parts(last), strict=True):
            torch.testing.assert_close(part[:, b], other)
    for parameter in network.parameters():
        assert torch.isfinite(parameter.grad).all()


@pytest.mark.parametrize("name", CELLS.names())
def test_a_sequence_in_two_halves(name):
    layers = 1 if name in SLOTS else 2
    network = recurrent(name, E, D, layers)
    x = torch.randn(T, B, E)
    whole, final = network(x)
    first, middle = network(x[:2])
    second, last = network(x[2:], middle)
    same((torch.cat((first, second)), last), (whole, final))
    shapes = [tuple(part.shape) for part in parts(final)]
    cell = network.cell(0, 0)
    rest = cell.state_size - cell.output_size
    assert shapes == [(layers, B, D), (layers, B, rest)][: 1 + bool(rest)]
    torch.testing.assert_close(parts(final)[0][-1], whole[-1])


def test_attributes_are_those_of_torch():
    network = recurrent("mlstm", 8, 16, num_layers=2, bidirectional=True, dropout=0.25, batch_first=True)
    theirs = nn.LSTM(8, 16, num_layers=2, bidirectional=True, dropout=0.25, batch_first=True)
    for name in ("input_size", "hidden_size", "num_layers", "bidirectional", "dropout", "batch_first"):
        assert getattr(network, name) == getattr(theirs, name)
    assert network.output_size == 32
    assert network.flatten_parameters() is None
    assert "8, 16, num_layers=2, bidirectional=True, batch_first=True, dropout=0.25" in repr(network)
    assert isinstance(network.cell(1, 1), MLSTM)
    assert sum(p.numel() for p in recurrent("lstm", 8, 16, 2, True).parameters()) == sum(
        p.numel() for p in theirs.parameters()
    )


def test_dropout_falls_between_layers_and_in_training_only():
    network = recurrent("gru", E, D, 2, dropout=0.5)
    x = torch.randn(T, B, E)
    assert not torch.equal(network(x)[0], network(x)[0])
    network.eval()
    assert torch.equal(network(x)[0], network(x)[0])
    top = recurrent("gru", E, D, 2)
    top.load_state_dict(network.state_dict())
    assert torch.equal(network(x)[0], top(x)[0])
    with pytest.warns(UserWarning, match="there is only one layer"):
        recurrent("gru", E, D, dropout=0.5)


def test_every_weight_of_every_layer_learns():
    network = recurrent("mmlstm", E, D, 2, True, choices=3)
    assert network.cell(1, 0).choices == 3
    network(torch.randn(T, B, E), lengths=LENGTHS)[0].sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in network.parameters())


def test_any_factory_will_do():
    made = []

    def factory(input_size, hidden_size, **options):
        made.append((input_size, hidden_size, options))
        return CELLS.get("lstm")(input_size, hidden_size, proj_size=2)

    network = Recurrent(factory, E, D, 2, bidirectional=True, mark=1)
    assert made == [(E, D, {"mark": 1})] * 2 + [(4, D, {"mark": 1})] * 2
    outputs, (h, c) = network(torch.randn(T, B, E))
    assert (outputs.shape, h.shape, c.shape) == ((T, B, 4), (4, B, 2), (4, B, D))


@pytest.mark.parametrize("name", CELLS.names())
def test_a_size_is_any_whole_number(name):
    network = recurrent(name, np.int64(E), np.int32(D), num_layers=np.int64(1))
    alone = CELLS.get(name)(np.int64(E), np.int64(D))
    for cell in (network, network.cell(0, 0), alone):
        sizes = [getattr(cell, size) for size in ("input_size", "hidden_size", "output_size")]
        assert all(type(size) is int for size in sizes)
    x = torch.randn(T, B, E)
    torch.manual_seed(1)
    numpys = recurrent(name, np.int64(E), np.int64(D))
    torch.manual_seed(1)
    torch.testing.assert_close(numpys(x)[0], recurrent(name, E, D)(x)[0])
    assert alone.unroll(x).shape == (T + 1, B, alone.state_size)


def test_a_projection_has_any_length_below_the_units():
    for size in (0, 1, np.int64(D - 1)):
        assert recurrent("lstm", E, D, proj_size=size).output_size == (int(size) or D)


@pytest.mark.parametrize("name", CELLS.names())
def test_device_and_dtype_are_those_of_torch(name):
    network = recurrent(name, E, D, device="cpu", dtype=torch.float32)
    assert {p.dtype for p in network.parameters()} == {torch.float32}
    assert network(torch.randn(T, B, E, dtype=torch.float32))[0].dtype == torch.float32
    elsewhere = recurrent(name, E, D, bidirectional=True, device=torch.device("meta"))
    assert all(p.is_meta and p.dtype == torch.float64 for p in elsewhere.parameters())
    plain = recurrent(name, E, D).parameters()  # the control: torch's defaults, where nothing is said
    assert {(p.dtype, p.device.type) for p in plain} == {(torch.float64, "cpu")}


@pytest.mark.slow
@pytest.mark.parametrize("name", CELLS.names())
def test_a_pickled_or_copied_network_is_the_same_network(name):
    network, x = recurrent(name, E, D), torch.randn(T, B, E)
    for other in (pickle.loads(pickle.dumps(network)), copy.deepcopy(network)):
        same(other(x), network(x))
        for expansion in ("secant", "shares"):
            found, expected = (unrolled.decompose(each, x, expansion=expansion).context() for each in (other, network))
            torch.testing.assert_close(found, expected)
        with torch.no_grad():  # the control: it has weights of its own
            next(other.parameters()).mul_(2)
        assert not torch.equal(other(x)[0], network(x)[0])


def test_a_factory_of_any_option_judges_it_itself():
    made = CELLS.get("lstm")
    assert Recurrent(lambda *sizes, **rest: made(*sizes, proj_size=rest["mine"]), E, D, mine=2).output_size == 2
    with pytest.raises(UnknownNameError, match="unknown option of <lambda> 'mine'"):
        Recurrent(lambda *sizes: made(*sizes), E, D, mine=2)


def test_pad_sequence_of_ragged_sentences():
    sentences = [torch.randn(n, E) for n in LENGTHS]
    network = recurrent("mrnn", E, D, bidirectional=True, batch_first=True)
    outputs, h = network(pad_sequence(sentences, batch_first=True), lengths=LENGTHS)
    for b, sentence in enumerate(sentences):
        torch.testing.assert_close(outputs[b, : len(sentence)], network(sentence)[0])
        torch.testing.assert_close(h[1, b], outputs[b, 0, D:])


def test_names_are_listed():
    assert {"elman", "gru", "gru_before", "lstm", "mlstm", "mmlstm"} <= set(unrolled.cells.list())
