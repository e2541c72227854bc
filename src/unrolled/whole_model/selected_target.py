"""The target of an account: how it is selected from what a model returns, and its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unrolled.errors import ShapeError, UsageError, kind_of
from unrolled.explanation.targets.likely_targets import example_target
from unrolled.explanation.targets.output_classes import class_index, class_names
from unrolled.explanation.targets.select_target import Target, checked_floating, class_outputs, select_target
from unrolled.explanation.targets.target_function import called_target, function_name, refuse_against
from unrolled.model_runs.nested_tensors import leaves

__all__ = ["SelectedTarget", "no_classes"]

_ONLY = "the output"
"""The name of an output of one number."""


@dataclass(frozen=True)
class SelectedTarget:
    """One number for each example of a model's output."""

    select: Callable[[Any], Tensor]
    """From what the model returns, in a plain run or a held one."""
    name: str
    indices: Tensor | None = None
    """Of each example, the output that is selected; None of a function's."""
    names: tuple[str, ...] = ()
    """Of each example, the name of its output, where they may differ."""
    guessed: bool = False
    """Whether the numbers of the output were taken for those of the examples by their count alone."""

    @classmethod
    def of(
        cls,
        plain: Any,
        target: Target | str | None,
        classes: Sequence[str] | None,
        against: int | str | None,
        arguments: object,
    ) -> SelectedTarget:
        """Find the target in what a plain run returned.

        Args:
            plain: What it returned.
            target: As the user gave it; None for the predicted class of each example.
            classes: The names of the outputs.
            against: The class whose output is subtracted.
            arguments: What the model was given.
        """
        if callable(target):
            refuse_against(against)
            return _by_function(plain, target, arguments)
        if target is None and against is None and isinstance(plain, Tensor) and plain.dim() < 2:
            return _without_classes(plain, classes, arguments)
        chosen = _predicted(plain, classes) if target is None else _by_class(plain, target, classes)
        if against is None:
            return chosen
        other = _by_class(plain, against, classes, "against")
        assert chosen.indices is not None
        assert other.indices is not None
        same = (chosen.indices == other.indices).nonzero().flatten().tolist()
        if same and target is None:
            raise UsageError(
                f"example {same[0]} is predicted to be {other.name}, which is against; name the target, or leave the "
                "example out"
            )
        if same:
            raise UsageError(f"{other.name} against itself; expected two different classes")
        return _difference(chosen, other)


def _by_function(plain: Any, target: Callable[[object], Tensor], arguments: object) -> SelectedTarget:
    chosen = called_target(target, plain)
    if not isinstance(chosen, Tensor):
        raise ShapeError(f"the target gave {kind_of(chosen)}; expected a tensor, one number an example")
    count = chosen.numel()
    of_one = isinstance(plain, Tensor) and plain.dim() == 2 and len(plain) == 1  # (batch, classes), or (1, batch)
    sizes = [each.shape[:2] for _, each in leaves(arguments)]  # of time and batch, in either order
    of_one &= not any(count in each and 1 not in each for each in sizes)
    if (of_one and count > 1) or (chosen.dim() > 1 and count != max(chosen.shape)):
        raise ShapeError(f"the target gave shape {tuple(chosen.shape)}; expected one number an example")
    return SelectedTarget(lambda output: select_target(output, target, count), function_name(target))


def _difference(one: SelectedTarget, other: SelectedTarget) -> SelectedTarget:
    """Subtract the output of another class."""
    return SelectedTarget(
        lambda output: one.select(output) - other.select(output),
        f"{one.name} rather than {other.name}",
        names=tuple(f"{name} rather than {other.name}" for name in one.names),
    )


def _by_class(plain: Any, target: int | str, classes: Sequence[str] | None, argument: str = "target") -> SelectedTarget:
    if not isinstance(plain, Tensor):
        raise ShapeError(
            f"the model returned {kind_of(plain)}; expected a tensor, or a callable target that picks from it"
            f"{example_target(plain)}"
        )
    if plain.dim() > 2:
        raise no_classes(plain)
    batch = plain.shape[0] if plain.dim() > 1 else 1
    count = class_outputs(plain, target, batch).shape[1]
    names = class_names(classes, count)
    index = class_index(argument, target, names, count)
    return SelectedTarget(
        lambda output: select_target(output, index, batch),
        names[index] if names else f"output {index}",
        torch.full((batch,), index, device=plain.device),
    )


def _without_classes(plain: Tensor, classes: Sequence[str] | None, arguments: object) -> SelectedTarget:
    """Take an output of shape (batch,), or () of one example; classes of one example would be of this shape too."""
    count = plain.numel()
    counts_examples = count == 1 or any(count in each.shape[:2] for _, each in leaves(arguments))
    if not counts_examples or (count > 1 and classes is not None and len(classes) > 1):
        raise no_classes(plain)
    (name,) = class_names(classes, 1) or (_ONLY,)
    return SelectedTarget(lambda output: select_target(output, 0, count), name, guessed=count > 1)


def _predicted(plain: Any, classes: Sequence[str] | None) -> SelectedTarget:
    if not isinstance(plain, Tensor) or plain.dim() != 2:
        raise no_classes(plain)
    predicted = checked_floating(class_outputs(plain, None, len(plain))).argmax(dim=1, keepdim=True)
    count = plain.shape[1]
    alone = (_ONLY,) if count == 1 else tuple(f"output {k}" for k in range(count))
    names = class_names(classes, count) or alone
    of_each = tuple(names[k] for k in predicted[:, 0].tolist())
    name = of_each[0] if len(plain) == 1 or count == 1 else "the predicted class"
    return SelectedTarget(lambda output: output.gather(1, predicted)[:, 0], name, predicted[:, 0], of_each)


def no_classes(plain: Any) -> UsageError:
    """Return the error about an output of which no number is a class of an example."""
    axes = plain.dim() if isinstance(plain, Tensor) else None
    found = kind_of(plain) if axes is None else f"of shape {tuple(plain.shape)}"
    advice = f"a function{example_target(plain)}"
    if axes == 1:
        advice = "an index or a function: target=0 of one example, target=lambda out: out of a number an example"
    elif axes == 3:
        advice += "; out[-1, :, 0] if the first axis is time"
    return UsageError(f"the output is {found}, not (batch, classes): pass target=, {advice}")
