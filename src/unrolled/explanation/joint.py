"""The explanation of an output that is made of several sequences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

import torch
from torch import Tensor

from unrolled.decomposition.attribution.attribution import Attribution, NGram
from unrolled.decomposition.attribution.number_notes import number_notes
from unrolled.decomposition.attribution.triangle import Triangle
from unrolled.errors import UsageError
from unrolled.explanation.explanation import Explanation, refuse_others
from unrolled.explanation.features import one_after_another

__all__ = ["NGRAMS_OF", "JointExplanation", "joint_explanation"]

NGRAMS_OF = "n-grams of "
"""Begins the name of the part of a sequence's bias that another sequence contributes."""


@dataclass(frozen=True, repr=False, eq=False)
class JointExplanation(Explanation):
    r"""The n-grams of several sequences in one ledger.

    .. math:: \text{logit} = \sum_{\text{sequences}} \text{n-grams} + \text{initial states} + \text{bias}
        + \text{remainder}

    Sequences are the source and the target of a translator, the two texts of a siamese model, the words of a text whose
    characters are read one word at a time. ``sequences`` holds each as an
    :class:`~unrolled.explanation.explanation.Explanation` of its own: what the others contribute is in its bias, by
    name. The tokens here are those of all sequences side by side; no n-gram reaches from one into another.

    Example:
        >>> import torch, unrolled
        >>> class Siamese(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.embed, self.rnn = torch.nn.Embedding(9, 4), torch.nn.GRU(4, 6, batch_first=True)
        ...     def forward(self, one, other):
        ...         u, v = (self.rnn(self.embed(ids))[0].mean(dim=1) for ids in (one, other))
        ...         return (u * v).sum(dim=1, keepdim=True)
        >>> found = unrolled.explain(Siamese(), torch.tensor([[1, 2, 3]]), torch.tensor([[4, 5]]), target=0)
        >>> [(each.name, each.tokens) for each in found.sequences]
        [('rnn, call 0', ('1', '2', '3')), ('rnn, call 1', ('4', '5'))]
        >>> abs(sum(each.ledger.ngrams for each in found.sequences) - found.ledger.ngrams) < 1e-9
        True
    """

    members: tuple[Explanation, ...] = ()
    from_end: tuple[bool, ...] | None = None
    """Whether each sequence reads from the last token to the first; None unless all read one text, as in an ensemble.
    """

    @property
    def sequences(self) -> tuple[Explanation, ...]:
        """The sequences, in the order in which the model begins to read them."""
        return self.members

    def sequence(self, name: str) -> Explanation:
        """Return one sequence by its name.

        Raises:
            UsageError: If there is none of that name.
        """
        for each in self.members:
            if each.name == name:
                return each
        raise UsageError(f"no sequence {name!r}; expected one of: {', '.join(each.name for each in self.members)}")

    def ngrams(self) -> Iterator[NGram]:
        """Iterate over the n-grams of every sequence, by direction, start and length."""
        for d, direction in enumerate(self.directions):
            for first, each in zip(self._firsts, self.members, strict=True):
                if direction not in each.directions:
                    continue
                end = first + len(each)
                for start in range(first, end):
                    longest = min(each.longest, end - start)
                    yield from (self._ngram(d, start, start + k) for k in range(1, longest + 1))

    def save_html(self, path: str | Path, *others: Attribution) -> Path:
        """Write one self-contained HTML page with a list of the sequences, and return its path.

        Args:
            path: The file to write.
            *others: Explanations of the same sequences by other expansions, shown beside these.

        Raises:
            UsageError: If one of the others has no sequence of that name, or is of another text or target, or if the
                path is that of another format.
        """
        from unrolled.report.page import save_pages

        joint = [each for each in (self, *others) if isinstance(each, JointExplanation)]
        if len(joint) <= len(others):
            raise UsageError(
                "one of the explanations is of a single sequence; expected explanations of the same sequences"
            )
        refuse_others(self, others)
        examples = [[_with_others(each.sequence(member.name)) for each in joint] for member in self.members]
        save_pages(path, examples, f"Where “{self.target}” comes from")
        return Path(path)

    def render(self, width: int = 100, colour: bool = False) -> str:
        """Return the text for a terminal of ``width`` columns, with ANSI colours if ``colour``."""
        from unrolled.report.joint_terminal import to_text

        return to_text(self, self.members, width=width, colour=colour)

    @property
    def _firsts(self) -> list[int]:
        """Where each sequence begins among the tokens."""
        return [0, *accumulate(len(each) for each in self.members)][:-1]

    def _checked_span(self, start: int, stop: int) -> tuple[int, int]:
        start, stop = super()._checked_span(start, stop)
        if not any(
            first <= start and stop <= first + len(m) for first, m in zip(self._firsts, self.members, strict=True)
        ):
            raise UsageError(f"the tokens [{start}, {stop}) are of two sequences; expected those of one")
        return start, stop

    def _direction_indices(self, direction: str | None, start: int) -> list[int]:
        found, member = super()._direction_indices(direction, start), self._member_at(start)
        if direction is not None and direction not in member.directions:
            read = " and ".join(member.directions)
            raise UsageError(f"the sequence {member.name!r} is read {read} only; there is nothing {direction}")
        return found

    def _member_at(self, start: int) -> Explanation:
        """Return the sequence of a token."""
        return next(m for first, m in reversed([*zip(self._firsts, self.members, strict=True)]) if first <= start)

    def _ngram(self, d: int, start: int, stop: int) -> NGram:
        found = super()._ngram(d, start, stop)
        return NGram(**{**vars(found), "sequence": self._member_at(start).name})

    def __repr__(self) -> str:
        return super().__repr__().replace("Explanation(", f"JointExplanation({len(self.members)} sequences, ", 1)

    def _repr_html_(self) -> str:
        from unrolled.report.page import render_fragment

        return "".join(render_fragment(each) for each in self.members)


