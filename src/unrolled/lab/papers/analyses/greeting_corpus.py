"""Who was said hi to: the notes' example of a word that is to be predicted from far away.

"Jane walked into the room. John walked in too. It was late in the day, … Jane said hi to ___": the answer is the
second person, whatever stands between. Names are drawn anew for every text, so nothing but memory gives the answer;
the words between are drawn from those of the notes' own sentence.

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
"""The first indices of the vocabulary, and the answers."""
_BETWEEN = "it was late in the day , and everyone was walking home after a long day at work ."
_TEXT = "{} walked into the room . {} walked in too . {} {} said hi to"
VOCABULARY = tuple(dict.fromkeys((*NAMES, *_TEXT.replace("{}", "").split(), *_BETWEEN.split())))
"""Every word."""
NEAREST = 8
"""How many words after the second person's name the answer is asked for when nothing stands between."""

_INDEX = {word: index for index, word in enumerate(VOCABULARY)}
_FILLER = tuple(dict.fromkeys(_BETWEEN.split()))


def batch(size: int, distance: int, generator: random.Random) -> tuple[Tensor, Tensor]:
    """Draw texts of one length.

    Args:
        size: how many.
        distance: from the name to the word after which it is to be said again; :data:`NEAREST` or more.
        generator: draws them.

    Returns:
        Word indices, shape (time, size), int64, and the answers, shape (size,), int64.
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
    """Ask a model for the second person.

    Args:
        model: gives scores of the names after every word, shape (time, batch, names).
        distances: at which it is asked.
        size: how many texts of each.
        generator: draws them.

    Returns:
        The share of right answers by distance; a string, as JSON has it.
    """
    right = {}
    for distance in distances:
        words, answers = batch(size, distance, generator)
        right[str(distance)] = (model(words)[-1].argmax(dim=-1) == answers).double().mean().item()
    return right
