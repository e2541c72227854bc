"""Every kind of corpus is counted, shown, compared and cut: what the commands do with any corpus of a task."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from unrolled.lab.data.corpus import Brackets, Examples
from unrolled.lab.data.max_length import limit_length, longest_text
from unrolled.lab.data.summary import show_example, split_size, split_sizes
from unrolled.lab.data.unicode_forms import note_of_forms
from unrolled.lab.papers.framework.synthetic_corpora import SYNTHETIC

SIZES = (12, 5, 5)


@dataclass(frozen=True)
class Duel:
    """An example of a kind that nothing knows: it has no tokens of its own."""

    first: tuple[str, ...]
    second: tuple[str, ...]


def duels():
    splits = {name: (Duel(("a", "film"), ("a", "plot")),) for name in ("train", "dev", "test")}
    return Examples(name="duels", **splits)


def uses(corpus):
    """What the commands do with a corpus, by the module that does it."""
    found = {
        "summary.split_sizes": lambda: split_sizes(corpus),
        "summary.show_example": lambda: show_example(corpus),
        "unicode_forms": lambda: list(note_of_forms(corpus)),
    }
    if isinstance(corpus, Examples):
        longer = "skip" if isinstance(corpus, Brackets) else "cut"
        found["max_length"] = lambda: limit_length(corpus, max(map(longest_text, corpus.train)) - 1, longer)
    return found


def lacking(corpus):
    """The modules that do not know the kind of a corpus."""
    found = set()
    for name, use in uses(corpus).items():
        try:
            use()
        except AttributeError:
            found.add(name)
    return found


@pytest.mark.parametrize("kind", SYNTHETIC, ids=lambda kind: kind.__name__)
def test_a_kind_is_known_wherever_a_corpus_is_read(kind):
    corpus = SYNTHETIC[kind](SIZES, 0)
    missing = lacking(corpus)
    assert not missing, f"say in lab/data what these do with {kind.__name__}: {', '.join(sorted(missing))}"
    assert show_example(corpus).strip()
    assert [size.count for size in split_sizes(corpus)] == [split_size(split) for split in corpus.splits.values()]


def test_a_kind_that_nothing_knows_is_named_by_each_module():
    assert lacking(duels()) == set(uses(duels()))
