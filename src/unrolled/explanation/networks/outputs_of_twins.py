"""The output of a model with twins in the places of its modules must be that of the model itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor, nn

from unrolled.decomposition.opening.parity import PARITY, Parity
from unrolled.decomposition.opening.recurrent_twin import quantised_kind
from unrolled.errors import ParityError

__all__ = ["compare_with_twins"]

_COARSE_OUTPUT = 0.1
"""Parity of a twin in a coarser type; and how far one of quantised weights may be off, relative to the largest output.

The second is closer where outputs are below 1, as probabilities are: a tenth of these would be another model.
"""
_MOVE = 2.0**-10
"""Relative change of a twin's weights; it shows how large the sums are of which outputs are made."""


def compare_with_twins(
    expected: Sequence[Tensor],
    run: Callable[[], list[Tensor]],
    replaced: Sequence[nn.Module],
    twins: Sequence[nn.Module],
) -> tuple[str, ...]:
    """Compare a model's output with that of its twins; note the gap of quantised weights.

    Args:
        expected: What the model gave.
        run: Runs it with its twins, and returns the tensors of its output.
        replaced: The modules that have twins.
        twins: Their twins.

    Raises:
        ParityError: If the outputs differ by more than rounding.
    """
    found = run()
    shapes, given = ([tuple(each.shape) for each in tensors] for tensors in (expected, found))
    if shapes != given:
        raise ParityError(
            f"a Python module with the weights of the scripted, traced or quantised one gives an output of shapes "
            f"{given}, not {shapes}: pass the module it was made of"
        )
    parities = [
        Parity.of(b, a, PARITY.get(a.dtype, _COARSE_OUTPUT), floor=0.0)
        for a, b in zip(expected, found, strict=True)
        if a.is_floating_point()
    ]
    gap, size = (max((getattr(each, name) for each in parities), default=0.0) for name in ("gap", "size"))
    if any(quantised_kind(each) is not None for each in replaced):
        if not all(each.gap <= _COARSE_OUTPUT * size for each in parities):
            raise ParityError(
                f"with its quantised weights in float32 the model's output differs by {gap:.2g} of {size:.2g}; "
                "expected at most a tenth: explain the model before it was quantised"
            )
        return (
            f"the model is quantised; explained are the same weights in float32, whose output differs by {gap:.2g}",
        )
    if not all(each.holds for each in parities):  # outputs may be small since what they are sums of cancels
        with _moved_weights(twins):
            moved = run()
        pairs = ((a, b) for a, b in zip(found, moved, strict=True) if a.is_floating_point())
        sizes = [Parity.of(b, a, 0.0).gap / _MOVE for a, b in pairs]
        parities = [replace(each, floor=min(1.0, size)) for each, size in zip(parities, sizes, strict=True)]
    if not all(each.holds for each in parities):
        raise ParityError(
            "a Python module with the weights of the scripted, traced or hand-written one gives another output, by "
            f"{gap:.2g}; expected rounding: pass the module it was made of"
        )
    return ()


@contextmanager
def _moved_weights(twins: Sequence[nn.Module]) -> Iterator[None]:
    """Give twins weights that are a little larger or smaller, until the end of the block."""
    places = [(module, name) for twin in twins for module in twin.modules() for name in module._parameters]
    own = [module._parameters[name] for module, name in places]
    try:
        for (module, name), weight in zip(places, own, strict=True):
            if weight is not None:  # by its attribute, which torch.nn's networks watch
                wave = torch.arange(1, weight.numel() + 1, device=weight.device).sin().reshape(weight.shape)
                setattr(module, name, nn.Parameter(weight.detach() * (1 + _MOVE * wave).to(weight.dtype), False))
        yield
    finally:
        for (module, name), weight in zip(places, own, strict=True):
            setattr(module, name, weight)
