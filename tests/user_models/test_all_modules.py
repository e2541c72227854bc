"""A model's modules are found wherever it keeps them: in its records, in lists and dictionaries, inside one another."""

from __future__ import annotations

import torch
from torch import nn

from unrolled.user_models.all_modules import all_buffers, all_modules, all_parameters


class Keeper(nn.Module):
    """Keeps modules in every way."""

    def __init__(self):
        super().__init__()
        self.registered = nn.Linear(2, 2)
        self.listed = [nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.Tanh())]
        self.named = {"topic": nn.Linear(2, 2, bias=False)}
        self.pairs = [(nn.BatchNorm1d(2), "norm")]
        self.again = [self.registered]
        self.owner = [self]
        self.words = ["a"] * 5


def test_registered_modules_come_first_and_kept_ones_are_named_by_their_place():
    names = "registered listed.0 listed.1 listed.1.0 listed.1.1 named.topic pairs.0.0".split()
    assert list(all_modules(Keeper())) == ["", *names]


def test_a_module_is_named_once_however_often_it_is_kept():
    model = Keeper()
    found = all_modules(model)
    assert len(set(map(id, found.values()))) == len(found)
    assert found["registered"] is model.registered


def test_a_kept_module_keeps_others():
    model, inner = Keeper(), Keeper()
    model.listed.append(inner)
    assert all_modules(model)["listed.2.named.topic"] is inner.named["topic"]


def test_a_long_list_is_data_and_is_not_searched():
    model = nn.Identity()
    model.rows = [nn.Linear(1, 1)] * 2001
    assert list(all_modules(model)) == [""]


def test_a_table_is_searched_as_far_as_a_long_list():
    class Counted(list):
        searched = 0

        def __iter__(self):
            Counted.searched += len(self)
            return super().__iter__()

    model = nn.Identity()
    model.table = [Counted(["word"] * 500) for _ in range(500)]
    assert list(all_modules(model)) == [""]
    assert 0 < Counted.searched <= 2000


def test_a_list_that_holds_itself_ends():
    model = nn.Identity()
    model.loop = [nn.Linear(1, 1)]
    model.loop.append(model.loop)
    assert list(all_modules(model)) == ["", "loop.0"]


def test_a_model_that_keeps_nothing_has_the_names_of_torch():
    model = nn.TransformerEncoderLayer(4, 2)
    assert all_modules(model) == dict(model.named_modules())
    assert all_parameters(model) == dict(model.named_parameters())


def test_parameters_and_buffers_of_kept_modules_are_named_and_tied_ones_once():
    model = Keeper()
    model.listed[0].weight = model.registered.weight
    names = [name for name in all_parameters(model) if name.endswith("weight")]
    assert names == ["registered.weight", "listed.1.0.weight", "named.topic.weight", "pairs.0.0.weight"]
    assert "pairs.0.0.running_mean" in all_buffers(model)
    assert all(isinstance(each, torch.Tensor) for each in all_buffers(model).values())
