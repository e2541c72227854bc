"""Zeros and ones that a layer reads past the network are numbers; what they keep of a parameter has its name."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled

IDS, FLAGS = torch.tensor([[3, 1, 7]]), torch.tensor([[1, 0, 1]])


def written(write, width=3):
    """Return zeros in which something has been written."""
    zeros = torch.zeros(1, width, dtype=torch.float64)
    write(zeros)
    return zeros


class OfWords(nn.Module):
    """Reads words by a GRU, and zeros and ones past it."""

    def __init__(self, read):
        super().__init__()
        torch.manual_seed(0)
        self.read, self.embed, self.rnn = read, nn.Embedding(9, 4), nn.GRU(4, 4, batch_first=True)
        self.beside, self.own, self.shift = nn.Linear(3, 4), nn.Parameter(torch.rand(3, 4)), nn.Parameter(torch.rand(4))
        self.head = nn.Linear(4, 2)
        self.double()

    def forward(self, ids, flags):
        return self.head(self.rnn(self.embed(ids))[0][:, -1] + self.read(self, ids, flags))


def explained(read, flags):
    """Return the parts of the bias, what is read past the network, and whether a note says so."""
    model = OfWords(read)
    found = unrolled.explain(model, IDS, flags, target=1)
    past = model.head.weight[1] @ torch.as_tensor(read(model, IDS, flags)).expand(1, 4)[0]
    return found.biases, pytest.approx(past.item()), any("past its recurrent network" in note for note in found.notes)


READ = {
    "by a layer": lambda model, _, flags: model.beside(flags.double()),
    "by a layer and an activation": lambda model, _, flags: torch.relu(model.beside(flags.double())),
    "by a product with a parameter": lambda model, _, flags: flags.double() @ model.own,
    "turned around": lambda model, _, flags: model.beside(1.0 - flags.double()),
    "answers about the words": lambda model, ids, _: model.beside((ids > 2).double()),
    "added as they are": lambda model, _, flags: flags[:, :1].double() * 2.0 * torch.ones_like(model.shift),
    "written into a tensor": lambda model, _, flags: model.beside(written(lambda at: at.__setitem__(0, flags[0]))),
    "copied into a tensor": lambda model, _, flags: model.beside(written(lambda at: at.copy_(flags))),
    "written into a view": lambda model, _, flags: model.beside(written(lambda at: at.view(3).copy_(flags[0]))),
    "ones where they say so": lambda model, _, flags: model.beside(written(lambda at: at.masked_fill_(flags > 0, 1.0))),
    "multiplied in place": lambda model, _, flags: written(lambda at: at.addmm_(flags.double(), model.own), 4),
    "a row of as many places": lambda model, _, flags: torch.mv(model.own.T, flags[0].double()),
    "a product of several matrices": (
        lambda model, _, flags: torch.linalg.multi_dot([flags.double(), model.own, torch.eye(4).double()])
    ),
    "by a layer, after they were a mask": (
        lambda model, _, flags: model.shift.sum() * 0.0 + flags[:, :1].double() * 0.0 + model.beside(flags.double())
    ),
}
KEPT = {
    "rows of a parameter": (lambda model, _, flags: (flags.double()[..., None] * model.own).sum(1), "own"),
    "a parameter or zero": (lambda model, _, flags: torch.where(flags[:, :1] > 0, model.shift, 0.0), "shift"),
    "rows by a mask of words": (lambda model, ids, _: ((ids > 2).double()[..., None] * model.own).sum(1), "own"),
    "a parameter that is written into a tensor": (
        lambda model, _, flags: written(lambda at: at.__setitem__(flags[:, 0] > 0, model.shift), 4),
        "shift",
    ),
    "a parameter that is added in place": (
        lambda model, _, flags: written(lambda at: at.add_(model.shift).mul_(flags[:, :1]), 4),
        "shift",
    ),
    "a mean of rows": (
        lambda model, _, flags: (flags.double()[..., None] * model.own).sum(1) / flags.sum(1, keepdim=True),
        "own",
    ),
}
TYPES = [torch.int64, torch.float64, torch.bool]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("way", READ)
def test_zeros_and_ones_that_are_read_are_constants_and_noted(way, dtype):
    biases, past, noted = explained(READ[way], FLAGS.to(dtype))
    assert biases.keys() == {"constants", "head.bias"}
    assert biases["constants"] == past
    assert noted


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("way", KEPT)
def test_what_a_mask_keeps_of_a_parameter_has_its_name_and_is_not_noted(way, dtype):
    read, name = KEPT[way]
    biases, past, noted = explained(read, FLAGS.to(dtype))
    assert biases.keys() == {name, "head.bias"}
    assert biases[name] == past
    assert not noted


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_a_mask_in_a_product_does_not_hide_a_held_result(dtype):
    """What is held depends on the states, so no account of the words past the network says what they contribute."""
    model = OfWords(None)
    answers = model.rnn(model.embed(IDS))[0][0] > 0

    def read(model, ids, flags):
        held = model.rnn(model.embed(ids))[0][0] > 0
        return flags.double() @ held.double()

    model.read = read
    found = unrolled.explain(model, IDS, FLAGS.to(dtype), target=1)
    past = model.head.weight[1] @ (FLAGS.double() @ answers.double())[0]
    assert found.biases.keys() == {"gt", "head.bias"}
    assert found.biases["gt"] == pytest.approx(past.item())
    assert abs(past) > 1e-3
    assert found.notes == ("the bias contains results that depend on the states and are held: gt",)


def test_a_layer_that_reads_zeros_alone_gives_its_bias_under_its_name():
    biases, past, noted = explained(READ["by a layer"], torch.zeros_like(FLAGS))
    assert biases.keys() == {"beside.bias", "head.bias"}
    assert biases["beside.bias"] == past
    assert not noted


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool], ids=str)
def test_an_account_says_how_each_of_them_has_a_contribution(dtype):
    """The note of an explanation sends there."""
    model = OfWords(READ["by a layer"])
    together, each = (unrolled.account(model, IDS, FLAGS.to(kind), target=1) for kind in (dtype, torch.float64))
    (note,) = [note for note in together.notes if "masks" in note]
    assert "pass them as floating-point numbers, and each has its contribution" in note
    assert not any("results that are held" in note for note in together.notes)
    assert not any("masks" in note for note in each.notes)
    weights = model.head.weight[1] @ model.beside.weight
    torch.testing.assert_close(each.features["1"][0], (weights * FLAGS[0]).detach())
