"""An entry that has the position of a token depends on that token alone, but for choices, which are held."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unrolled.held_forward import HeldForward, Rows

V = 20
IDS = torch.tensor([[7, 3, 12, 3], [5, 18, 2, 9]])
OTHER = torch.randint(0, V, (3, V), generator=torch.Generator().manual_seed(0))


def in_place(change):
    def changed(ids):
        ids = ids.clone()
        change(ids)
        return ids

    return changed


def written(ids):
    made = torch.zeros(2, 6, dtype=torch.int64)
    made[:, 1:5] = ids
    return made


def copied(ids):
    made = torch.zeros(2, 6, dtype=torch.int64)
    made[:, 1:5].copy_(ids)
    return made


def packed_and_padded(ids):
    packed = nn.utils.rnn.pack_padded_sequence(ids, torch.tensor([2, 4]), batch_first=True, enforce_sorted=False)
    return nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)[0]


def written_in_a_view(ids):
    ids = ids.clone()
    ids[:, :2][:] = ids[:, 2:].clone()
    return ids


def read_in_another_view(ids):
    ids = ids.t().clone().t()  # its columns lie in memory one after the other
    before = ids[:, 1:]
    ids[:, :2].copy_(ids[:, 2:].clone())
    return before


WAYS = {
    "a sum over time": lambda ids: ids + ids.sum(1, keepdim=True),
    "differences": lambda ids: ids[:, 1:] - ids[:, :-1],
    "differences of torch": lambda ids: ids.diff(dim=1),
    "a token compared with all": lambda ids: (ids[:, :, None] == ids[:, None, :]).long(),
    "ranks": lambda ids: ids.argsort(1),
    "the largest": lambda ids: ids.max(dim=1)[0],
    "the larger of two": lambda ids: torch.max(ids, ids.flip(1)),
    "a running maximum": lambda ids: ids.cummax(1)[0],
    "added to in place": in_place(lambda ids: ids[:, 1:].add_(ids[:, :-1].clone())),
    "a column picked": lambda ids: OTHER[ids[:, :1] % 3, ids],
    "rows of a table of ids": lambda ids: OTHER[:, ids],
    "picked along an axis": lambda ids: OTHER.gather(1, ids[:1].expand(3, 4)),
    "taken along an axis": lambda ids: OTHER.take_along_dim(ids[:1].expand(3, 4), 1),
    "added at an index": lambda ids: ids.index_put((torch.tensor([0]),), ids[1:], accumulate=True),
    "one_hot": lambda ids: F.one_hot(ids, V).transpose(1, 2)[:, 3:],
    "one_hot, the largest": lambda ids: F.one_hot(ids, V).argmax(1),
    "several ids of a vector": lambda ids: torch.zeros(2, V, dtype=torch.int64).scatter(1, ids, 1),
    "scattered into ids": lambda ids: ids.scatter(1, ids[:, :1] % 4, 0),
    "added up at ids": lambda ids: torch.zeros(2, V, dtype=torch.int64).scatter_add(1, ids, torch.ones_like(ids)),
    "padded": lambda ids: F.pad(ids, (1, 2), value=4),
    "repeated": lambda ids: ids.repeat_interleave(2, 1),
    "repeated by ids": lambda ids: torch.arange(4).repeat_interleave(ids[0] % 3),
    "rolled and halved": lambda ids: (ids.roll(1, 1) // 2) % 5,
    "of named operands": lambda ids: torch.clamp(input=ids, min=ids.flip(1)),
    "joined": lambda ids: torch.cat([ids * 2, ids.new_zeros(2, 1), ids[:, :1]], 1),
    "of the smallest": lambda ids: torch.minimum(ids, ids.min()),
    "a product of matrices": lambda ids: ids @ ids.t(),
    "places of a kind": lambda ids: (ids > 4).nonzero(),
    "joined with sums": lambda ids: torch.cat([ids, ids.sum(1, keepdim=True)], 1),
    "written over by sums": in_place(lambda ids: ids.__setitem__((slice(None), 0), ids.sum(1))),
    "chosen beside sums": lambda ids: torch.where(ids > 5, ids, ids.sum()),
    "a table of sums": lambda ids: ids[0].cumsum(0)[ids % 4],
    "summed in place": in_place(lambda ids: ids.cumsum_(1)),
    "counted": lambda ids: (ids > 4).long().cumsum(1),
    "unfolded": lambda ids: ids.unfold(1, 2, 1),
    "found in a table of ids": lambda ids: torch.searchsorted(ids[0].sort().values, torch.arange(0, 20, 5)),
    "found among ids": lambda ids: torch.isin(torch.arange(4), ids[0]).long(),
    "between bounds that are ids": lambda ids: torch.bucketize(torch.arange(0, 20, 5), ids[0].sort().values),
    "found in a table": lambda ids: torch.searchsorted(torch.arange(0, 20, 5), ids),
    "from a list": lambda ids: torch.stack([row[k] for row in ids for k in range(4)]),
}

CHOICES = {
    "sorted": lambda ids: ids.sort(1).values,
    "sorted the other way": lambda ids: ids.sort(dim=1, descending=True)[0],
    "chosen by a neighbour": lambda ids: torch.where(ids[:, 1:] > 5, ids[:, :-1], 0),
    "masked by a neighbour": lambda ids: ids[:, 1:].masked_fill(ids[:, :-1] > 5, 0),
    "masked in place by a neighbour": in_place(lambda ids: ids[:, 1:].masked_fill_(ids[:, :-1].clone() > 5, 0)),
    "written by a mask of a neighbour": in_place(lambda ids: ids.__setitem__(ids.roll(1, 1) > 5, 1)),
    "shifted in place": in_place(lambda ids: ids.__setitem__((slice(None), slice(1, 4)), ids[:, :3].clone())),
    "written": written,
    "copied": copied,
    "picked at ids of ids": lambda ids: ids.gather(1, ids % 4),
    "indexed by ids": lambda ids: ids[:, ids[0] % 4],
    "repeated by other ids": lambda ids: ids[0].repeat_interleave(ids[1] % 3),
    "chosen by a mask": lambda ids: ids[ids > 4],
    "windows": lambda ids: ids.unfold(1, 3, 1),
    "parts": lambda ids: torch.cat(torch.tensor_split(ids, 3, 1)[::-1], 1),
    "turned": lambda ids: torch.rot90(ids, 1),
    "columns": lambda ids: torch.column_stack([ids[:, 2:], ids[:, 0]]),
    "taken": lambda ids: ids.take(torch.tensor([5, 0, 3])),
    "a triangle": lambda ids: ids.tril(-1),
    "a diagonal": lambda ids: torch.diag_embed(ids),
    "written in a view": written_in_a_view,
    "read in another view": read_in_another_view,
    "put at an index": lambda ids: torch.zeros(2, 5, dtype=torch.int64).index_put((torch.tensor([1]),), ids[0, :1]),
    "put at a mask": lambda ids: torch.zeros_like(ids).index_put((ids > 4,), ids[ids > 4]),
    "copied at an index": lambda ids: ids.new_zeros(2, 6).index_copy(1, torch.tensor([5, 0]), ids[:, 2:]),
    "copied at an index in place": in_place(lambda ids: ids.index_copy_(1, torch.tensor([3, 0]), ids[:, 1:3].clone())),
    "scattered": lambda ids: torch.zeros_like(ids).scatter(1, torch.tensor([[3, 2, 1, 0]] * 2), ids),
    "zeros scattered into ids": lambda ids: ids.scatter(1, torch.tensor([[3], [1]]), 0),
    "scattered by a mask": lambda ids: torch.zeros_like(ids).masked_scatter(ids > 4, ids[ids > 4]),
    "written into a slice": lambda ids: ids.new_zeros(2, 6).slice_scatter(ids, 1, 1, 5),
    "written into a column": lambda ids: ids.select_scatter(ids[:, 3], 1, 0),
    "from a list of tensors": lambda ids: torch.tensor([ids[1, 3], ids[0, 0]]),
    "from a list of tensors and numbers": lambda ids: torch.tensor([ids[1, 3], 5, ids[0, 0]]),
    "packed and padded": lambda ids: packed_and_padded(ids),
    "rows of two axes": lambda ids: torch.cat([torch.atleast_2d(row) for row in ids]),
    "three axes": lambda ids: torch.atleast_3d(ids.unbind(1))[2],
    "made as wide": lambda ids: torch.broadcast_tensors(torch.zeros(3, 1, 1), ids)[1],
    "a mesh": lambda ids: torch.meshgrid(ids[0], torch.arange(2), indexing="ij")[0],
    "a mesh of two": lambda ids: torch.stack(torch.meshgrid([ids[0], ids[1]], indexing="xy")),
    "reversed by ids": lambda ids: ids.index_select(1, ids[0].argsort()),
}
"""They move ids, and choose by others which ones."""


def followed(way):
    mode = HeldForward(Rows(nn.Identity()))
    ids = IDS.clone()
    mode.positions.open(ids, torch.arange(8).view(2, 4))
    with mode:
        made = way(ids)
    return made, mode.positions.get(made), mode.vectors.computed.of(made)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_an_entry_with_a_position_depends_on_that_token_alone(way):
    made, positions, several = followed(WAYS[way])
    assert (positions is None) != (several is None)  # each is one or the other: nothing is lost
    if positions is None:
        return
    assert positions.shape == made.shape
    for token in range(8):
        for other in range(V):
            ids = IDS.clone()
            ids.view(-1)[token] = other
            again: Tensor = WAYS[way](ids)
            if again.shape == made.shape:
                assert torch.equal(again[positions != token], made[positions != token])


@pytest.mark.parametrize("way", CHOICES, ids=str)
def test_an_id_that_was_moved_is_that_of_the_token_at_its_position(way):
    made, positions, several = followed(CHOICES[way])
    assert several is None
    assert positions.shape == made.shape
    assert torch.equal(made[positions >= 0], IDS.view(-1)[positions[positions >= 0]])
    assert (positions >= 0).any()


SEVERAL = (
    "a sum over time",
    "differences",
    "differences of torch",
    "ranks",
    "the larger of two",
    "added at an index",
    "a running maximum",
    "several ids of a vector",
    "added up at ids",
    "of the smallest",
    "a product of matrices",
    "joined with sums",
    "written over by sums",
    "chosen beside sums",
    "a table of sums",
    "summed in place",
    "counted",
    "found in a table of ids",
    "between bounds that are ids",
)


@pytest.mark.parametrize("way", SEVERAL)
def test_entries_of_several_tokens_have_no_position(way):
    _, positions, several = followed(WAYS[way])
    assert positions is None
    assert several is not None


@pytest.mark.parametrize(
    "way", ["one_hot", "rows of a table of ids", "rolled and halved", "repeated", "joined", "found in a table"]
)
def test_entries_of_one_token_have_its_position(way):
    _, positions, several = followed(WAYS[way])
    assert several is None
    assert set(range(8)) <= set(positions.unique().tolist())


CASTS = {
    "to": lambda ids: ids.to(torch.uint8),
    "to a device and a type": lambda ids: ids.to("cpu", torch.int8),
    "to another tensor": lambda ids: ids.to(torch.zeros(1, dtype=torch.uint8)),
    "type": lambda ids: ids.type(torch.uint8),
    "type_as": lambda ids: ids.type_as(torch.zeros(1, dtype=torch.uint8)),
    "byte": lambda ids: ids.byte(),
    "short": lambda ids: ids.short(),
    "int": lambda ids: ids.int(),
    "tensor": lambda ids: torch.tensor(ids, dtype=torch.uint8),
    "asarray": lambda ids: torch.asarray(ids, dtype=torch.int16),
}


@pytest.mark.parametrize("name", CASTS)
@pytest.mark.filterwarnings("ignore:To copy construct from a tensor")
def test_a_small_type_of_ids_does_not_cut_off_the_number_of_their_token(name):
    count = 2**15 + 300
    ids = torch.arange(count) % 100
    mode, numbers = HeldForward(Rows(nn.Identity())), torch.arange(count)
    mode.positions.open(ids, numbers)
    with mode:
        cast, reversed_ = (CASTS[name](each).long() for each in (ids, ids.flip(0)))
    assert torch.equal(cast, ids)
    assert torch.equal(mode.positions.get(cast), numbers)
    assert torch.equal(mode.positions.get(reversed_), numbers.flip(0))  # the control: ids that moved
