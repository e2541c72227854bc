"""An expansion of a user's own that says it is exact: if it is not, no note calls what it leaves over rounding."""

from __future__ import annotations

import pytest
import torch

import unrolled
from layered_steps import SERIES, model_with
from unrolled.expansions.base import Linearisation
from unrolled.testing import check_expansion


class Right(Linearisation):
    """The Jacobian halfway, and the rest of the state as g."""

    name, exact, local = "right", True, False

    def expand(self, ray, tolerance):
        operator = ray.at(0.5)
        return ray.end - ray.increment(operator), operator


class Wrong(Right):
    """The Jacobian at the state beside the token alone, which leaves a part of the state out."""

    name = "wrong"

    def expand(self, ray, tolerance):
        return ray.origin, ray.at(1.0)


def explained(model, expansion):
    return unrolled.explain(model, SERIES[:1], target=1, expansion=expansion)


class Reader(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.rnn, self.head = torch.nn.GRU(3, 5, batch_first=True), torch.nn.Linear(5, 2)
        self.double()

    def forward(self, xs):
        return self.head(self.rnn(xs)[0][:, -1])


@pytest.mark.parametrize("make", [Reader, lambda: model_with(lambda z: z)], ids=["GRU", "own"])
def test_a_note_says_that_the_claim_is_to_be_checked(make):
    with pytest.raises(AssertionError, match="wrong says it is exact"):
        check_expansion(Wrong())
    found = explained(make(), Wrong())
    note = found.notes[0]
    assert note.startswith("the terms miss the states by ")
    assert note.endswith(
        "though the expansion wrong says that it is exact: unrolled.testing.check_expansion tells whether it is"
    )
    assert not found.exact
    assert not any("rounding" in each for each in found.notes)


@pytest.mark.parametrize("make", [Reader, lambda: model_with(lambda z: z)], ids=["GRU", "own"])
def test_an_expansion_that_is_exact_has_no_such_note(make):
    """The control."""
    check_expansion(Right())
    found = explained(make(), Right())
    assert found.exact
    assert not found.notes
