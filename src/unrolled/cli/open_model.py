"""From a run, or a file of weights, and a sentence to a case that can be explained."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from unrolled.cli.question import Case
from unrolled.errors import UsageError

if TYPE_CHECKING:
    from torch import nn

    from unrolled.lab.training.run_folder import Run

__all__ = ["BareOptions", "can_open", "open_bare", "open_run"]

UNKNOWN_MARK = "‹unk›"
"""Stands behind a word that the network does not know and reads as another."""


@dataclass(frozen=True)
class BareOptions:
    """What the command line says of a network that is only a file of weights."""

    weights: Path
    vocab: Path
    unk: str | None = None
    rnn: str | None = None
    embedding: str | None = None
    head: str | None = None
    nonlinearity: str | None = None


def open_bare(options: BareOptions, sentence: str) -> Case:
    """Open a file of weights with a vocabulary beside it.

    Args:
        options: what the command line says of them.
        sentence: tokens with spaces between them: how this network's text was cut nobody knows.

    Returns:
        The case.

    Raises:
        UsageError: when the sentence is empty.
    """
    import torch

    from unrolled.weights.from_state_dict import load_bare
    from unrolled.weights.word_list import WordList

    words = WordList.load(options.vocab, options.unk)
    network = load_bare(
        options.weights,
        words=len(words),
        rnn=options.rnn,
        embedding=options.embedding,
        head=options.head,
        nonlinearity=options.nonlinearity,
    )
    tokens = _at_least_one(sentence.split())
    unknown = words.unknown(tokens)
    unused = (f"not used, as --head says: {', '.join(network.unused)}",) if network.unused else ()
    return Case(
        model=network.model,
        inputs=(torch.tensor([words.encode(tokens)]),),
        tokens=_marked(tokens, unknown),
        labels=(),
        notes=(*unused, *_about(unknown, words.unknown_word)),
    )


def can_open(model: nn.Module) -> bool:
    """Say whether there is a recurrent network in a model: n-gram models and baselines have none.

    Args:
        model: of a run.

    Returns:
        Whether ``explain`` has something to open.
    """
    from unrolled.decomposition.open_network import Network

    return any(isinstance(part, Network) for part in model.modules())


def open_run(run: Run, sentence: str, at: int | None = None) -> Case:
    """Put a sentence before a network that ``unrolled train`` made.

    Args:
        run: the trained model.
        sentence: text as people type it; it is cut as the run's training text was.
        at: a position, for a model that says something of every token.

    Returns:
        The case.

    Raises:
        UsageError: when the sentence is empty, the position is not in it, or the run has no recurrent network.
    """
    from unrolled.lab.data.vocabulary import UNKNOWN_WORD

    if not can_open(run.model):
        raise UsageError(
            f"{run.folder} was trained with {run.task.architecture.encoder}, which is no recurrent network; "
            "expected a run of rnn, gru, lstm or a recurrent cell"
        )
    reading = run.task.read(run.model, sentence, at)
    return Case(
        model=reading.model,
        inputs=reading.inputs,
        tokens=_marked(reading.tokens, reading.unknown),
        labels=reading.outputs,
        notes=_about(reading.unknown, UNKNOWN_WORD),
        rnn=reading.rnn,
    )


def _at_least_one(tokens: list[str]) -> list[str]:
    if not tokens:
        raise UsageError("the sentence is empty; expected at least one word")
    return tokens


def _marked(tokens: Sequence[str], unknown: Collection[str]) -> tuple[str, ...]:
    return tuple(token + UNKNOWN_MARK if token in unknown else token for token in tokens)


def _about(unknown: Sequence[str], unknown_word: str | None) -> tuple[str, ...]:
    if not unknown:
        return ()
    return (f"not in the vocabulary, read as {unknown_word}: {', '.join(unknown)}",)
