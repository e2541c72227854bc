"""Phrases of models that read a text and series of numbers beside it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import unrolled

LOAD, WIND = torch.linspace(-1, 1, 24).reshape(3, 4, 2), torch.linspace(2, 1, 24).reshape(3, 4, 2)
IDS = torch.arange(12).reshape(3, 4) % 5


class TextAndSeries(nn.Module):
    """Reads a text, by two networks, and two series of numbers."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(5, 2)
        self.load, self.wind, self.one, self.other = (nn.GRU(2, 3, batch_first=True) for _ in range(4))
        self.head = nn.Linear(3, 2)

    def forward(self, ids: Tensor, load: Tensor, wind: Tensor) -> Tensor:
        words = self.embed(ids)
        read = self.one(words)[1][0] + self.other(words)[1][0] + self.load(load)[1][0] + self.wind(wind)[1][0]
        logits: Tensor = self.head(read)
        return logits


def test_the_steps_of_two_series_beside_a_text_are_different_phrases():
    found = unrolled.explain_batch(TextAndSeries(), IDS, LOAD, WIND, target=1)
    phrases = {each.text: each for each in found.phrases(longest=1, least=1)}
    steps = {f"{name}: x{step}" for name in ("load", "wind") for step in range(4)}
    assert set(phrases) == steps | set("01234")
    for name in ("load", "wind"):
        mean = sum(each.sequence(name).phrase_score(1, 2) for each in found) / 3
        assert phrases[f"{name}: x1"].phrase_score == pytest.approx(mean, abs=1e-6)
    # the control: a word of one text has the scores of both networks together
    assert sum(phrases[word].count for word in "01234") == IDS.numel()
