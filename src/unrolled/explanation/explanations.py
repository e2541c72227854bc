"""The result of :func:`unrolled.explain_batch`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import overload

from torch import Tensor

from unrolled.decomposition.attribution.outputs import Outputs
from unrolled.errors import ShapeError, UsageError, kind_of, suggest
from unrolled.explanation.explanation import Explanation
from unrolled.explanation.phrase_totals import LEAST, LONGEST, PhraseTotals
from unrolled.report.corpus_phrases import CorpusPhrases
from unrolled.report.formatting import clip, counted, signed, visible
from unrolled.report.spans import largest_phrases
from unrolled.whole_number import whole_number

__all__ = ["Explanations"]

_PRINTED, _NGRAM, _TEXT = 10, 30, 60
"""Examples that are printed, and characters of an n-gram and of a text."""


@dataclass(frozen=True, repr=False)
class Explanations(Sequence[Explanation]):
    """The explanations of several examples, in the order of the model's output; a read-only sequence.

    ``print`` shows a line for each of the first ten. ``+`` joins the explanations of several batches.

    Example:
        >>> import torch, unrolled
        >>> class Model(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.rnn, self.head = torch.nn.GRU(3, 8, batch_first=True), torch.nn.Linear(8, 2)
        ...     def forward(self, x):
        ...         return self.head(self.rnn(x)[0][:, -1])
        >>> found = unrolled.explain_batch(Model(), torch.randn(4, 5, 3), target=1)
        >>> len(found), len(found[:2]), len(found + found[:2]), all(each.exact for each in found)
        (4, 2, 6, True)
    """

    members: tuple[Explanation, ...]

    @overload
    def __getitem__(self, place: int) -> Explanation: ...

    @overload
    def __getitem__(self, place: slice) -> Explanations: ...

    def __getitem__(self, place: int | slice) -> Explanation | Explanations:
        if isinstance(place, slice):
            return Explanations(self.members[place])
        return self.members[place]

    def __len__(self) -> int:
        return len(self.members)

    def __add__(self, other: Explanations) -> Explanations:
        return Explanations(self.members + other.members) if isinstance(other, Explanations) else NotImplemented

    def save_html(
        self,
        path: str | Path,
        true: Sequence[int | str | None] | Tensor | None = None,
        title: str = "Explanations",
        phrases: CorpusPhrases | None = None,
    ) -> Path:
        """Write one page with a list of all examples and filters, and return its path.

        Args:
            path: The file; an existing one is replaced.
            true: Index or name of the right class of each example; None where it is not known.
            title: The page's heading.
            phrases: What :meth:`phrases` returns, to show its two ends above the list.

        Raises:
            ShapeError: If there are not as many right classes as examples.
            UsageError: If there are no examples, an argument is of another type, or a right class is not the index of
                an output: an explanation of a model's only output, or of a target that is a function, has no classes;
                or if the path is that of another format.
            FileError: If the file cannot be written.
        """
        from unrolled.report.page import save_pages

        if true is not None and not isinstance(true, Iterable):
            raise UsageError(f"true is {kind_of(true)}; expected a list, the index of each right class or None")
        if not isinstance(title, str):
            raise UsageError(f"title is {kind_of(title)}; expected a text")
        if phrases is not None and not isinstance(phrases, CorpusPhrases):
            raise UsageError(f"phrases is {kind_of(phrases)}; expected what the method phrases() returns")
        right = [None] * len(self) if true is None else list(true)
        if len(right) != len(self):
            raise ShapeError(f"{len(right)} right classes for {len(self)} examples; expected one for each")
        shown = [_with_right_class(one, label) for one, label in zip(self.members, right, strict=True)]
        save_pages(path, [(one,) for one in shown], title, phrases)
        return Path(path)

    def save_json(self, path: str | Path) -> Path:
        """Write the n-grams, the ledger and the notes of every example as JSON, and return the path.

        Raises:
            UsageError: If the path is that of another format.
            NonFiniteError: If an explanation holds NaN or infinity.
            FileError: If the file cannot be written.
        """
        from unrolled.report.json_records import save_json

        save_json(path, self.members)
        return Path(path)

    def phrases(self, longest: int = LONGEST, least: int = LEAST) -> CorpusPhrases:
        """Return what the phrases of all texts speak for, from the highest mean phrase score to the lowest.

        The result is a sequence: each phrase has ``text``, ``order``, ``texts``, ``count``, ``phrase_score``, the mean
        of its scores, and ``deviation``, their standard deviation. ``print`` shows both ends of it, ``to_records`` and
        ``to_frame`` all of it. Of series of numbers a phrase is made of steps: ``x2 x3`` is these two steps of every
        example, and ``load: x2 x3`` those of one of several series that an example reads.

        Args:
            longest: Number of tokens of the longest phrases.
            least: Number of texts in which a phrase must occur.

        Raises:
            UsageError: If the texts are explained for different outputs or by different expansions, there are none, or
                an argument is below 1.

        Example:
            >>> import torch, unrolled
            >>> class Model(torch.nn.Module):
            ...     def __init__(self):
            ...         super().__init__()
            ...         self.embed, self.rnn = torch.nn.Embedding(9, 4), torch.nn.GRU(4, 6, batch_first=True)
            ...         self.head = torch.nn.Linear(6, 2)
            ...     def forward(self, tokens):
            ...         return self.head(self.rnn(self.embed(tokens))[0][:, -1])
            >>> texts = [["not", "a", "bore"], ["a", "bore", "indeed"]]
            >>> found = unrolled.explain_batch(Model(), torch.tensor([[1, 2, 3], [2, 3, 4]]), target=1, tokens=texts)
            >>> sorted((each.text, each.texts) for each in found.phrases(least=2))
            [('a', 2), ('a bore', 2), ('bore', 2)]
        """
        totals = PhraseTotals(longest)
        for each in self.members:
            totals.add(each)
        return totals.phrases(least)

    def __str__(self) -> str:
        lines = [_line(each) for each in self.members[:_PRINTED]]
        if len(self) > _PRINTED:
            lines.append(f"… and {len(self) - _PRINTED:,} more")
        lines.append(counted(len(self), "example"))
        if self.members:
            lines[-1] += "; print one by its index, found[0]"
        if len(self) >= LEAST and all(each.features is None for each in self.members):
            lines[-1] += "; found.phrases() gives the mean score of each phrase over all of them"
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Explanations({len(self)}: {', '.join(map(repr, self.members[:3]))}{', …' if len(self) > 3 else ''})"


def _line(found: Explanation) -> str:
    """Show what is explained, its value, the n-gram that contributes most, and the text."""
    shown = tuple(map(visible, found.tokens))
    largest = "".join(
        f"  ({clip(each.text, _NGRAM)} {signed(each.contribution)})" for each in largest_phrases(found, 1)
    )
    text = clip(" ".join(shown[:_TEXT]), _TEXT)
    return f"{visible(found.target)} {signed(found.ledger.logit)}{largest}  {text}"


def _with_right_class(one: Explanation, label: object) -> Explanation:
    if one.outputs is not None:
        return replace(one, outputs=replace(one.outputs, true=_checked(label, one.outputs)))
    if label is not None:
        raise UsageError(
            "true= gives right classes, but what is explained has none; expected a model with an output for each class "
            "and an index or a name as target: of one logit, explain a model that returns "
            "torch.stack([torch.zeros_like(logit), logit], dim=1)"
        )
    return one


def _checked(label: object, outputs: Outputs) -> int | None:
    """Return the index of a right class; None where it is not known."""
    if label is None:
        return None
    if isinstance(label, str) and label in outputs.names:
        return outputs.names.index(label)
    count = len(outputs.values)
    index = whole_number(label)
    if index is None:
        unknown = f"; no class is called {label!r}: {suggest(label, outputs.names)}" if isinstance(label, str) else ""
        raise UsageError(
            f"a right class is {kind_of(label)}; expected an index of the output, a name, or None{unknown}"
        )
    if not 0 <= index < count:
        raise UsageError(f"a right class is {index}; expected 0 to {count - 1}, or None where it is not known")
    return index
