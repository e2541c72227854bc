"""What a model changes in place after an operation has read it counts there as it was."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from equal_accounts import Read
from unrolled.errors import UnsupportedOperationError
from whole_model_zoo import WORDS, D, E, ids


@pytest.mark.parametrize("expansion", ["secant", "shares"])
@pytest.mark.parametrize("open_", [unrolled.account, unrolled.explain])
def test_a_factor_that_is_changed_after_its_product_counts_as_it_was(open_, expansion):
    def changed(_, h):
        factor = torch.tanh(h)
        y = h * factor
        factor.mul_(2.0)
        return y + factor

    def kept(_, h):
        factor = torch.tanh(h)
        return h * factor + 2.0 * factor

    def changed_before(_, h):
        factor = torch.tanh(h)
        factor.mul_(2.0)
        return h * factor + factor

    found, expected, other = (
        open_(Read(read), ids(1, 3), target=1, expansion=expansion).to_frame()["contribution"].to_numpy()
        for read in (changed, kept, changed_before)
    )
    assert found == pytest.approx(expected, abs=1e-6)
    assert found != pytest.approx(other, abs=1e-3)


class GatedStep(nn.Module):
    def __init__(self, units, in_place):
        super().__init__()
        self.units, self.in_place = units, in_place
        self.of_input, self.of_state = nn.Linear(E, 2 * units), nn.Linear(units, 2 * units)

    def forward(self, x, h):
        z = self.of_input(x) + self.of_state(h)
        gate, new = z[:, : self.units], z[:, self.units :]
        if self.in_place:  # autograd refuses it as well
            return h + gate.sigmoid_() * (new.tanh_() - h)
        return h + gate.sigmoid() * (new.tanh() - h)


class GatedLoop(nn.Module):
    def __init__(self, units, in_place=True):
        super().__init__()
        torch.manual_seed(0)
        self.units = units
        self.embed, self.cell, self.head = nn.Embedding(WORDS, E), GatedStep(units, in_place), nn.Linear(units, 2)
        self.double()

    def forward(self, tokens):
        h = torch.zeros(len(tokens), self.units, dtype=self.head.weight.dtype)
        for x in self.embed(tokens).unbind(1):
            h = self.cell(x, h)
        return self.head(h)


def test_a_step_that_changes_what_its_slopes_need_is_refused_in_one_line_and_has_an_account():
    model, tokens = GatedLoop(300), ids(1, 3)
    with pytest.raises(UnsupportedOperationError, match=r"that an operation before needs as it was") as told:
        unrolled.explain(model, tokens, target=1)
    assert "\n" not in str(told.value)
    assert unrolled.account(model, tokens, target=1).closes


def test_a_small_step_that_changes_what_its_slopes_need_has_the_n_grams_of_path():
    """Forward mode gives its matrices, and needs none of what the step has changed."""
    tokens = ids(1, 3)
    found = unrolled.explain(GatedLoop(D), tokens, target=1)
    path, secant = (
        unrolled.explain(GatedLoop(D, in_place=False), tokens, target=1, expansion=e) for e in ("path", "secant")
    )
    assert found.closes
    torch.testing.assert_close(found.token_scores, path.token_scores, rtol=0, atol=1e-9)
    assert not torch.allclose(found.token_scores, secant.token_scores, rtol=0, atol=1e-9)  # the control
    assert unrolled.account(GatedLoop(D), tokens, target=1).closes
