"""What is known of the entries of a tensor is known behind every operation that puts them elsewhere."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from unrolled.held_forward import HeldForward, Rows
from unrolled.held_forward.increments.increments import SecantIncrements
from unrolled.held_forward.tensor_facts.moves import MOVES

X = torch.randn(2, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).abs() + 0.5
OTHER = torch.zeros(8, 4)
INDEX = torch.tensor([2, 0, 1])
WIDE = torch.tensor([[[1, 0, 3, 2]]]).expand(2, 4, 4)
MASK = torch.arange(32).reshape(2, 4, 4) % 3 > 0

WAYS = {
    "view": lambda x: x.view(8, 4),
    "view_as": lambda x: x.view_as(OTHER),
    "reshape": lambda x: x.reshape(4, 8),
    "reshape_as": lambda x: x.reshape_as(OTHER),
    "permute": lambda x: x.permute(2, 0, 1),
    "transpose": lambda x: torch.swapaxes(x, 0, 2),
    "t": lambda x: x[1].t(),
    "adjoint": lambda x: x.mT,
    "squeeze": lambda x: x[:1].squeeze(0),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "flatten": lambda x: x.flatten(1),
    "unflatten": lambda x: x.unflatten(1, (2, 2)),
    "ravel": lambda x: x.ravel(),
    "movedim": lambda x: x.movedim(0, -1),
    "expand": lambda x: x.expand(3, 2, 4, 4),
    "expand_as": lambda x: x[:1].expand_as(torch.zeros(2, 4, 4)),
    "broadcast_to": lambda x: torch.broadcast_to(x[:, :1], (2, 4, 4)),
    "repeat": lambda x: x.repeat(1, 2, 1),
    "repeat_interleave": lambda x: x.repeat_interleave(2, 1),
    "tile": lambda x: x.tile(2),
    "flip": lambda x: x.flip(1, 2),
    "fliplr": lambda x: x.fliplr(),
    "flipud": lambda x: x.flipud(),
    "roll": lambda x: x.roll(1, 2),
    "rot90": lambda x: torch.rot90(x, 1, (1, 2)),
    "narrow": lambda x: x.narrow(1, 1, 2),
    "narrow_copy": lambda x: x.narrow_copy(1, 1, 2),
    "select": lambda x: x.select(1, 2),
    "select_copy": lambda x: torch.select_copy(x, 1, 2),
    "index_select": lambda x: x.index_select(1, INDEX),
    "gather": lambda x: x.gather(2, WIDE),
    "take": lambda x: x.take(INDEX),
    "take_along_dim": lambda x: x.take_along_dim(WIDE, 2),
    "masked_select": lambda x: x.masked_select(MASK),
    "getitem": lambda x: x[:, INDEX, 1:],
    "unbind": lambda x: x.unbind(1)[2],
    "chunk": lambda x: x.chunk(2, 1)[1],
    "split": lambda x: x.split(3, 1)[1],
    "split_with_sizes": lambda x: x.split_with_sizes([1, 3], 1)[1],
    "tensor_split": lambda x: x.tensor_split(3, 1)[1],
    "hsplit": lambda x: x.hsplit(2)[1],
    "vsplit": lambda x: x.vsplit(2)[1],
    "dsplit": lambda x: x.dsplit(2)[1],
    "unsafe_chunk": lambda x: x.unsafe_chunk(2, 1)[1],
    "unsafe_split": lambda x: x.unsafe_split(3, 1)[1],
    "slice": lambda x: torch.ops.aten.slice(x, 1, 1, 3),
    "unfold": lambda x: x.unfold(1, 2, 1),
    "diagonal": lambda x: x.diagonal(dim1=1, dim2=2),
    "linalg_diagonal": lambda x: torch.linalg.diagonal(x),
    "clone": lambda x: x.clone(),
    "contiguous": lambda x: x.mT.contiguous(),
    "positive": lambda x: x.positive(),
    "resolve_conj": lambda x: x.resolve_conj(),
    "resolve_neg": lambda x: x.resolve_neg(),
    "cpu": lambda x: x.cpu(),
    "channel_shuffle": lambda x: torch.channel_shuffle(x[:, :, :, None], 2),
    "pixel_shuffle": lambda x: torch.pixel_shuffle(x.transpose(0, 1), 2),
    "pixel_unshuffle": lambda x: torch.pixel_unshuffle(x, 2),
}


def held(operation):
    """Return the result of an operation on x, what each entry of x contributes, and the gate that the result is."""
    rows = Rows(nn.Module())
    x, mode = rows.open("feature", "x", X), HeldForward(rows)
    with torch.enable_grad(), mode:
        result = operation(x)
    gradient, leaf = torch.zeros_like(X), rows.rows[0].leaf
    if result.requires_grad:
        weights = torch.linspace(0.5, 1.5, result.numel(), dtype=X.dtype).reshape(result.shape)
        (gradient,) = torch.autograd.grad((weights * result).sum(), leaf)
    return result.detach(), (gradient * leaf).detach(), mode.gates.of(result)


def test_every_move_has_an_example():
    assert WAYS.keys() == MOVES - {"cuda"}  # which needs a GPU


@pytest.mark.parametrize("name", WAYS)
def test_ids_stay_those_of_their_tokens(name):
    numbers, mode = torch.arange(32).reshape(2, 4, 4), HeldForward(Rows(nn.Module()))
    ids = numbers % 5
    mode.positions.open(ids, numbers)
    with mode:
        moved, summed = WAYS[name](ids), ids.cumsum(1)
    assert torch.equal(moved, WAYS[name](numbers % 5))
    assert torch.equal(mode.positions.get(moved), WAYS[name](numbers))
    assert mode.positions.get(summed) is None  # the control: entries of several tokens


@pytest.mark.parametrize("name", WAYS)
def test_logarithms_stay_those_of_their_values(name):
    value, found, _ = held(lambda x: WAYS[name](x.log()).exp())
    expected, wanted, _ = held(WAYS[name])
    torch.testing.assert_close(value, expected, rtol=1e-14, atol=0)
    torch.testing.assert_close(found, wanted, rtol=1e-13, atol=1e-14)
    _, product, _ = held(lambda x: x.log().sum(1).exp())
    assert not product.any()  # the control: a product over an axis is held


@pytest.mark.parametrize("name", WAYS)
def test_gates_stay_gates(name):
    value, _, gate = held(lambda x: WAYS[name](torch.sigmoid(x)))
    torch.testing.assert_close(gate.at_zero, torch.full_like(value, 0.5))
    torch.testing.assert_close(gate.risen.detach(), WAYS[name](X.sigmoid()) - 0.5)
    assert held(lambda x: torch.sigmoid(x).cumsum(1))[2] is None  # the control


@pytest.mark.parametrize("name", WAYS)
def test_increments_are_moved_as_values_are(name):
    mode, base = SecantIncrements(), torch.zeros_like(X)
    block = mode.follow(X.clone(), base, X)
    with mode:
        moved: Tensor = WAYS[name](block)
    torch.testing.assert_close(moved, WAYS[name](X))
    torch.testing.assert_close(mode.point(moved)[1], WAYS[name](X))
