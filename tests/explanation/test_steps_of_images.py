"""A step over an image reads a state from the left and one from above: one of them is named as the state."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UnsupportedOperationError

IMAGES = torch.randn(2, 2, 3, 3, generator=torch.Generator().manual_seed(0)).double()
WIDTH = 4


class OverAnImage(nn.Module):
    """An LSTM in two dimensions (Graves et al. 2007), row by row."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.gates, self.head = nn.Linear(2 + 2 * WIDTH, 5 * WIDTH), nn.Linear(WIDTH, 2)
        self.double()

    def step(self, x, left, above):
        (h_left, c_left), (h_above, c_above) = left, above
        i, f, g, o, z = self.gates(torch.cat([x, h_left, h_above], dim=1)).chunk(5, dim=1)
        c = f.sigmoid() * c_left + g.sigmoid() * c_above + i.sigmoid() * z.tanh()
        return o.sigmoid() * c.tanh(), c

    def forward(self, images):
        zero = (images.new_zeros(len(images), WIDTH), images.new_zeros(len(images), WIDTH))
        states = {}
        for row in range(3):
            for column in range(3):
                left, above = states.get((row, column - 1), zero), states.get((row - 1, column), zero)
                states[row, column] = self.step(images[:, :, row, column], left, above)
        return self.head(states[2, 2][0])


@pytest.mark.parametrize("examples", [1, 2])
def test_the_refusal_says_which_arguments_may_be_named(examples):
    with pytest.raises(UnsupportedOperationError, match=r"left and above hold .* method='step', state='left'"):
        unrolled.explain_batch(OverAnImage(), IMAGES[:examples], target=1)


@pytest.mark.parametrize("state", ["left", "above"])
def test_with_one_of_them_named_all_rows_or_columns_are_sequences(state):
    model = OverAnImage()
    step = unrolled.as_cell("", method="step", state=state)
    found = unrolled.explain_batch(model, IMAGES, target=1, rnn=step)
    for each, image in zip(found, IMAGES, strict=True):
        assert [len(sequence) for sequence in each.sequences] == [3, 3, 3]
        assert abs(each.ledger.remainder) < 1e-12
        assert each.ledger.logit == pytest.approx(model(image[None])[0, 1].item())
