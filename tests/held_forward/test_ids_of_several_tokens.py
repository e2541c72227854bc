# ruff: noqa: ARG001, ARG005  # every way takes the model and its ids
"""Ids that a model makes of several tokens, or in Python: they are named, noted, and no bias."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import unrolled
from computed_ids_zoo import IDS, E, Reads, V, account, assert_equal_parts, look_up
from unrolled.errors import StrictError, UsageError


def distinct(m, ids):
    return ids.unique(return_inverse=True)[1]


SEVERAL = {
    "add": lambda m, ids: ids[:, :-1] * V + ids[:, 1:],
    "unique": distinct,
    "cumsum": lambda m, ids: ids.cumsum(1),
    "tolist": lambda m, ids: torch.tensor(ids.tolist()),
    "long": lambda m, ids: (ids / 4).long(),
    "as_strided": lambda m, ids: ids.as_strided((2, 2, 2), (3, 1, 1)).sum(2),
    "view": lambda m, ids: ids.view(torch.int32)[:, ::2].long(),
    "maximum": lambda m, ids: torch.maximum(ids[:, :-1], ids[:, 1:]),
}


@pytest.mark.parametrize("operation", SEVERAL)
def test_ids_of_several_tokens_are_named_and_noted_and_are_no_bias(operation):
    change = SEVERAL[operation]
    found, model = account(look_up(change)), Reads(None)
    given = account(look_up(lambda m, ids: ids), change(model, IDS))
    name = f"table.weight at ids that {operation} made"
    assert set(found.texts) == {"1"}
    assert set(found.constants) == {name}
    assert "table.weight" not in found.biases
    torch.testing.assert_close(found.constants[name], given.texts["0"].sum(1), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(found.texts["1"], given.texts["1"], rtol=1e-9, atol=1e-12)
    (note,) = (note for note in found.notes if name in note)
    assert "cannot be followed to single tokens" in note
    with pytest.raises(StrictError, match=operation):
        account(look_up(change), strict=True)


def test_ids_whose_bytes_are_read_in_a_type_of_the_same_size_are_those_of_their_tokens():
    found = account(look_up(lambda m, ids: ids.int().view(torch.int32)))
    assert_equal_parts(found, account(look_up(lambda m, ids: ids)))
    assert found.texts["0"].any()


JOINED = {
    "cat": lambda ids: torch.cat((ids[:, :1], ids[:, 1:]), 1),
    "hstack": lambda ids: torch.hstack([ids[:, :1], ids[:, 1:]]),
    "stack": lambda ids: torch.stack(ids.unbind(1), 1),
}


def joined_and_not(join, way):
    """Account for a way to read ids that were joined of parts, and for the same way without that."""
    return account(lambda m, ids: way(m, join(ids))), account(way)


@pytest.mark.parametrize("join", JOINED.values(), ids=JOINED)
def test_ids_that_were_joined_are_no_mask(join):
    for change in (lambda _, ids: ids.cumsum(1), lambda _, ids: ids[:, 1:] + ids[:, :-1]):
        found, expected = joined_and_not(join, look_up(change))
        assert_equal_parts(found, expected)
        assert "table.weight" not in found.biases
    found, expected = joined_and_not(join, lambda m, ids: m.number(ids[..., None].double()))
    assert_equal_parts(found, expected)
    assert found.features["0"].any()


@pytest.mark.parametrize("join", JOINED.values(), ids=JOINED)
def test_masks_that_were_joined_are_a_mask(join):
    """The control: a count of answers about tokens is of no token."""
    found = account(look_up(lambda m, ids: join(ids != 4).long().cumsum(1)))
    assert_equal_parts(found, account(look_up(lambda m, ids: (ids != 4).long().cumsum(1))))
    assert "table.weight" in found.biases


def counted(m, ids):
    """Number the tokens that are no padding, as RoBERTa does; 4 is padding here."""
    real = (ids != 4).long()
    return real.cumsum(1) * real + 1


def numbered(ids):
    return torch.arange(1, ids.shape[1] + 1).repeat(len(ids), 1)


KEPT = {
    "a product": lambda m, ids: numbered(ids) * (ids != 4) + 1,
    "a product in place": lambda m, ids: numbered(ids).mul_(ids != 4) + 1,
    "a choice": lambda m, ids: torch.where(ids != 4, numbered(ids), 0) + 1,
    "a bitwise and": lambda m, ids: (numbered(ids) & -(ids != 4).long()) + 1,
    "a count": counted,
}


@pytest.mark.parametrize("way", KEPT)
def test_places_that_a_mask_keeps_are_of_no_token(way):
    given = KEPT[way](None, IDS)
    found, expected = account(look_up(KEPT[way])), account(lambda m, ids: m.table(given))
    assert set(found.texts) == {"1"}
    assert_equal_parts(found, expected)
    marked = account(look_up(lambda m, ids: 2 * (ids != 4) + 1))  # the control: a mark of each token is its own
    assert float(marked.texts["0"].abs().min()) > 1e-6


PAIRS = {
    "neighbours": lambda m, ids: ids[:, :-1] * V + ids[:, 1:],
    "a sum": lambda m, ids: torch.add(ids[:, :2], ids[:, 1:], alpha=V),
    "in place": lambda m, ids: ids[:, :2].clone().add_(V * ids[:, 1:]),
}


@pytest.mark.parametrize("way", PAIRS)
def test_numbers_of_pairs_are_ids_though_each_id_is_zero_or_one(way):
    change, binary = PAIRS[way], torch.tensor([[1, 0, 1], [0, 0, 1]])
    found = account(look_up(change), binary)
    given = account(look_up(lambda m, ids: ids), change(Reads(None), binary))
    assert set(found.constants) == {"table.weight at ids that add made"}
    (part,) = found.constants.values()
    torch.testing.assert_close(part, given.texts["0"].sum(1), rtol=1e-9, atol=1e-12)
    assert any("cannot be followed to single tokens" in note for note in found.notes)
    places = account(look_up(lambda m, ids: (ids >= 0).long().cumsum(1)), binary)  # the control
    assert set(places.constants) == set()
    assert "table.weight" in places.biases


COUNTS = {
    "bincount": lambda m, ids: m.of_one_hot(torch.stack([torch.bincount(each, minlength=V) for each in ids]).double()),
    "scatter": lambda m, ids: m.of_one_hot(torch.zeros(len(ids), V).double().scatter_(1, ids, 1.0)),
    "getitem": lambda m, ids: m.of_one_hot.weight[ids[:, 0] % E, ids[:, 1]][:, None].expand(-1, E),
}


@pytest.mark.parametrize("operation", COUNTS)
def test_numbers_of_several_tokens_are_named_and_noted(operation):
    found = account(lambda m, ids: COUNTS[operation](m, ids)[:, None])
    (name,) = found.constants
    assert f"that {operation} made" in name
    assert any(name in note for note in found.notes)
    assert set(found.texts) == {"1"}
    assert "of_one_hot.weight" not in found.biases


@pytest.mark.filterwarnings("ignore:To copy construct from a tensor")
def test_new_tensor_reads_its_data_and_not_the_tensor_whose_type_it_has():
    for operation, data in {"new_tensor": lambda ids: ids, "tolist": lambda ids: ids.tolist()}.items():
        found = account(look_up(lambda m, ids, data=data: ids.new_tensor(data(ids))))
        assert set(found.constants) == {f"table.weight at ids that {operation} made"}
    plain = account(look_up(lambda m, ids: torch.tensor([[3, 5, 8], [1, 2, 3]])))
    assert_equal_parts(account(look_up(lambda m, ids: ids.new_tensor([[3, 5, 8], [1, 2, 3]]))), plain)


@pytest.mark.parametrize("operation", ["add", "unique", "bincount", "scatter", "long", "as_strided"])
def test_a_model_that_reads_such_ids_only_is_refused_for_that(operation):
    class Alone(Reads):
        def forward(self, ids):
            return self.head(self.way(self, ids).sum(1))

    way = look_up(SEVERAL[operation]) if operation in SEVERAL else lambda m, ids: COUNTS[operation](m, ids)[:, None]
    with pytest.raises(
        UsageError,
        match=rf"ids or numbers that {operation} made of tokens' ids, which cannot be followed",
    ):
        unrolled.account(Alone(way), IDS, target=1)
    with pytest.raises(UsageError, match="by more than masks, which are held; check the target"):
        unrolled.account(Alone(lambda m, ids: m.number((ids == 4).double()[..., None])), IDS, target=1)
    with pytest.raises(UsageError, match=r"at most by table\.weight at ids that the model made numbers of Python"):
        unrolled.account(Alone(lambda m, ids: PYTHON["and back"](m, ids)[:, None]), IDS, target=1)


PYTHON = {
    "int": lambda m, ids: torch.stack([m.table.weight[int(row[0])] for row in ids]),
    "float": lambda m, ids: torch.stack([m.table.weight[int(float(row[0]))] for row in ids]),
    "item": lambda m, ids: torch.stack([m.table.weight[row[0].item(), :] for row in ids]),
    "tolist": lambda m, ids: torch.stack([m.table.weight[row[0]] for row in ids.tolist()]),
    "and back": lambda m, ids: m.table(torch.tensor([int(row[0]) for row in ids])),
}


@pytest.mark.parametrize("way", PYTHON)
def test_a_table_that_is_read_at_pythons_numbers_is_noted(way):
    found = account(lambda m, ids: m.table(ids) + PYTHON[way](m, ids)[:, None])
    assert [note for note in found.notes if "reads table.weight at such numbers" in note]
    others = account(lambda m, ids: m.table(ids) + m.table.weight[ids[:, 0].max().item() * 0 + 1])
    assert not [note for note in others.notes if "at such numbers" in note]


def test_numbers_of_the_code_are_no_ids_where_ids_were_counted_in_python():
    def way(number):
        def counted(m, ids):
            return m.table(ids) * len(ids.tolist()) + number(m)

        return counted

    plain = account(way(lambda m: torch.full_like(m.table.weight[0], 0.25)))
    assert set(plain.constants) == {"constants"}
    for number in (torch.tensor(0.25), torch.tensor([0.25, 0.25, 0.25, 0.25]), torch.from_numpy(np.full(E, 0.25))):
        found = account(way(lambda m, data=number: torch.as_tensor(data.tolist(), dtype=torch.float64)))
        assert_equal_parts(found, plain)
    ids = account(way(lambda m: torch.tensor([1, 2, 3, 4])))
    assert any("tolist made of ids" in note for note in ids.notes)
