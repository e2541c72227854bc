"""Names for the numbers of a step that an account tells apart."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from torch import Tensor

from unrolled.decomposition.arguments import checked_names
from unrolled.errors import UsageError
from unrolled.whole_model.accounted_output import AccountedOutput

__all__ = ["feature_names"]


def feature_names(given: Sequence[str] | None, found: AccountedOutput) -> Mapping[str, tuple[str, ...]]:
    """Return the names of the last dimension of each argument of numbers, side by side in the order of the arguments.

    As many names as the first argument has numbers are its alone: a model may receive its hidden state beside a series.

    Raises:
        ShapeError: If there are more or fewer names.
        UsageError: If the model reads no numbers.
    """
    if given is None:
        return {}
    if not found.features:
        raise UsageError("features= names numbers, but the model reads token ids; leave it out")
    counts = {name: _count(part) for name, part in found.features.items()}
    (first, alone), *others = counts.items()
    if others and isinstance(given, Collection) and len(given) == alone:
        return {first: checked_names("features", given, alone, "number of a step")}
    of = "number of a step"
    if others:
        each = ", then ".join(f"{count} of argument {name}" for name, count in counts.items())
        of += f": {each}; or the {alone} of argument {first} alone"
    names, left = {}, checked_names("features", given, sum(counts.values()), of)
    for name, count in counts.items():
        names[name], left = left[:count], left[count:]
    return names


def _count(part: Tensor) -> int:
    return part.shape[-1] if part.dim() else 1
