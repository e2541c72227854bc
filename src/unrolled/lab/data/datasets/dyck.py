r"""Dyck-(k,m): well-nested brackets of k kinds, at most m deep, drawn from an automaton.

The state of the automaton is the stack of open brackets. If the stack is empty, the automaton ends or opens; if it has
m brackets, it closes the last; else it closes the last or opens. Each choice has probability 1/2, and the k kinds are
equally likely. There are :math:`(k^{m+1} - 1)/(k - 1)` stacks.

Lengths include the end, which is not written. An end before the minimal length is drawn again, and a string that
exceeds the maximal length is discarded. Strings are drawn until a split has its number of symbols. By default training
and dev strings have 1 to L symbols and test strings L + 1 to 2L, with L = 8m(m - 2) + 60 (60 for m = 1), and the splits
have 200,000, 20,000 and 300,000 symbols, as in the source. Test strings are thus longer than all training strings.

Source:
    Hewitt et al. (2020), RNNs can generate bounded hierarchical languages with optimal memory. arXiv:2010.07515
"""

from __future__ import annotations

import random
from pathlib import Path

from unrolled.errors import UsageError
from unrolled.lab.data.corpus import Brackets, Dataset

__all__ = ["DyckStrings"]

LengthRange = tuple[int, int]


class DyckStrings(Dataset):
    """Generated strings, the same at every reading for the same seed.

    Args:
        kinds: The number of kinds of brackets, k.
        depth: The maximal number of open brackets, m.
        short: The minimal and maximal length of training and dev strings.
        long: The minimal and maximal length of test strings.
        symbols: The minimal number of symbols of the three splits.
        seed: Which strings are drawn.

    Raises:
        UsageError: If a number is not positive, or no string has such a length.
    """

    name = "dyck"
    kind = Brackets
    description = (
        "well-nested brackets of two kinds, at most four deep: 200,000 / 20,000 / 300,000 symbols; of k kinds, m deep: "
        "dyck(k,m), dyck(2,8,seed=3,short=(1,60),long=(61,120))"
    )
    licence = "generated; MIT, as this package"
    citation = "Hewitt et al. (2020), arXiv:2010.07515"

    def __init__(
        self,
        kinds: int = 2,
        depth: int = 4,
        *,
        short: LengthRange | None = None,
        long: LengthRange | None = None,
        symbols: tuple[int, int, int] = (200_000, 20_000, 300_000),
        seed: int = 0,
    ) -> None:
        for what, number in (("kinds", kinds), ("depth", depth), ("symbols", min(symbols))):
            if number < 1:
                raise UsageError(f"{what} is {number}; expected 1 or more")
        longest = 8 * depth * max(depth - 2, 0) + 60
        self.kinds = kinds
        self.depth = depth
        self.short = short or (1, longest)
        self.long = long or (longest + 1, 2 * longest)
        self.symbols = symbols
        self.seed = seed
        for least, greatest in (self.short, self.long):
            # brackets are in pairs and the end counts, so the shortest string has 3 symbols
            shortest = max(2, least + least % 2) + 1
            if greatest < shortest:
                raise UsageError(
                    f"lengths from {least} to {greatest} contain no string; expected a maximum of {shortest} "
                    "or more, with the end"
                )

    def read(self, folder: Path | None = None) -> Brackets:
        """Generate the splits; no folder is needed."""
        train, dev, test = (
            self._draw(lengths, symbols, random.Random(f"{self.seed} {split}"))  # noqa: S311  # no secret
            for split, lengths, symbols in zip(
                ("train", "dev", "test"), (self.short, self.short, self.long), self.symbols, strict=True
            )
        )
        return Brackets(name=self.name, train=train, dev=dev, test=test, kinds=self.kinds, depth=self.depth)

    def _draw(self, lengths: LengthRange, symbols: int, generator: random.Random) -> tuple[tuple[int, ...], ...]:
        """Draw strings until they have ``symbols`` symbols."""
        strings = []
        while symbols > 0:
            string = self._string(*lengths, generator)
            if string is not None:
                strings.append(tuple(string))
                symbols -= len(string) + 1
        return tuple(strings)

    def _string(self, least: int, greatest: int, generator: random.Random) -> list[int] | None:
        """Draw one string; None if it exceeds the maximal length."""
        kinds, depth, draw = self.kinds, self.depth, generator.random
        string: list[int] = []
        opened: list[int] = []
        while len(string) < greatest:
            # one random number decides both: below 1/2 to close or end, above it which kind to open
            chance = draw()
            if len(opened) == depth or (opened and chance < 0.5):
                string.append(kinds + opened.pop())
            elif chance >= 0.5:
                opened.append(int((2 * chance - 1) * kinds))
                string.append(opened[-1])
            elif len(string) >= least:
                return string
        return None
