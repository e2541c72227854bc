"""Ids that a model makes by numpy: no token has them, neither those that numpy read nor others beside them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import unrolled
from computed_ids_zoo import IDS, E, V, account, assert_equal_parts, look_up
from unrolled.errors import StrictError

OTHERS = torch.tensor([[7, 1, 2], [3, 5, 8]])
BY_NUMPY = {
    "computed": lambda ids: torch.from_numpy((ids.numpy() + 1) % V),
    "as they are": lambda ids: torch.from_numpy(ids.numpy()),
    "copied": lambda ids: torch.from_numpy(ids.numpy().copy()),
    "of other numbers": lambda ids: torch.from_numpy(np.minimum(np.asarray(ids), 9)),
    "moved": lambda ids: torch.from_numpy(ids.numpy().copy())[:, [2, 0, 1]],
}


class Pairs(nn.Module):
    """Reads a text, and the number of each pair of its ids and those of another text."""

    def __init__(self, other):
        super().__init__()
        torch.manual_seed(0)
        self.other = other
        self.words, self.pairs, self.head = nn.Embedding(V, E), nn.Embedding(V * V, E), nn.Linear(E, 2)
        self.double()

    def forward(self, ids, others):
        return self.head((self.words(ids) + self.pairs(ids * V + self.other(others))).sum(1))


@pytest.mark.parametrize("way", BY_NUMPY)
def test_ids_that_numpy_made_are_named_and_noted_and_are_no_bias(way):
    found = account(look_up(lambda _, ids: BY_NUMPY[way](ids)))
    made = BY_NUMPY[way](IDS)
    given = account(look_up(lambda _, ids: ids), made)
    (name,) = found.constants
    assert name.startswith("table.weight at ids that")
    assert "table.weight" not in found.biases
    torch.testing.assert_close(found.constants[name], given.texts["0"].sum(1), rtol=1e-9, atol=1e-12)
    assert [note for note in found.notes if name in note and "cannot be followed to single tokens" in note]
    with pytest.raises(StrictError, match="cannot be followed"):
        account(look_up(lambda _, ids: BY_NUMPY[way](ids)), strict=True)


@pytest.mark.parametrize("way", BY_NUMPY)
def test_numbers_of_pairs_are_not_credited_to_the_ids_of_the_other_text(way):
    model = Pairs(BY_NUMPY[way])
    found = unrolled.account(model, IDS, OTHERS, target=1)
    (name,) = found.constants
    assert name.startswith("pairs.weight at ids that")
    assert [note for note in found.notes if name in note]
    words = model.words(IDS) @ model.head.weight[1]
    torch.testing.assert_close(found.texts["0"], words.detach(), rtol=1e-9, atol=1e-12)


def test_integers_in_the_memory_of_numpy_are_the_models_own_where_no_ids_went_there():
    own = np.array([[3, 5, 8], [1, 2, 3]])
    found = account(look_up(lambda _m, _ids: torch.from_numpy(own)))
    assert_equal_parts(found, account(look_up(lambda _m, _ids: torch.tensor([[3, 5, 8], [1, 2, 3]]))))
    assert not [note for note in found.notes if "ids" in note]


KEEPS = {
    "a buffer": lambda model, shift: model.register_buffer("shift", shift),
    "an attribute": lambda model, shift: setattr(model, "shift", shift),
    "a list": lambda model, shift: setattr(model, "shifts", [shift]),
}


@pytest.mark.parametrize("way", KEEPS)
def test_integers_of_numpy_that_the_model_had_before_are_no_ids(way):
    """Ids went to numpy, and the model adds what was made of an array: pairs stay those of the one text."""

    class Shifted(Pairs):
        def forward(self, ids, others):
            others.numpy()
            return super().forward(ids, (self.shifts[0] if way == "a list" else self.shift).expand_as(ids))

    model, shift = Shifted(lambda shift: shift), torch.from_numpy(np.array([1, 2, 3]))
    KEEPS[way](model, shift)
    found = unrolled.account(model, IDS, OTHERS, target=1)
    assert not found.constants
    read = (model.words(IDS) + model.pairs(IDS * V + shift)) @ model.head.weight[1]
    torch.testing.assert_close(found.texts["0"], read.detach(), rtol=1e-9, atol=1e-12)


def test_ids_of_numpy_that_the_model_keeps_in_its_run_are_ids():
    class Keeps(Pairs):
        def forward(self, ids, others):
            self.kept = torch.from_numpy(others.numpy().copy())
            return super().forward(ids, self.kept)

    found = unrolled.account(Keeps(lambda kept: kept), IDS, OTHERS, target=1)
    (name,) = found.constants
    assert name.startswith("pairs.weight at ids that")
