"""Which outputs of a model are explained: one, the difference of two, or every one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from unrolled.decomposition.attribution.contrast import of_output
from unrolled.decomposition.attribution.outputs import Outputs, OutputsKind
from unrolled.errors import ShapeError, UsageError, kind_of
from unrolled.explanation.examples import refuse_no_examples
from unrolled.explanation.explanation import Explanation
from unrolled.explanation.targets.likely_targets import likely_targets
from unrolled.explanation.targets.output_classes import class_index, class_names
from unrolled.explanation.targets.output_kind import OutputKind, output_kind
from unrolled.explanation.targets.select_target import (
    Target,
    checked_floating,
    class_outputs,
    no_tensor,
    place_of,
    select_target,
)
from unrolled.explanation.targets.target_function import called_first, function_name, refuse_against
from unrolled.model_runs.nested_tensors import leaves

__all__ = ["Choice", "Class", "SelectedTarget", "Wanted", "no_classes"]

Class = int | str
"""A class of a model: the index of its output, or its name."""

_KINDS: dict[OutputKind, OutputsKind] = {
    "output": "numbers",
    "probability of output": "probabilities",
    "log-probability of output": "log-probabilities",
}
_FEW = 5
"""Up to this many outputs, each is explained without being asked for."""
_ONLY = "the output"
"""The name of an output of one number in an account."""


@dataclass(frozen=True)
class Choice:
    """The readouts to compute for an explanation, and what becomes of them."""

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
        against = self.outputs[0].against if self.outputs else None
        indices = [each.target for each in self.outputs]
        same = against is None and len(set(indices)) == 1
        target = indices[0] if same else _selection(_of_each(indices), against, len(indices))
        return Choice((target,), labels, self.outputs, self.unit if against is None else "difference")

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
class SelectedTarget:
    """One number for each example of a model's output, for an account."""

    select: Callable[[Any], Tensor]
    """From what the model returns, in a plain run or a held one."""
    name: str
    index: int | None = None
    """The output that is selected of every example, where it is one and the user named it."""
    names: tuple[str, ...] = ()
    """Of each example, the name of its output, where they may differ."""
    guessed: bool = False
    """Whether the numbers of the output were taken for those of the examples by their count alone."""


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
        """Choose the readouts of an explanation.

        Args:
            output: What the model returned.
            batch: Number of examples.

        Raises:
            UsageError: If a class is out of range, or both classes are the same.
            UnknownNameError: If a class has no such name.
            ShapeError: If the output does not have one number for each class, or there are more or fewer names.
        """
        if callable(self.target):
            refuse_against(self.against)
            return Choice((self.target,), (function_name(self.target),) * batch, unit="output")  # as a forecast
        logits = checked_floating(class_outputs(output, self.target, batch).detach())
        count = logits.shape[1]
        known = class_names(self.classes, count)
        kind = output_kind(output)
        names = known or (("output",) if count == 1 else tuple(f"{kind} {k}" for k in range(count)))
        indices, against = self._indices(logits, known, names)
        unit = "output" if count == 1 else "logit" if kind == "output" else kind.removesuffix(" of output")
        outputs = tuple(
            Outputs(names, tuple(row), index, against, kind=_KINDS[kind])
            for row, index in zip(logits.tolist(), indices, strict=True)
        )
        whole = Choice(tuple(range(count)), names, outputs, unit)
        if count > 1 and (self.every or (self.every is None and count <= _FEW)):
            return whole
        only = whole.alone()
        return only if count > 1 else replace(only, outputs=())

    def choose_one(self, output: object, batch: int) -> Choice:
        """Choose the readout of the explained output, without those of the others; otherwise as :meth:`choose`."""
        return replace(self, every=False).choose(output, batch)

    def select(self, output: Any, arguments: object) -> SelectedTarget:
        """Find the target of an account in what a plain run returned.

        Args:
            output: What it returned.
            arguments: What the model was given.

        Raises:
            As :meth:`choose`, and a UsageError if no number of the output is a class of an example.
        """
        target, against = self.target, self.against
        if callable(target):
            refuse_against(against)
            return _by_function(output, target, arguments)
        predicts, axes = target is None, output.dim() if isinstance(output, Tensor) else None
        if predicts and against is None and axes is not None and axes < 2:
            return self._without_classes(output, arguments)
        if axes is None and not predicts:
            raise no_tensor(output, target)
        if axes is None or axes > 2 or (predicts and axes < 2):
            raise no_classes(output, target)
        batch = len(output) if axes == 2 else 1
        found = class_outputs(output, target, batch)
        refuse_no_examples(found)
        count = found.shape[1]
        known = class_names(self.classes, count)
        names = known or tuple(f"output {k}" for k in range(count))
        indices, other = self._indices(checked_floating(found) if predicts else found, known, names)
        if predicts and not known and count == 1:
            names = (_ONLY,)
        of_each = tuple(names[index] for index in indices)
        name = of_each[0] if not predicts or batch == 1 or count == 1 else "the predicted class"
        rather = "" if other is None else f" rather than {names[other]}"
        return SelectedTarget(
            _selection(_of_each(indices) if predicts else indices[0], other, batch),
            f"{name}{rather}",
            None if predicts or other is not None else indices[0],
            tuple(f"{each}{rather}" for each in of_each) if predicts else (),
        )

    def _indices(self, outputs: Tensor, known: Sequence[str], names: Sequence[str]) -> tuple[list[int], int | None]:
        """Return the index of the output of each example, and of the one that is subtracted.

        Args:
            outputs: Shape (batch, classes).
            known: The names that the user gave them.
            names: Their names in errors.
        """
        batch, count = outputs.shape
        if self.target is None:
            indices: list[int] = outputs.argmax(dim=1).tolist()
        else:
            indices = [class_index("target", self.target, known, count)] * batch
        other = None if self.against is None else class_index("against", self.against, known, count)
        if other is not None and other in indices:
            if self.target is None:
                raise UsageError(
                    f"example {indices.index(other)} is predicted to be {names[other]}, which is against; name the "
                    "target, or leave the example out"
                )
            raise UsageError(f"{names[other]} against itself; expected two different classes")
        return indices, other

    def _without_classes(self, output: Tensor, arguments: object) -> SelectedTarget:
        """Take an output of shape (batch,), or () of one example; classes of one example have this shape too."""
        count = output.numel()
        counts_examples = count == 1 or any(count in each.shape[:2] for _, each in leaves(arguments))
        if not counts_examples or (count > 1 and self.classes is not None and len(self.classes) > 1):
            raise no_classes(output)
        (name,) = class_names(self.classes, 1) or (_ONLY,)
        return SelectedTarget(lambda output: select_target(output, 0, count), name, guessed=count > 1)


