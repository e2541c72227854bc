"""Numbers that a step gives Python: no derivative shows what its state contributes by them, and a note says so."""

from __future__ import annotations

import pytest
import torch

import unrolled
from layered_steps import SERIES, model_with
from unrolled.cells.base import Cell
from unrolled.errors import StrictError, UnsupportedOperationError
from unrolled.held_forward.operations.python_values import TAKES_OUT

EXPANSIONS = ["secant", "path", "operating", "zero", "taylor(2)"]
LONG = [pytest.mark.slow, pytest.mark.fuzz]
MIXED = ["operating", "zero", "taylor(2)", *(pytest.param(name, marks=LONG) for name in ("secant", "path"))]
"""Those of a step that mixes the rows of a batch, which then run one by one."""
SEEN = []


def logged(z):
    SEEN.append(z.norm().item())
    return z


READ = {
    "item": ("item", lambda z: z * z.norm().item()),
    "float": ("__float__", lambda z: z + float(z.detach().mean())),
    "tolist": ("tolist", lambda z: z + torch.tensor(z.tolist(), dtype=z.dtype)),
    "a text": ("__format__", lambda z: z * float(f"{z.norm():.6f}")),
}
NOT_READ = {
    "a log": logged,
    "nothing": lambda z: z,
    "a constant": lambda z: z * int(torch.tensor(1)),
}


def notes_of(function, expansion):
    found = unrolled.explain(model_with(function), SERIES[:1], target=1, expansion=expansion)
    return found, [note for note in found.notes if "out of torch" in note]


@pytest.mark.parametrize("expansion", ["secant", "path"])
def test_a_note_stands_in_the_place_of_a_quadrature_that_does_not_converge(expansion):
    found, (note,) = notes_of(READ["tolist"][1], expansion)
    assert "(tolist)" in note
    assert not found.exact
    assert not any("quadrature" in each for each in found.notes)


@pytest.mark.parametrize("expansion", MIXED)
@pytest.mark.parametrize("way", READ)
def test_a_note_names_the_operation_that_gives_numbers_which_the_step_reads(way, expansion):
    name, function = READ[way]
    assert name in TAKES_OUT
    found, notes = notes_of(function, expansion)
    assert notes == [
        f"a step takes numbers out of torch ({name}), and no derivative shows what its state contributes by them: that "
        "is credited to the token that the step reads, or is the remainder; compute it with torch operations"
    ]
    assert not found.exact
    assert not any("quadrature" in note for note in found.notes)
    with pytest.raises(StrictError, match="out of torch"):
        unrolled.explain(model_with(function), SERIES[:1], target=1, expansion=expansion, strict=True)


@pytest.mark.parametrize("expansion", MIXED)
@pytest.mark.parametrize("way", NOT_READ)
def test_numbers_that_decide_nothing_or_that_the_state_does_not_change_are_not_noted(way, expansion):
    found, notes = notes_of(NOT_READ[way], expansion)
    plain, _ = notes_of(lambda z: z, expansion)
    assert notes == []
    within = 1e-6 if expansion == "secant" else 1e-12  # a log makes it a quadrature
    torch.testing.assert_close(found.triangle.contributions, plain.triangle.contributions, rtol=0, atol=within)


def test_what_is_noted_is_wrong_by_operating_and_closes():
    """The reason for the note: numbers taken out and the same numbers differ in n-grams, and both sum to the output."""
    taken, same = (
        unrolled.explain(model_with(each), SERIES[:1], target=1, expansion="operating")
        for each in (lambda z: z + torch.tensor(z.tolist(), dtype=z.dtype), lambda z: z + z)
    )
    assert abs(taken.ledger.remainder) < 1e-12
    assert abs(same.ledger.remainder) < 1e-12
    assert (taken.triangle.contributions - same.triangle.contributions).abs().max() > 1e-2


@pytest.mark.parametrize("expansion", EXPANSIONS)
def test_a_step_that_gives_numpy_its_numbers_is_refused_by_name(expansion):
    def function(z):
        return z + torch.from_numpy(z.detach().numpy().copy())

    with pytest.raises(UnsupportedOperationError, match=r"takes numbers out of torch \(numpy\)"):
        unrolled.explain(model_with(function), SERIES[:1], target=1, expansion=expansion)


class Copied(Cell):
    """A cell whose step adds what ``copy`` makes of its state."""

    name = "copied"

    def __init__(self, copy):
        super().__init__(3, 3)
        self.copy = copy

    def step(self, inputs, state):
        return torch.tanh(inputs + 0.5 * self.copy(state))


def test_decompose_refuses_a_cell_whose_state_goes_by_a_list():
    inputs = SERIES.transpose(0, 1)
    found = unrolled.decompose(Copied(torch.clone), inputs, expansion="operating")
    assert float(found.residual().max()) < 1e-12
    with pytest.raises(UnsupportedOperationError, match=r"out of torch \(tolist\)"):
        unrolled.decompose(Copied(lambda s: torch.tensor(s.tolist(), dtype=s.dtype)), inputs, expansion="operating")
