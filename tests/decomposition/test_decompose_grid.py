"""Unmodified torch.nn networks in every configuration: terms sum to the network's own states, and only then."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

import unrolled
from reference import relative
from toy_networks import LENGTHS, B, D, E, T, build, initial

KINDS = [
    (nn.RNN, {}),
    (nn.RNN, {"nonlinearity": "relu"}),
    (nn.GRU, {}),
    (nn.LSTM, {}),
    (nn.LSTM, {"proj_size": 3}),
]
SHAPES = [
    {"num_layers": layers, "bidirectional": bidirectional, "bias": bias}
    for layers, bidirectional, bias in itertools.product((1, 2, 3), (False, True), (True, False))
]
LAYOUTS = list(itertools.product((True, False), (True, False)))  # batch first, with an initial state
LAYOUT_OF_EACH = [
    (shape, LAYOUTS[(k + k // 4) % 4]) for k, shape in enumerate(SHAPES)
]  # each with every direction and bias
BOUNDS = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 5e-2}


def own_states(rnn, x, lengths, state):
    """The network's own hidden output by direction, run one sequence at a time: no padding, no packing."""
    width = rnn.proj_size or D
    out = torch.zeros(1 + rnn.bidirectional, B, T, width, dtype=x.dtype)
    for b, n in enumerate(lengths.tolist()):
        s = None
        if state is not None:
            s = (
                tuple(p[:, b : b + 1].contiguous() for p in state)
                if isinstance(state, tuple)
                else state[:, b : b + 1].contiguous()
            )
        seq = x[b : b + 1, :n] if rnn.batch_first else x[b : b + 1, :n].transpose(0, 1)
        y = rnn(seq, s)[0].detach()
        y = y[0] if rnn.batch_first else y[:, 0]
        for d in range(1 + rnn.bidirectional):
            out[d, b, :n] = y[:, d * width : (d + 1) * width]
    return out


def cases():
    """List expansions, types and grids; double precision with one layout for each shape is quick, all else is slow."""
    every_layout = list(itertools.product(SHAPES, LAYOUTS))
    other_layouts = [each for each in every_layout if each not in LAYOUT_OF_EACH]
    for expansion in ("secant", "operating", "gates"):
        yield pytest.param(expansion, torch.float64, LAYOUT_OF_EACH, id=f"{expansion}-f64")
        yield pytest.param(expansion, torch.float64, other_layouts, id=f"{expansion}-others", marks=pytest.mark.slow)
    yield pytest.param("path", torch.float64, every_layout, id="path-all", marks=pytest.mark.slow)
    for expansion in ("secant", "operating", "gates", "path", "mean"):
        yield pytest.param(expansion, torch.float32, LAYOUT_OF_EACH, id=f"{expansion}-f32", marks=pytest.mark.slow)
    yield pytest.param("mean", torch.float64, LAYOUT_OF_EACH, id="mean-f64", marks=pytest.mark.slow)


@pytest.mark.slow_diagonal(3)
@pytest.mark.quick_diagonal(3)  # quick: every network, every expansion
@pytest.mark.parametrize(("expansion", "dtype", "grid"), list(cases()))
@pytest.mark.parametrize(
    ("kind", "options"), KINDS, ids=lambda v: getattr(v, "__name__", None) or "".join(map(str, v.values()))
)
def test_exact_over_the_whole_grid(kind, options, expansion, dtype, grid):
    tolerance = 1e-6
    bound = BOUNDS[dtype] if expansion in ("secant", "operating", "gates") else max(tolerance, BOUNDS[dtype])
    for shape, (batch_first, with_state) in grid:
        rnn = build(kind, options, shape, dtype, batch_first=batch_first)
        x = torch.randn(B, T, E).to(dtype)
        state = initial(rnn, dtype) if with_state else None
        own = own_states(rnn, x, LENGTHS, state)
        padded = x.clone()
        for b, n in enumerate(LENGTHS.tolist()):
            padded[b, n:] = 1e3  # padding that would be felt if it were read
        given = padded if batch_first else padded.transpose(0, 1)
        packed = pack_padded_sequence(given, LENGTHS, batch_first=batch_first, enforce_sorted=False)
        for inputs, lengths in ((given, LENGTHS), (packed, None)):
            found = unrolled.decompose(rnn, inputs, lengths, state, expansion=expansion, tolerance=tolerance)
            for d in range(1 + rnn.bidirectional):
                vectors = found.vectors(d)
                total = vectors.sum(dim=2) + found.initial(d)
                assert relative(total, own[d].to(total)) < bound, (shape, batch_first, with_state, d)
                assert relative(found.context(d), own[d].to(total)) < bound
                assert found.residual(d).max() < 10 * bound
                for b, n in enumerate(LENGTHS.tolist()):
                    assert not vectors[b, n:].any()
                    assert not vectors[b, :, n:].any()


@pytest.mark.parametrize(("kind", "options"), [k for k in KINDS if k[1].get("nonlinearity") != "relu"])
def test_the_control_zero_does_not_sum(kind, options):
    for shape in SHAPES:
        rnn = build(kind, options, shape, batch_first=True)
        x = torch.randn(B, T, E).double()
        found = unrolled.decompose(rnn, x, expansion="zero")
        assert found.residual().max() > 1e-2, shape


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_bfloat16_is_opened_in_float32(kind, options):
    rnn = build(kind, options, {"num_layers": 1, "bidirectional": True}, torch.bfloat16, scale=1.0, batch_first=True)
    found = unrolled.decompose(rnn, torch.randn(B, T, E).bfloat16(), expansion="operating")
    assert found.vectors().dtype == torch.float32
    assert found.residual().max() < BOUNDS[torch.bfloat16]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU on this machine")
@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_on_a_gpu(kind, options):
    rnn = build(kind, options, {"num_layers": 2, "bidirectional": False}, torch.float32, batch_first=True).cuda().eval()
    found = unrolled.decompose(rnn, torch.randn(B, T, E).cuda(), LENGTHS, expansion="operating")
    assert found.residual().max() < 1e-4
    assert found.vectors().is_cuda
