"""Texts that ask for a name read long before: the notes' example of a distant word that decides the next one.

"Jane walked into the room. John walked in too. It was late in the day, … Jane said hi to ___": the answer is the
second name, whatever stands between. Every text draws new names, so only memory gives the answer; the words between
are drawn from those of the notes' own sentence.

Source:
    CS 224D, lecture notes IV (2015), section 2.1.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch
from torch import Tensor, nn

__all__ = ["NAMES", "NEAREST", "VOCABULARY", "accuracy", "batch"]

NAMES = ("Jane", "John", "Mary", "Paul", "Anna", "Carl", "Lisa", "Mark")
"""The answers, and the first indices of the vocabulary."""
_BETWEEN = "it was late in the day , and everyone was walking home after a long day at work ."
_TEXT = "{} walked into the room . {} walked in too . {} {} said hi to"
VOCABULARY = tuple(dict.fromkeys((*NAMES, *_TEXT.replace("{}", "").split(), *_BETWEEN.split())))
"""Every word."""
NEAREST = 8
"""Number of words from the second name to the answer when nothing stands between."""

_INDEX = {word: index for index, word in enumerate(VOCABULARY)}
_FILLER = tuple(dict.fromkeys(_BETWEEN.split()))


def batch(size: int, distance: int, generator: random.Random) -> tuple[Tensor, Tensor]:
    """Draw ``size`` texts, their answers ``distance`` words after the second name (at least :data:`NEAREST`).

    Returns word indices, shape (time, size), and the answers as indices of names, shape (size,).
    """
    texts, answers = [], []
    for _ in range(size):
        first, second = generator.sample(NAMES, 2)
        between = " ".join(generator.choices(_FILLER, k=distance - NEAREST))
        texts.append([_INDEX[word] for word in _TEXT.format(first, second, between, first).split()])
        answers.append(_INDEX[second])
    return torch.tensor(texts).T.contiguous(), torch.tensor(answers)


@torch.no_grad()
def accuracy(model: nn.Module, distances: Sequence[int], size: int, generator: random.Random) -> dict[str, float]:
    """Measure how often a model answers correctly, with ``size`` texts for each distance; keys are strings, for JSON.

    The model gives scores of the names after every word, shape (time, batch, names).
    """
    right = {}
    for distance in distances:
        words, answers = batch(size, distance, generator)
        right[str(distance)] = (model(words)[-1].argmax(dim=-1) == answers).double().mean().item()
    return right
