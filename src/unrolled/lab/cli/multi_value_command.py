"""A command whose repeatable options take several values at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise, takewhile
from typing import Any

import typer.core

from unrolled.errors import UsageError

__all__ = ["MultiValueCommand"]


class MultiValueCommand(typer.core.TyperCommand):
    """A command whose repeatable options take several values at once: ``--data a.de a.en``.

    A command with an argument does so behind that argument: ``RUN --data a.de a.en``, but ``--data a.csv RUN``.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the option before each of its values, as the parser expects it."""
        arguments = sum(each.param_type_name == "argument" for each in self.params)
        leading = list(takewhile(lambda word: not word.startswith("-"), args))
        if len(leading) < arguments:
            return super().parse_args(ctx, args)
        repeated = {name for option in self.params if getattr(option, "multiple", False) for name in option.opts}
        ctx.allow_extra_args = any("--data" in option.opts for option in self.params)
        if too_many := super().parse_args(ctx, list(_spread(args, repeated))):
            word = too_many[0]
            flags = {name for each in self.params if getattr(each, "is_flag", False) for name in each.opts}
            flag = next((each for each, behind in pairwise(args) if behind == word and each in flags), None)
            said = f"{word!r} follows no option" if flag is None else f"{flag} takes no value, found {word!r}"
            raise UsageError(f"{said}; a dataset or a file is named by --data: --data {word}")
        return too_many


def _spread(words: Iterable[str], repeated: set[str]) -> Iterator[str]:
    option, given = "", 0  # the repeatable option whose values these are, if any
    for word in words:
        if word.startswith("-") and word != "-":
            name, equals, _ = word.partition("=")
            option, given = (name, len(equals)) if name in repeated else ("", 0)
        elif option:
            given += 1
            if given > 1:
                yield option
        yield word
