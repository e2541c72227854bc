from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from banded import banded
from unrolled.decomposition.attribution import bands
from unrolled.decomposition.attribution.triangle import Triangle

TIME = 6


@pytest.fixture
def matrices():
    """Numbers of every n-gram by position read and entered, forward and backward."""
    drawn = torch.randn(2, TIME, TIME, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return torch.stack([drawn[0].tril(), drawn[1].triu()])


def test_a_triangle_lays_its_bands_out_by_position_read_and_entered(matrices):
    whole = Triangle(banded(matrices), -banded(matrices))
    assert torch.equal(whole.scores, matrices)
    assert torch.equal(whole.contributions, -matrices)
    short = Triangle(banded(matrices)[..., :2], banded(matrices)[..., :2])
    assert torch.equal(short.scores, torch.stack([matrices[0].triu(-1), matrices[1].tril(1)]))


@pytest.mark.parametrize("longest", [1, 3, TIME])
@pytest.mark.parametrize("way", [0, 1])
def test_sums_and_moves_are_those_of_the_entries(matrices, way, longest):
    band, matrix = banded(matrices)[way][:, :longest], matrices[way]
    kept = matrix.tril(longest - 1).triu(1 - longest)
    both = torch.zeros(2, 2, TIME, longest, dtype=torch.float64)
    both[:, way] = band
    torch.testing.assert_close(bands.by_entered(both), kept.sum(dim=0).expand(2, TIME))
    moved = bands.by_first(band, way == 1)
    for start in range(TIME):
        for k in range(longest):
            inside = start + k < TIME
            read, entered = (start + k, start) if way == 0 else (start, start + k)
            assert moved[start, k] == (matrix[read, entered] if inside else 0)


@pytest.mark.parametrize("places", [[0, 1, 2], [1, 2, 5], [0, 3, 4, 5], [2], list(range(TIME))])
def test_steps_that_are_left_out_shorten_the_n_grams_around_them(matrices, places):
    forward = banded(matrices[:1])
    kept = bands.kept_steps(forward, torch.tensor(places))
    assert torch.equal(kept, banded(matrices[:1][:, places][:, :, places]))


def test_a_long_text_is_told_apart_as_far_as_memory_is_bounded(monkeypatch):
    torch.manual_seed(0)

    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.head = nn.GRU(3, 4, batch_first=True, bidirectional=True), nn.Linear(8, 2)

        def forward(self, x):
            return self.head(self.rnn(x)[0].mean(dim=1))

    model, x = Reader().double(), torch.randn(1, 40, 3, dtype=torch.float64)
    whole = unrolled.explain(model, x, target=0)
    assert whole.max_order is None
    monkeypatch.setattr(bands, "FULL", 8 * 40 * 40 - 1)  # two numbers, two directions, two classes
    monkeypatch.setattr(bands, "LIMITED", 8 * 40 * 5)
    found = unrolled.explain(model, x, target=0)
    assert found.max_order == found.triangle.score_band.shape[-1] == 5
    assert any("n-grams of more than 5 are not told apart; max_order" in note for note in found.notes)
    assert found.ledger.ngrams == pytest.approx(whole.ledger.ngrams, abs=1e-12)
    torch.testing.assert_close(found.token_scores, whole.token_scores)
    torch.testing.assert_close(found.triangle.score_band, whole.triangle.score_band[..., :5])
    asked = unrolled.explain(model, x, target=0, max_order=40)
    assert asked.max_order is None
    assert not asked.notes


def test_a_long_text_read_by_cells_in_a_loop_is_bounded_as_well(monkeypatch):
    torch.manual_seed(0)

    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.head = nn.GRUCell(3, 4), nn.Linear(4, 2)

        def forward(self, x):
            state = x.new_zeros(len(x), 4)
            for step in x.unbind(1):
                state = self.cell(step, state)
            return self.head(state)

    model, x = Loop().double(), torch.randn(1, 12, 3, dtype=torch.float64)
    whole = unrolled.explain(model, x, target=0)
    monkeypatch.setattr(bands, "FULL", 2 * 12 * 12 - 1)
    monkeypatch.setattr(bands, "LIMITED", 2 * 12 * 3)
    found = unrolled.explain(model, x, target=0)
    assert found.max_order == found.triangle.score_band.shape[-1] == 3
    assert any("n-grams of more than 3 are not told apart" in note for note in found.notes)
    torch.testing.assert_close(found.token_scores, whole.token_scores)
    torch.testing.assert_close(found.triangle.contribution_band, whole.triangle.contribution_band[..., :3])
