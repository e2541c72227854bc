"""The target of an explanation, and its name."""

from __future__ import annotations

from unrolled.explanation.output_kind import OutputKind, output_kind
from unrolled.explanation.readout import Target, class_outputs

__all__ = ["choose_target"]


def choose_target(target: Target | None, output: object, batch: int) -> tuple[Target, list[str]]:
    """Return the target, and its name for each example; None becomes the predicted class of each."""
    kind = output_kind(output)
    if target is not None:
        return target, [_target_name(target, kind)] * batch
    predicted = class_outputs(output, 0, batch).argmax(dim=1)
    names = [f"{kind} {k}" for k in predicted.tolist()]
    if len(set(names)) == 1:
        return int(predicted[0]), names
    return lambda found: class_outputs(found, 0, batch).gather(1, predicted[:, None])[:, 0], names


def _target_name(target: Target, kind: OutputKind) -> str:
    if not callable(target):
        return f"{kind} {target}"
    name = getattr(target, "__name__", "")
    return name if name.isidentifier() else "the target"  # a lambda's name says nothing
