r"""Dyck-(k,m): well-nested brackets of k kinds, at most m deep, drawn from an automaton.

The automaton's state is the stack of open brackets. With nothing open it ends or opens, with m open it closes the last,
else it closes the last or opens, each with probability 1/2; the k kinds are equally likely. There are
:math:`(k^{m+1} - 1)/(k - 1)` stacks.

Lengths count the end, which is not written. An end drawn before the least number of brackets is drawn again; a
string longer than the greatest length is thrown away whole. Strings are drawn until a split has its number of symbols.
By default training and dev strings have 1 to L symbols and test strings L + 1 to 2L, with L = 8m(m - 2) + 60 (and 60
for m = 1), and 200,000 / 20,000 / 300,000 symbols in all, as one of the source's sets. Test strings are thus longer
than any that was trained on.

Source:
    Hewitt et al. (2020), RNNs can generate bounded hierarchical languages with optimal memory. arXiv:2010.07515
"""

from __future__ import annotations

import random
from pathlib import Path

from unrolled.errors import UsageError
from unrolled.lab.data.corpus import Brackets, Dataset

__all__ = ["DyckStrings"]

Lengths = tuple[int, int]


class DyckStrings(Dataset):
    """Strings of brackets, generated anew at every reading, and always the same for the same seed.

    Args:
        kinds: k.
        depth: m, the most that may be open.
        short: the least and the greatest length of training and dev strings.
        long: those of test strings.
        symbols: how many the three splits have at least, ends counted.
        seed: which strings are drawn.

    Raises:
        UsageError: when a number is not positive, or no string has such a length.
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
        short: Lengths | None = None,
        long: Lengths | None = None,
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
            # brackets come in pairs, and the end counts: the shortest string has 3 symbols
            if greatest < max(2, least + least % 2) + 1:
                raise UsageError(
                    f"lengths from {least} to {greatest} leave no string; expected to {max(2, least + least % 2) + 1} "
                    "or more, with the end"
                )

    def read(self, folder: Path | None = None) -> Brackets:  # generated: no folder is needed
        """Generate the three splits.

        Args:
            folder: not needed.

        Returns:
            The strings.
        """
        train, dev, test = (
            self._draw(lengths, symbols, random.Random(f"{self.seed} {split}"))  # noqa: S311  # no secret
            for split, lengths, symbols in zip(
                ("train", "dev", "test"), (self.short, self.short, self.long), self.symbols, strict=True
            )
        )
        return Brackets(name=self.name, train=train, dev=dev, test=test, kinds=self.kinds, depth=self.depth)

    def _draw(self, lengths: Lengths, symbols: int, generator: random.Random) -> tuple[tuple[int, ...], ...]:
        """Draw strings until there are so many symbols."""
        strings = []
        while symbols > 0:
            string = self._string(*lengths, generator)
            if string is not None:
                strings.append(tuple(string))
                symbols -= len(string) + 1
        return tuple(strings)

    def _string(self, least: int, greatest: int, generator: random.Random) -> list[int] | None:
        """Draw one string; nothing when it grows too long."""
        kinds, depth, draw = self.kinds, self.depth, generator.random
        string: list[int] = []
        opened: list[int] = []
        while len(string) < greatest:
            # one number says both: below 1/2 to close or to end, above it which kind to open
            chance = draw()
            if len(opened) == depth or (opened and chance < 0.5):
                string.append(kinds + opened.pop())
            elif chance >= 0.5:
                opened.append(int((2 * chance - 1) * kinds))
                string.append(opened[-1])
            elif len(string) >= least:
                return string
        return None
