"""The features of an explanation: the numbers that the model read, and what each contributes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import torch

from unrolled.decomposition.arguments import checked_names
from unrolled.decomposition.attribution.outputs import Features
from unrolled.errors import UsageError
from unrolled.explanation.explanation import Explanation
from unrolled.explanation.model_arguments import shown_argument
from unrolled.explanation.numbers.no_numbers import (
    NOT_BY_STEPS,
    HeldNumbersError,
    MixedNumbersError,
    NoNumbersError,
)
from unrolled.explanation.numbers.step_numbers import Numbers, joined_rest
from unrolled.explanation.request import Request

__all__ = ["FeaturesFound", "one_after_another"]


@dataclass(frozen=True)
class FeaturesFound:
    """What was found out about the numbers that a model reads."""

    numbers: Sequence[Sequence[Numbers | None]]
    """By readout and example, or by line and example; empty where there are none."""
    names: Sequence[str] | None
    """As the user gave them."""
    argument_names: Mapping[str, str]
    """What the model's forward calls its positional arguments."""
    why: str = ""
    """Why there are none."""
    noted: bool = False
    """Whether a note says so: the network reads numbers of arguments, mixed or held."""
    given_words: bool = False
    """Whether the user named the steps."""

    @classmethod
    def of(cls, find: Callable[[], Sequence[Sequence[Numbers | None]]], asked: Request) -> FeaturesFound:
        """Find the numbers, or why there are none.

        Raises:
            UsageError: If there are none, and the user named them.
        """
        try:
            return cls(find(), asked.features, asked.argument_names, given_words=asked.tokens is not None)
        except NoNumbersError as error:
            if asked.features is not None:
                raise UsageError(f"features= names numbers, but {error}; leave it out") from error
            return cls((), None, {}, str(error), isinstance(error, MixedNumbersError | HeldNumbersError))

    def put(self, found: Explanation, part: int, example: int) -> Explanation:
        """Return an explanation, of a readout or a line (``part``) and an example, with its features and notes on them.

        Raises:
            ShapeError: If the user gave more or fewer names than a step has numbers.
            UsageError: If the names may be those of numbers that are not shown.
        """
        numbers = self.numbers[part][example] if self.numbers else None
        if numbers is None:
            why = (f"no contributions of single numbers are shown: {self.why}",) if self.noted else ()
            return replace(found, no_features=self.why or NOT_BY_STEPS, notes=(*found.notes, *why))
        own = numbers.names(self.argument_names)
        if self.names is not None and numbers.unnamed:
            others = ", ".join(shown_argument(each, self.argument_names) for each in numbers.unnamed)
            raise UsageError(
                f"features= may name numbers of argument {others}, which enter several steps and "
                f"are not shown; those shown are {', '.join(map(repr, own))}. Leave features out, or use "
                "unrolled.account, which shows all"
            )
        names = own if self.names is None else self._named(self.names, numbers, example)
        rest = found.token_scores - numbers.scores.sum(dim=1)
        features = Features(names, numbers.values, numbers.scores, rest, numbers.rest_of)
        shown = replace(found, features=features, notes=(*found.notes, *numbers.notes))
        return shown if self.given_words else _at_steps_of_numbers(shown, numbers.steps)

    def _named(self, given: Sequence[str], numbers: Numbers, example: int) -> tuple[str, ...]:
        """Name the numbers of a sequence: all its own, else those of its arguments among all that an example reads."""
        counts, own, of = self._counts(example), numbers.values.shape[1], "number of a step"
        if len(counts) < 2 or (isinstance(given, Collection) and len(given) == own):
            return checked_names("features", given, own, of)
        each = ", then ".join(
            f"{count} of argument {shown_argument(name, self.argument_names)}" for name, count in counts.items()
        )
        left = iter(checked_names("features", given, sum(counts.values()), f"{of}: {each}"))
        names = {name: tuple(islice(left, count)) for name, count in counts.items()}
        return tuple(name for part in numbers.parts for name in names[part.name])

    def _counts(self, example: int) -> dict[str, int]:
        """How many numbers of each argument a step reads, by the order of the arguments; {} if sequences differ."""
        known = [part for each in self.numbers if (numbers := each[example]) is not None for part in numbers.parts]
        counts = {part.name: part.values.shape[1] for part in sorted(known, key=lambda part: part.first)}
        return counts if all(part.values.shape[1] == counts[part.name] for part in known) else {}


def _at_steps_of_numbers(found: Explanation, steps: Sequence[int] | None) -> Explanation:
    """Name positions that are only numbered by the steps at which the numbers that are shown there stand."""
    # held factors may be made of other steps, as in x[:, 1:] / x[:, :-1]: no position reads one step alone
    numbered = found.tokens == tuple(f"x{t}" for t in range(len(found)))
    return replace(found, tokens=tuple(f"x{step}" for step in steps)) if steps is not None and numbered else found


def one_after_another(members: Sequence[Features | None]) -> Features | None:
    """Join the features of several sequences; None unless all have the same."""
    found = [each for each in members if each is not None]
    if len(found) < len(members) or len({each.names for each in found}) > 1:
        return None
    values, scores, rest = (
        torch.cat(parts) for parts in zip(*((f.values, f.scores, f.rest) for f in found), strict=True)
    )
    return Features(found[0].names, values, scores, rest, joined_rest([each.rest_of for each in found]))
