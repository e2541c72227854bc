"""The account of a logit: its parts, and their sum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

__all__ = ["Ledger"]


@dataclass(frozen=True)
class Ledger(Mapping[str, float]):
    """The parts of a logit: logit = ngrams + initial + bias + remainder.

    A read-only mapping as well: ``ledger["bias"]``, ``dict(ledger)``.

    Example:
        >>> from unrolled import Ledger
        >>> ledger = Ledger(ngrams=1.5, initial=0.0, bias=0.25, remainder=0.0, logit=1.75)
        >>> ledger.bias == ledger["bias"]
        True
    """

    ngrams: float
    """Sum of the contributions of all n-grams."""
    initial: float
    """Contribution of the initial state, carried through the whole sequence."""
    bias: float
    """What the biases and constants of the model around the network contribute; with ``readout="ray"`` F(0), the logit
    that the model gives when the recurrent states it reads are zero."""
    remainder: float
    """What the first three leave over: the error of the expansion, of the quadrature and of rounding."""
    logit: float
    """The output of the model."""

    def __getitem__(self, key: str) -> float:
        if key not in self.__dataclass_fields__:
            raise KeyError(key)
        return float(getattr(self, key))

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dataclass_fields__)

    def __len__(self) -> int:
        return len(self.__dataclass_fields__)
