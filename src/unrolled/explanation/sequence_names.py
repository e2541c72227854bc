"""Names for the sequences of a joint explanation, and for their tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from unrolled.errors import ShapeError, UsageError
from unrolled.explanation.lines import Line
from unrolled.explanation.token_names import Tokens

__all__ = ["Words", "line_titles", "looked_up", "of_one", "words_of"]

Words = Sequence[str] | Sequence[Sequence[str]] | Mapping[str, object] | None
"""Words of one sequence, of several in order, or by the names of sequences."""


def line_titles(lines: Sequence[Line]) -> list[str]:
    """Name each line by its networks and, where they make several lines, by its number from 0."""
    networks = [line.network or "the model" for line in lines]
    return [
        name if networks.count(name) == 1 else f"{name}, call {networks[:place].count(name)}"
        for place, name in enumerate(networks)
    ]


def of_one(given: Words) -> Tokens:
    """Return words that were given for one sequence, or for one of each example."""
    if isinstance(given, Mapping):
        raise UsageError(f"tokens names {', '.join(map(repr, given))}; the output is made of one sequence: pass a list")
    return given


def looked_up(model: nn.Module, vectors: Tensor) -> Tensor:
    """Find the embedded tokens among input vectors.

    Args:
        model: Its embeddings are searched.
        vectors: Shape (…, features).

    Returns:
        The id of the embedding's row that each vector is, or begins or ends with; -1 where there is none.
    """
    flat = vectors.reshape(-1, vectors.shape[-1])
    found = torch.full((len(flat),), -1, dtype=torch.int64)
    for module in model.modules():
        if not isinstance(module, nn.Embedding) or not 0 < module.embedding_dim <= flat.shape[1]:
            continue
        table, size = module.weight.detach().to(flat), module.embedding_dim
        for part in (flat[:, :size], flat[:, flat.shape[1] - size :]):
            for place in (found < 0).nonzero()[:, 0].tolist():
                rows = (table[:, 0] == part[place, 0]).nonzero()[:, 0]
                same = rows[(table[rows] == part[place]).all(dim=1)]
                if len(same) and bool(part[place].any()):
                    found[place] = same[0]
    return found.reshape(vectors.shape[:-1])


def words_of(given: object, name: str, ids: Sequence[int], arguments: Iterable[object]) -> tuple[str, ...]:
    """Name the tokens of one sequence in the order in which they are read: as given, else by their ids, else by number.

    Args:
        given: The words, in the order of the model's argument; None for none.
        name: Name of the sequence.
        ids: The id of each position, -1 where it is not known.
        arguments: The model's arguments.

    Raises:
        ShapeError: If the number of the words does not fit.
        UsageError: If they are no list.
    """
    if given is None:
        if len(ids) > 1 and len(set(ids)) == 1 and _count(ids[0], arguments) < len(ids):
            ids = [-1] * len(ids)  # a number that describes the whole sequence is no token of any step
        return tuple(str(i) if i >= 0 else f"x{t}" for t, i in enumerate(ids))
    if not isinstance(given, list | tuple):
        raise UsageError(f"the tokens of {name} are a {type(given).__name__}; expected a list of words")
    if len(given) != len(ids):
        raise ShapeError(f"{len(given)} tokens for {name or 'a sequence'} of {len(ids)} positions; expected as many")
    return tuple(map(str, given[::-1] if _is_reversed(ids, arguments) else given))


def _count(number: int, arguments: Iterable[object]) -> int:
    """Count how often a number stands in the arguments."""
    integers = (each for each in arguments if isinstance(each, Tensor) and not each.is_floating_point())
    return sum(int((each == number).sum()) for each in integers)


def _is_reversed(ids: Sequence[int], arguments: Iterable[object]) -> bool:
    """Tell whether a sequence is read from its end: its ids are those of a row of an argument, backward only."""
    rows: list[list[int]] = []
    for value in arguments:
        if isinstance(value, Tensor) and not value.is_floating_point() and not value.is_complex() and value.dim():
            for layout in (value, value.transpose(0, -1)):
                rows += layout.reshape(-1, layout.shape[-1]).tolist()
    wanted, backward = list(ids), list(ids)[::-1]
    starts = [row[: len(wanted)] for row in rows]
    return wanted not in starts and backward in starts and -1 not in wanted
