"""Which outputs of a model are explained: one, the difference of two, or every one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from unrolled.decomposition.attribution.contrast import of_output
from unrolled.decomposition.attribution.outputs import Outputs, OutputsKind
from unrolled.errors import UsageError
from unrolled.explanation.explanation import Explanation
from unrolled.explanation.targets.output_classes import class_index, class_names
from unrolled.explanation.targets.output_kind import OutputKind, output_kind
from unrolled.explanation.targets.select_target import Target, checked_floating, class_outputs
from unrolled.explanation.targets.target_function import function_name, refuse_against

__all__ = ["Choice", "Class", "Wanted"]

Class = int | str
"""A class of a model: the index of its output, or its name."""

KINDS: dict[OutputKind, OutputsKind] = {
    "output": "numbers",
    "probability of output": "probabilities",
    "log-probability of output": "log-probabilities",
}
FEW = 5
"""Up to this many outputs, each is explained without being asked for."""


@dataclass(frozen=True)
class Choice:
    """The readouts to compute, and what becomes of them."""

    targets: tuple[Target, ...]
    """One target, or the index of every output."""
    names: tuple[str, ...]
    """Of the targets; where there is one, it may differ by example."""
    outputs: tuple[Outputs, ...] = ()
    """Of each example; empty if the target is a function of the output."""
    unit: str = "logit"
    """What the explained number is called."""

    @property
    def every(self) -> bool:
        """Whether every output is explained."""
        return len(self.targets) > 1

    def of_sigmoids(self) -> Choice:
        """Return the choice where every output is the result of a sigmoid."""
        return replace(self, outputs=tuple(replace(each, kind="sigmoids") for each in self.outputs))

    def unit_of(self, is_sigmoid: bool) -> str:
        """Return what the explained number is called, given whether it is known to be the result of a sigmoid."""
        return "probability" if is_sigmoid and self.unit in {"logit", "output"} else self.unit

    def alone(self) -> Choice:
        """Return the choice of the explained outputs without the others."""
        labels = tuple(each.contrast_name(each.target, each.against) for each in self.outputs)
        differs = any(each.against is not None for each in self.outputs)
        return Choice((_readout(self.outputs),), labels, self.outputs, "difference" if differs else self.unit)

    def combine(self, found: Sequence[Sequence[Explanation]]) -> list[Explanation]:
        """Make the explanation of each example from those by target and example."""
        if not self.outputs:
            return list(found[0])
        if not self.every:
            return [replace(each, outputs=outputs) for each, outputs in zip(found[0], self.outputs, strict=True)]
        combined = []
        for outputs, by_class in zip(self.outputs, zip(*found, strict=True), strict=True):
            whole = replace(by_class[0], outputs=outputs, by_class=by_class)
            one = of_output(whole, outputs.target, outputs.against)
            assert isinstance(one, Explanation)
            combined.append(one)
        return combined


@dataclass(frozen=True)
class Wanted:
    """Which output a user asks for."""

    target: Target | str | None
    """An output, None for the predicted one of each example, or a function of the model's output."""
    against: Class | None = None
    """The output to subtract."""
    classes: Sequence[str] | None = None
    """The names of the outputs."""
    every: bool | None = None
    """Whether to explain every output; None if there are at most five."""

    def choose(self, output: object, batch: int) -> Choice:
        """Choose the readouts.

        Args:
            output: What the model returned.
            batch: Number of examples.

        Raises:
            UsageError: If a class is out of range, or both classes are the same.
            UnknownNameError: If a class has no such name.
            ShapeError: If the output does not have one number for each class, or there are more or fewer names.
        """
        target, against, every = self.target, self.against, self.every
        if callable(target):
            refuse_against(against)
            return Choice((target,), (function_name(target),) * batch, unit="output")  # of any kind, as a forecast
        logits = checked_floating(class_outputs(output, target, batch).detach())
        count = logits.shape[1]
        known = class_names(self.classes, count)
        kind = output_kind(output)
        names = known or _names_by_kind(kind, count)
        chosen = None if target is None else class_index("target", target, known, count)
        other = None if against is None else class_index("against", against, known, count)
        predicted = logits.argmax(dim=1).tolist()
        unit = "output" if count == 1 else "logit" if kind == "output" else kind.removesuffix(" of output")
        outputs = []
        for row, highest in zip(logits.tolist(), predicted, strict=True):
            one = highest if chosen is None else chosen
            if one == other:
                raise UsageError(f"{names[one]} against itself; expected two different classes")
            outputs.append(Outputs(names, tuple(row), one, other, kind=KINDS[kind]))
        whole = Choice(tuple(range(count)), names, tuple(outputs), unit)
        if count > 1 and (every or (every is None and count <= FEW)):
            return whole
        only = whole.alone()
        return only if count > 1 else replace(only, outputs=())

    def choose_one(self, output: object, batch: int) -> Choice:
        """Choose the readout of the explained output, without those of the others; otherwise as :meth:`choose`."""
        return replace(self, every=False).choose(output, batch)


def _names_by_kind(kind: OutputKind, count: int) -> tuple[str, ...]:
    """Name the outputs of a model by what they hold and their index."""
    return ("output",) if count == 1 else tuple(f"{kind} {k}" for k in range(count))


def _readout(outputs: Sequence[Outputs]) -> Target:
    """Return the target of every example, as an index if all have the same."""
    first = outputs[0] if outputs else None
    if first is None or (first.against is None and all(each.target == first.target for each in outputs)):
        return first.target if first is not None else 0

    def selected(output: object) -> Tensor:
        found = class_outputs(output, None, len(outputs))
        columns = found.new_tensor([each.target for each in outputs]).long()[:, None]
        value = found.gather(1, columns)[:, 0]
        return value if first.against is None else value - found[:, first.against]

    return selected
