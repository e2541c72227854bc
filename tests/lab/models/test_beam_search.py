"""Greedy and beam search, compared with an enumeration of all sentences."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from unrolled.errors import UsageError
from unrolled.lab.models.beam_search import beam_search, greedy_search

WORDS, END, LONGEST = 4, 2, 4


@dataclass(frozen=True)
class Past:
    """A hash of the words so far, from which any distribution can be computed."""

    seeds: Tensor

    def select(self, rows: Tensor) -> Past:
        return Past(self.seeds[rows])


def table(seed: int) -> Tensor:
    """Logits for each of many hashes."""
    return 2 * torch.randn(9973, WORDS, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def decoder(seed: int, never: int | None = None):
    logits = table(seed)
    if never is not None:
        logits[:, never] = -torch.inf

    def step(words: Tensor, past: Past) -> tuple[Tensor, Past]:
        now = (past.seeds * 31 + words + 1) % len(logits)
        return logits[now], Past(now)

    return step


def starts(*seeds: int) -> Past:
    return Past(torch.tensor(seeds))


def likelihoods(step, start: int, sentence: tuple[int, ...]) -> list[float]:
    """Compute the log-probability of every word of a sentence, one at a time."""
    past, previous, found = starts(start), END, []
    for word in sentence:
        logits, past = step(torch.tensor([previous]), past)
        found.append(logits[0].log_softmax(-1)[word].item())
        previous = word
    return found


def every_sentence(longest: int):
    others = [word for word in range(WORDS) if word != END]
    for length in range(longest):
        for words in itertools.product(others, repeat=length):
            yield (*words, END)


def best(step, start: int, longest: int = LONGEST) -> list[int]:
    def score(sentence):
        found = likelihoods(step, start, sentence)
        return sum(found) / len(found)

    return list(max(every_sentence(longest), key=score)[:-1])


SEEDS = range(12)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_wide_beam_finds_the_best_of_all_sentences(seed):
    step = decoder(seed)
    assert beam_search(step, starts(5), torch.tensor([LONGEST]), END, beam_width=200) == [best(step, 5)]


def test_a_narrow_beam_does_not_always_find_it():
    """Control of the test above: some best sentences do not start with the most likely word."""
    narrow = [beam_search(decoder(s), starts(5), torch.tensor([LONGEST]), END, beam_width=1)[0] for s in SEEDS]
    assert any(found != best(decoder(seed), 5) for seed, found in zip(SEEDS, narrow, strict=True))


def test_the_score_is_the_mean_and_not_the_sum():
    def total(step, sentence):
        return sum(likelihoods(step, 5, sentence))

    sums = [list(max(every_sentence(LONGEST), key=lambda y, s=s: total(decoder(s), y))[:-1]) for s in SEEDS]
    means = [best(decoder(seed), 5) for seed in SEEDS]
    assert sums != means
    assert sum(map(len, sums)) < sum(map(len, means))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_beam_of_one_is_the_greedy_search(seed):
    step, longest = decoder(seed), torch.tensor([6, 1, 9, 3])
    greedy = greedy_search(step, starts(5, 8, 13, 21), longest, END)
    assert beam_search(step, starts(5, 8, 13, 21), longest, END, beam_width=1) == greedy


@pytest.mark.parametrize("seed", SEEDS)
def test_the_greedy_search_takes_the_likeliest_word_each_time(seed):
    step = decoder(seed)
    (said,) = greedy_search(step, starts(5), torch.tensor([6]), END)
    past, previous = starts(5), END
    for word in [*said, END][:6]:
        logits, past = step(torch.tensor([previous]), past)
        assert int(logits.argmax()) == word
        previous = word


@pytest.mark.parametrize("beam", [1, 2, 3, 7, 200])
def test_sentences_of_a_batch_do_not_touch_each_other(beam):
    step, seeds, longest = decoder(3), (5, 8, 13, 21, 34), (6, 1, 4, 3, 5)
    together = beam_search(step, starts(*seeds), torch.tensor(longest), END, beam)
    alone = [beam_search(step, starts(s), torch.tensor([n]), END, beam)[0] for s, n in zip(seeds, longest, strict=True)]
    assert together == alone


@pytest.mark.parametrize("beam", [1, 2, 5, 100])
def test_a_sentence_that_cannot_end_is_cut_off(beam):
    step = decoder(0, never=END)
    for found in (
        beam_search(step, starts(5, 8), torch.tensor([3, 5]), END, beam),
        greedy_search(step, starts(5, 8), torch.tensor([3, 5]), END),
    ):
        assert [len(said) for said in found] == [3, 5]
        assert all(END not in each for each in found)


@pytest.mark.parametrize("beam", [1, 4, 100])
def test_impossible_words_are_never_chosen(beam):
    for seed in SEEDS:
        said = beam_search(decoder(seed, never=3), starts(5, 8), torch.tensor([6, 6]), END, beam)
        assert all(3 not in each for each in said)
    assert any(
        3 in each for s in SEEDS for each in beam_search(decoder(s), starts(5, 8), torch.tensor([6, 6]), END, beam)
    )


@pytest.mark.parametrize("beam", [0, -1])
def test_invalid_beam_widths(beam):
    with pytest.raises(UsageError, match=rf"the beam width is {beam}; expected 1 or more"):
        beam_search(decoder(0), starts(5), torch.tensor([3]), END, beam)