def _of_each(indices: Sequence[int]) -> Target:
    """Return the target that is the output of one index for each example."""

    def picked(output: object) -> Tensor:
        found = class_outputs(output, None, len(indices))
        columns = found.new_tensor(indices, dtype=torch.long)  # float16 and bfloat16 round large indices
        return found.gather(1, columns[:, None])[:, 0]

    return picked


def _selection(target: Target, against: int | None, batch: int) -> Callable[[object], Tensor]:
    """Return what selects a target, or its difference to another output, for each of ``batch`` examples."""

    def selected(output: object) -> Tensor:
        value = select_target(output, target, batch)
        return value if against is None else value - select_target(output, against, batch)

    return selected


def _by_function(output: Any, target: Callable[[object], Tensor], arguments: object) -> SelectedTarget:
    chosen = called_first(target, output)
    if not isinstance(chosen, Tensor):
        raise ShapeError(f"the target gave {kind_of(chosen)}; expected a tensor, one number an example")
    count = chosen.numel()
    sizes = [each.shape[:2] for _, each in leaves(arguments)]  # of time and batch, in either order
    of_row = chosen.shape[:-1] == (1,) and any(1 in each for each in sizes)
    of_one = isinstance(output, Tensor) and output.shape[:1] == (1,) and (output.dim() == 2 or of_row)
    of_one &= not any(count in each and 1 not in each for each in sizes)  # (batch, classes), or (1, batch)
    if (of_one and count > 1) or (chosen.dim() > 1 and count != max(chosen.shape)):
        raise ShapeError(f"the target gave shape {tuple(chosen.shape)}; expected one number an example")
    return SelectedTarget(lambda output: select_target(output, target, count), function_name(target))


def no_classes(output: Any, target: object = None) -> UsageError:
    """Return the error about an output of which no number is a class of an example; the advice picks the target."""
    axes = output.dim() if isinstance(output, Tensor) else None
    found = kind_of(output) if axes is None else f"of shape {tuple(output.shape)}"
    codes = [code for code, _ in likely_targets(output, place_of(target))]
    advice = f"a function: target={codes[0]}" if codes else "a function"
    if axes == 1:
        advice = "an index or a function: target=0 of one example, target=lambda out: out of a number an example"
    elif axes == 3 and codes:
        advice += f"; {codes[1].removeprefix('lambda out: ')} if the first axis is time"
    return UsageError(f"the output is {found}, not (batch, classes): pass target=, {advice}")
