"""Several sequences in a terminal: an n-gram stands once, as in the text of a single sequence, with the same notes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import unrolled
from unrolled.report.formatting import signed

WORDS = [["not", "a", "bad", "film"], ["good", "one", "too"]]


class Pair(nn.Module):
    """Reads one text in both directions and another in one."""

    def __init__(self, noise: float = 0.0) -> None:
        super().__init__()
        self.embed, self.noise = nn.Embedding(9, 4), noise
        self.both, self.one = nn.GRU(4, 5, batch_first=True, bidirectional=True), nn.GRU(4, 5, batch_first=True)
        self.head = nn.Linear(15, 2)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        read = [self.both(self.embed(first))[0].mean(dim=1), self.one(self.embed(second))[0][:, -1]]
        features = torch.cat(read, dim=1)
        logits: Tensor = self.head(features + self.noise * torch.randn_like(features) if self.noise else features)
        return logits


@pytest.fixture
def explain():
    def run(noise=0.0, weights=0, **settings):
        torch.manual_seed(weights)
        texts = torch.tensor([[1, 2, 3, 4]]), torch.tensor([[5, 6, 7]])
        return unrolled.explain(Pair(noise).eval(), *texts, target=1, tokens=WORDS, **settings)

    return run


def _rows(found):
    """The rows of n-grams: contribution and the words behind the name of the sequence."""
    lines = str(found).split("n-gram\n")[1].split("\n\n")[0].splitlines()
    return [(line.split()[0], line.split(maxsplit=3)[2:]) for line in lines]


def test_a_word_that_is_read_in_both_directions_stands_once_with_the_sum_of_both(explain):
    found = explain()
    frame = found.to_frame()
    listed = 0
    for word in WORDS[0]:
        mine = frame[(frame.text == word) & (frame.sequence == "both") & (frame.contribution != 0)]
        assert list(mine.direction) == ["forward", "backward"]  # the control: elsewhere each stands apart
        shown = [contribution for contribution, words in _rows(found) if words == ["both", word]]
        assert shown in ([], [signed(mine.contribution.sum())])
        listed += len(shown)
    assert listed >= 3


def test_ngrams_stand_as_in_the_text_of_their_sequence(explain):
    found = explain()
    joint = {(contribution, *words) for contribution, words in _rows(found)}
    for each in found.sequences:
        alone = [line.split() for line in str(each).split("n-gram\n")[1].split("\n\n")[0].splitlines()]
        strongest = alone[0]
        text = " ".join(strongest[4:])  # behind the contribution, the phrase score and the place
        assert (strongest[0], each.name, text) in joint


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_long_ngram_leaves_room_for_the_number_of_its_near_copies(width):
    torch.manual_seed(0)
    ids = torch.randint(0, 9, (1, 24))
    words = [[f"a long word of number {k}" for k in range(24)], ["one", "two"]]
    text = unrolled.explain(Pair().eval(), ids, ids[:, :2], target=1, tokens=words).render(width)
    rows = text.split("n-gram\n")[1].split("\n\n")[0].splitlines()
    assert any("near-cop" in row for row in rows)
    assert any("…" in row for row in rows)  # some are cut
    assert all(len(row) <= width for row in rows)
    assert all(row.endswith(("near-copy", "near-copies")) for row in rows if " and " in row)


def test_one_draw_is_said_to_be_one(explain):
    note = "the model draws random numbers: this explains one draw"
    assert note in str(explain(noise=0.1, seed=0))
    assert note not in str(explain(seed=0))


def test_contributions_that_cancel_are_said_to_cancel(explain):
    found = explain(weights=1)
    assert found.cancellation > 2
    assert f"contributions are {found.cancellation:.1f} times as large as their sum" in str(found)
    assert "times as large" not in str(explain())  # the control


def test_a_list_of_examples_names_the_largest_of_both_directions():
    torch.manual_seed(0)
    model, ids = Pair().eval(), torch.tensor([[1, 2, 3, 4], [4, 3, 2, 1]])
    found = unrolled.explain_batch(model, ids, ids + 4, target=1)
    for line, each in zip(str(found).splitlines(), found, strict=False):
        contribution = _rows(each)[0][0]
        assert f"{contribution})" in line
