"""Open a file of weights and a sentence for ``unrolled explain``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from unrolled.cli.prepared_input import PreparedInput
from unrolled.errors import UsageError

__all__ = ["WeightsOptions", "mark_unknown", "note_unknown", "open_weights"]

UNKNOWN_MARK = "‹unk›"
"""Follows a word that the vocabulary lacks."""


@dataclass(frozen=True)
class WeightsOptions:
    """The options of the command line that describe a file of weights."""

    weights: Path
    vocab: Path
    unk: str | None = None
    rnn: str | None = None
    embedding: str | None = None
    head: str | None = None
    nonlinearity: str | None = None


def open_weights(options: WeightsOptions, sentence: str) -> PreparedInput:
    """Build a classifier from a file of weights, and split the sentence at spaces."""
    import torch

    from unrolled.weights.from_state_dict import load_classifier
    from unrolled.weights.word_list import WordList

    words = WordList.load(options.vocab, options.unk)
    loaded = load_classifier(
        options.weights,
        words=len(words),
        rnn=options.rnn,
        embedding=options.embedding,
        head=options.head,
        nonlinearity=options.nonlinearity,
    )
    tokens = sentence.split()
    if not tokens:
        raise UsageError("the sentence is empty; expected at least one word")
    unknown = words.unknown(tokens)
    unused = (f"not used, as --head says: {', '.join(loaded.unused)}",) if loaded.unused else ()
    return PreparedInput(
        model=loaded.model,
        inputs=(torch.tensor([words.encode(tokens)]),),
        tokens=mark_unknown(tokens, unknown),
        labels=(),
        notes=(*unused, *note_unknown(unknown, words.unknown_word)),
    )


def mark_unknown(tokens: Sequence[str], unknown: Collection[str]) -> tuple[str, ...]:
    """Put a mark behind each token that the vocabulary lacks."""
    return tuple(token + UNKNOWN_MARK if token in unknown else token for token in tokens)


def note_unknown(unknown: Sequence[str], unknown_word: str | None) -> tuple[str, ...]:
    """Write the note that lists unknown tokens; no note if there are none."""
    return (f"not in the vocabulary, read as {unknown_word}: {', '.join(unknown)}",) if unknown else ()