def _with_others(member: Explanation) -> Explanation:
    """Note where the other sequences stand in the ledger of one."""
    return replace(member, notes=(*member.notes, "the bias holds what the other sequences contribute"))


def joint_explanation(
    members: Sequence[Explanation], shared: tuple[str, ...], from_end: tuple[bool, ...] | None
) -> JointExplanation:
    """Put several sequences of one example into one explanation, with the notes that are not of one number alone."""
    first, shown = members[0], {f"{NGRAMS_OF}{each.name}" for each in members}
    biases = {name: value for name, value in first.biases.items() if name not in shown}
    ngrams, initial = sum(each.ledger.ngrams for each in members), sum(each.ledger.initial for each in members)
    joint = JointExplanation(
        tokens=tuple(token for each in members for token in each.tokens),
        directions=max((each.directions for each in members), key=len),
        triangle=_side_by_side(members),
        ledger=replace(first.ledger, ngrams=ngrams, initial=initial, bias=sum(biases.values())),
        target=first.target,
        unit=first.unit,
        expansion=first.expansion,
        exact=all(each.exact for each in members),
        local=first.local,
        leaves_out=first.leaves_out,
        residual=max(each.residual for each in members),
        parity=max(each.parity for each in members),
        biases=biases,
        deterministic=first.deterministic,
        rounding=first.rounding,
        notes=shared,
        max_order=min((each.max_order for each in members if each.max_order is not None), default=None),
        by_token=torch.cat([each.token_scores for each in members]),
        features=one_after_another([each.features for each in members]),
        no_features=first.no_features if first.features is None else "each of its sequences has its own",
        members=tuple(members),
        from_end=from_end,
    )
    return replace(joint, notes=(*shared, *number_notes(joint)))


def _side_by_side(members: Sequence[Explanation]) -> Triangle:
    """Put the triangles of several sequences in one, one after the other."""
    ways = max(len(each.directions) for each in members)
    ends = tuple(accumulate(len(each) for each in members))

    def joined(bands: Sequence[Tensor]) -> Tensor:
        shape = (ways, sum(b.shape[1] for b in bands), max(b.shape[2] for b in bands))
        whole = torch.zeros(shape, dtype=torch.float64, device="cpu")
        for first, b in zip(accumulate((b.shape[1] for b in bands), initial=0), bands, strict=False):
            whole[: len(b), first : first + b.shape[1], : b.shape[2]] = b
        return whole

    return Triangle(
        joined([each.triangle.score_band for each in members]),
        joined([each.triangle.contribution_band for each in members]),
        ends[:-1],
        tuple(len(each.directions) for each in members),
    )
