"""The features of a step are numbered by its columns in the argument; where it reads no columns, a note says so."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled


class Arranged(nn.Module):
    """Reads its numbers in another arrangement."""

    def __init__(self, arrange, size):
        super().__init__()
        torch.manual_seed(0)
        self.arrange, self.rnn, self.head = arrange, nn.GRU(size, 4, batch_first=True), nn.Linear(4, 2)
        self.double()

    def forward(self, series):
        return self.head(self.rnn(self.arrange(series))[0][:, -1])


def drawn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_steps_that_read_no_columns_of_their_argument_are_noted():
    series, model = drawn(1, 4, 3), Arranged(lambda x: x.reshape(1, 3, 4).transpose(1, 2), 3)
    found = unrolled.explain(model, series, target=1)
    read = model.arrange(series)[0]
    torch.testing.assert_close(found.features.values, read, rtol=0, atol=0)
    assert not torch.equal(read[:, 0], series[0, :, 0])  # the first feature is not the first column
    assert any("no column" in note for note in found.notes)


COLUMNS = {
    "as they are": (lambda x: x, (1, 4, 3), 3),
    "channels first": (lambda x: x.transpose(1, 2), (1, 3, 4), 3),
    "as many channels as steps": (lambda x: x.transpose(1, 2), (1, 4, 4), 4),
    "time first": (lambda x: x.transpose(0, 1), (4, 1, 3), 3),
    "another order": (lambda x: x.flip(1)[..., [2, 0, 1]], (1, 4, 3), 3),
    "a flat series": (lambda x: x.view(1, 4, 3), (1, 12), 3),
    "pixels one by one": (lambda x: x.reshape(1, -1, 1), (1, 4, 4), 1),
    "images": (lambda x: x.flatten(2), (1, 3, 2, 2), 4),
}


@pytest.mark.parametrize("form", COLUMNS)
def test_steps_that_read_columns_or_as_many_numbers_as_no_axis_has_are_not_noted(form):
    arrange, shape, size = COLUMNS[form]
    found = unrolled.explain(Arranged(arrange, size), drawn(*shape), target=1)
    assert found.features.scores.shape[1] == size
    assert not any("no column" in note for note in found.notes)
