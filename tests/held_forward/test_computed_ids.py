# ruff: noqa: ARG001, ARG005  # every way takes the model and its ids
"""Token ids that a model computes with: who reads a row of a table is the token whose id it was, and no bias."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from computed_ids_zoo import IDS, E, Reads, V, account, assert_equal_parts, look_up

ONE = torch.ones(1, dtype=torch.float64)


def changed_in_place(m, ids):
    ids = ids.clone()
    ids += m.offsets
    ids //= 2
    return ids.clamp_(max=35)


def unknown_words(m, ids):
    ids = ids.clone()
    ids[ids >= 20] = 1
    return ids


KEPT = {
    "offsets of fields": lambda m, ids: ids + m.offsets,
    "offsets of a list": lambda m, ids: ids + ids.new_tensor([0, 30, 60]),
    "multiplied": lambda m, ids: 3 * ids,
    "subtracted from a number": lambda m, ids: 100 - ids,
    "divided": lambda m, ids: ids // 4,
    "divided by torch.div": lambda m, ids: torch.div(ids, 4, rounding_mode="floor"),
    "shifted bits": lambda m, ids: ids >> 1,
    "magnitude": lambda m, ids: (-ids).abs(),
    "hashed": lambda m, ids: (ids * 7 + 3) % 31,
    "limited by a tensor": lambda m, ids: torch.minimum(ids, m.cap),
    "limited": lambda m, ids: ids.clamp(max=9),
    "replaced by where": lambda m, ids: torch.where(ids > 20, 1, ids),
    "replaced by masked_fill": lambda m, ids: ids.masked_fill(ids > 20, 1),
    "replaced in place": unknown_words,
    "changed in place": changed_in_place,
    "renamed by a table": lambda m, ids: m.renamed[ids],
    "renamed by index_select": lambda m, ids: m.renamed.index_select(0, ids.reshape(-1)).view_as(ids),
    "renamed by take": lambda m, ids: m.renamed.take(ids),
    "sorted into ranges": lambda m, ids: torch.bucketize(ids, torch.tensor([5, 15, 25])),
    "answered": lambda m, ids: (ids > 10).long(),
    "a Variable": lambda m, ids: torch.autograd.Variable(ids),
    "a new tensor": lambda m, ids: torch.as_tensor(ids).clone(),
    "multiplied by its mask": lambda m, ids: ids * (ids != 3),
}


@pytest.mark.parametrize("way", KEPT, ids=str)
def test_ids_that_are_computed_one_by_one_keep_their_tokens(way):
    change = KEPT[way]
    found, model = account(look_up(change)), Reads(None)
    assert_equal_parts(found, account(look_up(lambda m, ids: ids), change(model, IDS)))
    assert found.texts["0"].abs().min() > 0  # and not by chance


VECTORS = {
    "rows picked by gather": lambda m, ids: m.table.weight.gather(0, ids.reshape(-1, 1).expand(-1, E)).view(
        *ids.shape, E
    ),
    "rows picked by index_select": lambda m, ids: m.table.weight.index_select(0, ids.reshape(-1)).view(*ids.shape, E),
    "columns picked": lambda m, ids: m.table.weight.t()[:, ids].permute(1, 2, 0),
    "rows picked with a slice": lambda m, ids: m.table.weight[ids, :],
}
ONE_HOT = {
    "one_hot": lambda m, ids: m.of_one_hot(F.one_hot(ids, V).double()),
    "one_hot with channels first": lambda m, ids: m.over_time(F.one_hot(ids, V).transpose(1, 2).double()).mT,
    "a part of one_hot": lambda m, ids: F.one_hot(ids, V)[..., 1:].double() @ m.of_one_hot.weight.T[1:],
    "written by scatter": lambda m, ids: m.of_one_hot(
        torch.zeros(*ids.shape, V).double().scatter_(2, ids[..., None], 1)
    ),
    "written into integers": lambda m, ids: m.of_one_hot(
        torch.zeros(*ids.shape, V, dtype=torch.int64).scatter(2, ids[..., None], 1).double()
    ),
    "compared": lambda m, ids: m.of_one_hot((ids[..., None] == torch.arange(V)).double()),
    "of the type of a value": lambda m, ids: m.of_one_hot(F.one_hot(ids, V).to(m.words(ids))),
    "of the type of a value by type_as": lambda m, ids: m.of_one_hot(F.one_hot(ids, V).type_as(m.words(ids))),
    "mixed with a number": lambda m, ids: m.of_one_hot(F.one_hot(ids, V) * ONE),
}


@pytest.mark.parametrize("way", VECTORS, ids=str)
def test_rows_of_a_table_belong_to_their_tokens_however_they_are_picked(way):
    assert_equal_parts(account(VECTORS[way]), account(look_up(lambda m, ids: ids)))


@pytest.mark.parametrize("way", ONE_HOT, ids=str)
def test_one_hot_vectors_belong_to_their_tokens_however_they_are_made(way):
    assert_equal_parts(account(ONE_HOT[way]), account(lambda m, ids: F.embedding(ids, m.of_one_hot.weight.T)))


def test_numbers_of_a_table_with_one_for_each_id_belong_to_their_tokens():
    found = account(lambda m, ids: m.scalar[ids][..., None].expand(-1, -1, E))
    taken = account(lambda m, ids: m.scalar.take(ids)[..., None].expand(-1, -1, E))
    assert_equal_parts(found, account(lambda m, ids: F.embedding(ids, m.scalar[:, None]).expand(-1, -1, E)))
    assert_equal_parts(taken, found)


def one_by_one(read, ids):
    return torch.stack([torch.stack([read(each) for each in text]) for text in ids])[..., None].expand(-1, -1, E)


def test_numbers_that_are_read_one_by_one_belong_to_the_tokens_of_those_that_are_read_at_once():
    found = account(lambda m, ids: one_by_one(lambda each: m.scalar[each], ids))
    assert_equal_parts(found, account(lambda m, ids: m.scalar[ids][..., None].expand(-1, -1, E)))
    of_two = account(lambda m, ids: one_by_one(lambda each: m.of_one_hot.weight[each % E, each], ids))
    assert_equal_parts(of_two, account(lambda m, ids: m.of_one_hot.weight[ids % E, ids][..., None].expand(-1, -1, E)))
    assert not torch.allclose(of_two.texts["0"], found.texts["0"])


def test_places_in_a_text_belong_to_the_table_though_a_mask_counts_them():
    places = (IDS != 21).long().cumsum(1)
    found = account(lambda m, x: m.table(x) + m.scalar[(x != 21).long().cumsum(1)][..., None])
    assert_equal_parts(found, account(lambda m, x: m.table(x) + m.scalar[places][..., None]))
    assert found.biases["scalar"].abs().min() > 0


def test_ids_that_no_token_stands_for_belong_to_the_table():
    dropped = torch.tensor([[False, True, False], [False, False, True]])
    found = account(look_up(lambda m, ids: ids.masked_fill(dropped, 1)))
    assert not found.texts["0"][dropped].any()
    assert found.texts["0"][~dropped].abs().min() > 0
    assert found.biases["table.weight"].abs().min() > 0
