"""One question: what made this model say that of this sentence?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from unrolled.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from unrolled.explanation.explanation import Explanation

__all__ = ["ChosenTarget", "PreparedInput"]


@dataclass(frozen=True)
class PreparedInput:
    """A model about to be asked about one sentence."""

    model: nn.Module
    inputs: tuple[Tensor, ...]
    """What the model takes, each with one row."""
    tokens: tuple[str, ...]
    """The words as they are shown."""
    labels: tuple[str, ...]
    """What the classes are called; empty when nobody says."""
    notes: tuple[str, ...]
    rnn: str | None = None
    """Which recurrent network is opened, where there are several."""

    def logits(self) -> list[float]:
        """Compute what the model says.

        Returns:
            One logit a class.
        """
        import torch

        with torch.no_grad():
            return self.model(*self.inputs)[0].tolist()

    def name(self, target: int) -> str:
        """Call a class by its label or, failing that, its number.

        Args:
            target: its index.

        Returns:
            For example ``"positive"`` or ``"class 1"``.
        """
        return self.labels[target] if self.labels else f"class {target}"

    def find(self, wanted: str, classes: int) -> int:
        """Find a class.

        Args:
            wanted: its label or its index.
            classes: how many there are.

        Returns:
            Its index.

        Raises:
            UnknownNameError: when ``wanted`` is neither a label nor a number.
            UsageError: when it is a number and there is no such class.
        """
        if wanted in self.labels:
            return self.labels.index(wanted)
        if not wanted.removeprefix("-").isdecimal():
            raise UnknownNameError("class", wanted, self.labels or map(str, range(classes)))
        if not 0 <= int(wanted) < classes:
            raise UsageError(f"class {wanted} is out of range; expected 0 to {classes - 1}")
        return int(wanted)

    def ask(self, target: str | None = None, against: str | None = None) -> ChosenTarget:
        """Decide which number is to be explained.

        Args:
            target: a class by label or index; the one of the largest logit when left out.
            against: another class, whose logit is taken off.

        Returns:
            The question.

        Raises:
            UsageError: when the two are the same class.
        """
        logits = self.logits()
        if target is None:
            chosen = max(range(len(logits)), key=logits.__getitem__)
        else:
            chosen = self.find(target, len(logits))
        other = None if against is None else self.find(against, len(logits))
        if chosen == other:
            raise UsageError(f"{self.name(chosen)} against itself; expected two different classes")
        return ChosenTarget(self, tuple(logits), chosen, other)


@dataclass(frozen=True)
class ChosenTarget:
    """A case and the number to be explained: a logit, or the difference of two."""

    case: PreparedInput
    logits: tuple[float, ...]
    target: int
    against: int | None

    @property
    def name(self) -> str:
        """What is explained, in words."""
        name = self.case.name(self.target)
        return name if self.against is None else f"{name} rather than {self.case.name(self.against)}"

    def explain(self, expansion: str) -> Explanation:
        """Answer by one expansion.

        Args:
            expansion: its name.

        Returns:
            The explanation, in the words of the case.
        """
        from unrolled.explanation.api import explain

        target, against = self.target, self.against

        def difference(answer: object) -> Tensor:
            logits = cast("Tensor", answer)
            return logits[..., target] - logits[..., against]

        found = explain(
            self.case.model,
            *self.case.inputs,
            target=target if against is None else difference,
            tokens=self.case.tokens,
            expansion=expansion,
            rnn=self.case.rnn,
        )
        one = cast("Explanation", found)  # a batch of one
        return replace(one, target=self.name, notes=(*one.notes, *self.case.notes))

    def explain_otherwise(self, shown: str) -> tuple[list[Explanation], list[str]]:
        """Answer by every other expansion that suits the network.

        Args:
            shown: the name of the one that is shown already, as an explanation bears it.

        Returns:
            The explanations, and a line about each expansion that does not suit.
        """
        from unrolled.expansions import EXPANSIONS, resolve

        found, left_out = [], []
        for name in EXPANSIONS.names():
            if str(resolve(name)) == shown:
                continue
            try:
                found.append(self.explain(name))
            except UsageError as error:
                left_out.append(f"{name}: {error}")
        return found, left_out
