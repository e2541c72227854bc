"""Ids that a model turns into floating-point numbers and back are the ids that they were, unless they were changed."""

from __future__ import annotations

import pytest
import torch

from computed_ids_zoo import account, assert_equal_parts, look_up


def scaled(_, ids):
    numbers = ids.float()
    numbers *= 2
    return (numbers / 2).long()


def shifted_through_a_view(_, ids):
    numbers = ids.float()
    numbers[:, 0] += numbers[:, 1]  # 4 + 9: an id of two tokens
    return numbers.long()


BACK = {
    "float": lambda _, ids: ids.float().long(),
    "to": lambda _, ids: ids.to(torch.float64).to(torch.int32),
    "double": lambda _, ids: ids.double().int(),
    "twice": lambda _, ids: ids.float().long().double().to(torch.int64),
    "type_as": lambda m, ids: ids.type_as(m.scalar).type_as(ids),
    "type": lambda _, ids: ids.type(torch.float32).type(torch.int64),
}


@pytest.mark.parametrize("change", BACK, ids=str)
def test_they_have_the_account_of_ids_that_were_looked_up_at_once(change):
    assert_equal_parts(account(look_up(BACK[change])), account(look_up(lambda _, ids: ids)))


def test_zeros_and_ones_among_them_are_ids_and_no_mask():
    def both(back):
        return lambda m, ids: m.table(back(ids[:, :2])) + m.number(back(ids[:, :2]).double()[..., None])

    ids = torch.tensor([[1, 0, 21], [0, 1, 3]])
    assert_equal_parts(account(both(lambda x: x.float().long()), ids), account(both(lambda x: x), ids))


def test_a_question_about_their_type_changes_nothing():
    def asks(m, ids):
        numbers = ids.float()
        assert numbers.type() == "torch.FloatTensor"
        return m.table(numbers.long()) + m.number(numbers.to(torch.complex64).real.double()[..., None] * 0)

    assert account(asks).closes


def test_they_are_used_as_numbers_as_well():
    def both(back):
        return lambda m, ids: m.table(back(ids)) + m.number(ids.double()[..., None])

    assert_equal_parts(account(both(lambda ids: ids.double().long())), account(both(lambda ids: ids)))


def test_the_same_floats_are_read_as_numbers_and_as_ids():
    def way(m, ids):
        numbers = ids.double()
        return m.table(numbers.long()) + m.number(numbers[..., None])

    expected = account(lambda m, ids: m.table(ids) + m.number(ids.double()[..., None]))
    assert_equal_parts(account(way), expected)


@pytest.mark.parametrize("change", [scaled, shifted_through_a_view], ids=lambda change: change.__name__)
def test_numbers_that_were_changed_meanwhile_are_of_no_single_token(change):
    found = account(look_up(change))
    assert found.closes
    assert "0" not in found.texts
    assert [note for note in found.notes if "at ids that long made" in note]
