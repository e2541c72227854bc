"""What can go wrong, said in one line: what came, and what was expected.

Every error a user can cause is an :class:`UnrolledError`. It is a ``ValueError``, so library users catch it
as they are used to; the command line prints its text on one line and leaves with its ``exit_code``
(the numbers of BSD's ``sysexits.h``).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import ClassVar

__all__ = [
    "ConfigError",
    "DataError",
    "DivergedError",
    "FileError",
    "NonFiniteError",
    "ParityError",
    "ShapeError",
    "StoppedError",
    "UnknownNameError",
    "UnrolledError",
    "UsageError",
]


class UnrolledError(ValueError):
    """Any mistake that the person calling us can mend."""

    exit_code: ClassVar[int] = 2


class UsageError(UnrolledError):
    """An argument that cannot be: out of range, contradictory, or missing."""


class ShapeError(UsageError):
    """Tensors whose shapes do not fit together."""


class UnknownNameError(UsageError):
    """A name that no member of a zoo bears; the text offers the nearest one."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(set(known))
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"expected one of: {', '.join(names)}"
        super().__init__(f"unknown {kind} {name!r}; {hint}")


class ParityError(UnrolledError):
    """Our states differ from the network's own by more than rounding: opening it would explain another network."""

    exit_code = 65


class DataError(UnrolledError):
    """A file, or a tensor, whose content is not what was expected."""

    exit_code = 65


class NonFiniteError(DataError):
    """NaN or infinity where a number was expected."""


class FileError(UnrolledError):
    """A file that cannot be read or written."""

    exit_code = 74


class ConfigError(UnrolledError):
    """A settings file that does not say what it should."""

    exit_code = 78


class DivergedError(UnrolledError):
    """A training whose numbers are no longer finite."""

    exit_code = 70


class StoppedError(UnrolledError):
    """A training that was asked to end, by SIGTERM, and has saved itself: 128 + 15, as every shell has it."""

    exit_code = 143
