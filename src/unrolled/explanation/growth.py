"""A note where contributions are large against their sum."""

from __future__ import annotations

from unrolled.expansions.base import Expansion

__all__ = ["NOISY", "growth_notes"]

NOISY = 30.0
"""Above this cancellation, contributions are large against their sum."""


def growth_notes(cancellation: float, expansion: Expansion) -> tuple[str, ...]:
    """Note a cancellation above :data:`NOISY`, with an expansion that is often quieter."""
    if cancellation <= NOISY:
        return ()
    quieter = " or ".join(name for name in ("gates", "operating") if name != str(expansion))
    size = f"contributions are {cancellation:.3g} times as large as their sum"
    return (f"{size}; another expansion may be quieter: {quieter}",)
