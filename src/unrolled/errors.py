"""The errors of the package, each with a one-line message: what is wrong, what was found, what to do.

Every error that a user can cause is an :class:`UnrolledError`, which is a ``ValueError``. The command line prints its
message on one line and exits with its ``exit_code``, after BSD's ``sysexits.h``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, ClassVar

__all__ = [
    "ChangedWeightsError",
    "ConfigError",
    "ConvergenceError",
    "DataError",
    "DivergedError",
    "FileError",
    "NonFiniteError",
    "ParityError",
    "RandomOperationError",
    "ShapeError",
    "StoppedError",
    "StrictError",
    "UnknownNameError",
    "UnrolledError",
    "UnsupportedOperationError",
    "UsageError",
    "first_line",
    "kind_of",
    "suggest",
]


_NAMED = 100  # names in one message


def kind_of(value: object) -> str:
    """Name the type of a value with its article: "a Tensor", "an OrderedDict", "an RNN"."""
    name = type(value).__name__
    spelled = len(name) == 1 or name[:2].isupper() or name.startswith("nd")  # an n-d array
    return f"an {name}" if name[0].upper() in ("AEFHILMNORSX" if spelled else "AEIO") else f"a {name}"


def first_line(error: BaseException) -> str:
    """Return the first line of another library's error, for an error of one line; its type where it says nothing."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _made_again(kind: type[UnrolledError], message: tuple[Any, ...], known: dict[str, Any]) -> UnrolledError:
    error = kind.__new__(kind, *message)
    error.__dict__.update(known)
    return error


class UnrolledError(ValueError):
    """Base class of all errors that a user can correct."""

    exit_code: ClassVar[int] = 2

    def __reduce__(self) -> tuple[Any, ...]:
        """Let an error pass from one process to another: by its message, since constructors take other arguments."""
        return _made_again, (type(self), self.args, self.__dict__)


class UsageError(UnrolledError):
    """An argument is out of range, contradictory or missing."""


class ConvergenceError(UnrolledError):
    """A quadrature that has not reached its tolerance.

    Args:
        error: The relative error of a step that is left.
        tolerance: The one that was asked for.
        expanded: What the expansion computed nevertheless.
        why: Why the quadrature stands in for the expansion secant; empty where path was asked for.
    """

    exit_code = 70

    def __init__(self, error: float, tolerance: float, expanded: object = None, why: str = "") -> None:
        name = "that stands in for the expansion secant" if why else "of the expansion path"
        way = (
            f"secant cannot follow the step, since {why}: use unrolled.account, the expansion operating, or another "
            "operation in the step"
            if why
            else "use the expansion secant, which needs no quadrature, or a larger tolerance in unrolled.decompose"
        )
        super().__init__(
            f"the quadrature {name} has not converged: a step is off by {error:.2g} of its state, more than the "
            f"tolerance {tolerance:.2g}; {way}"
        )
        self.error, self.tolerance, self.expanded, self.why = error, tolerance, expanded, why


class UnsupportedOperationError(UsageError):
    """An operation of which an account does not know what its operands contribute."""


class RandomOperationError(UnsupportedOperationError):
    """An operation draws random numbers, so that no two calls give the same output."""


class ShapeError(UsageError):
    """The shapes of tensors do not fit together."""


def _nearest(name: str, names: list[str]) -> list[str]:
    same = [each for each in names if each.lower() == name.lower()]
    return same or difflib.get_close_matches(name, names, n=1)


def _in_order(name: str) -> tuple[bool, int, str]:
    """Put numbers before words, by their size."""
    number = name.isdecimal()
    return not number, int(name) if number else 0, name


def suggest(name: object, known: Iterable[str]) -> str:
    """Offer the nearest known name, or list the known ones."""
    names = sorted(set(known), key=_in_order)
    near = _nearest(name, names) if isinstance(name, str) else []
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    listed = f"expected one of: {', '.join(names[:_NAMED])}{more}" if names else "there is none"
    return f"did you mean {near[0]!r}?" if near else listed


class UnknownNameError(UsageError):
    """A name is unknown; the message offers the nearest known one."""

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        first, *further = repr(name).splitlines()  # a module has several lines
        super().__init__(f"unknown {kind} {first}{'…' if further else ''}; {suggest(name, known)}")


class ParityError(UnrolledError):
    """The recomputed states differ from the network's own by more than rounding."""

    exit_code = 65


class ChangedWeightsError(UnrolledError):
    """The weights of a model changed while it was opened, or before a result that shares them was read."""

    exit_code = 70


class DataError(UnrolledError):
    """The content of a file or a tensor is not what was expected."""

    exit_code = 65


class NonFiniteError(DataError):
    """A number is NaN or infinite."""

    @classmethod
    def overflow(cls, what: str, in_double: bool, expansion: str | None) -> NonFiniteError:
        """Refuse terms that are too large for the model's type.

        Args:
            what: The terms.
            in_double: Whether the model computes in float64.
            expansion: Its name; None where nothing was expanded.
        """
        advice = [] if in_double else ["float64 (model.double())"]
        advice += ["the expansion operating"] if expansion not in (None, "operating") else []
        if advice:
            return cls(f"{what} overflow; use {' or '.join(advice)}")
        return cls(f"{what} overflow float64; give the model a shorter input or smaller numbers")


class StrictError(UnrolledError):
    """A result has notes, and ``strict=True`` was asked for."""

    exit_code = 65


class FileError(UnrolledError):
    """A file cannot be read or written."""

    exit_code = 74


class ConfigError(UnrolledError):
    """A settings file is invalid."""

    exit_code = 78


class DivergedError(UnrolledError):
    """The loss or a weight is no longer finite during training."""

    exit_code = 70


class StoppedError(UnrolledError):
    """A training was stopped by SIGTERM after it saved a checkpoint (exit code 128 + 15)."""

    exit_code = 143
