"""Strict IOBES: an entity is correct if its type and both ends are, and its tags are well-formed."""

from __future__ import annotations

import random
import re
import sys

import pytest

from unrolled.errors import UsageError
from unrolled.lab.metrics.entity_scores import entity_scores

TAGS = ("O", *(f"{letter}-{kind}" for kind in ("LOC", "PER") for letter in "BIES"))


def entities(sentences):
    """Find whole entities by a regular expression over the first letters of the tags."""
    found = set()
    for number, tags in enumerate(sentences):
        for kind in ("LOC", "PER"):
            letters = "".join(tag[0] if tag.endswith(kind) else "-" for tag in tags)
            found |= {(number, kind, match.span()) for match in re.finditer("S|BI*E", letters)}
    return found


def drawn(draw, legal):
    tags = []
    while len(tags) < 12:
        if not legal:
            tags.append(draw.choice(TAGS))
            continue
        kind, length = draw.choice(("LOC", "PER")), draw.randint(0, 3)
        tags += {0: ["O"], 1: [f"S-{kind}"]}.get(length, [f"B-{kind}", *[f"I-{kind}"] * (length - 2), f"E-{kind}"])
    return tags


@pytest.mark.parametrize("legal", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_it_counts_what_a_pattern_finds(seed, legal):
    draw = random.Random(seed)
    truths = [drawn(draw, legal=True) for _ in range(6)]
    answers = [
        [tag if draw.random() < 0.7 else draw.choice(TAGS) for tag in tags] if not legal else drawn(draw, legal=True)
        for tags in truths
    ]
    answers = [
        tags[: len(truth)] + ["O"] * (len(truth) - len(tags)) for tags, truth in zip(answers, truths, strict=True)
    ]
    true, found = entities(truths), entities(answers)
    right = len(true & found)
    precision, recall = (right / len(each) if each else 0.0 for each in (found, true))
    f1 = 2 * precision * recall / (precision + recall) if right else 0.0
    assert entity_scores(truths, answers) == pytest.approx((precision, recall, f1), abs=1e-12)


@pytest.mark.parametrize(
    "answer",
    [
        ["B-PER", "I-PER", "O"],  # no end
        ["I-PER", "E-PER", "O"],  # no beginning
        ["B-PER", "E-LOC", "O"],  # two types
        ["S-PER", "S-PER", "O"],  # two entities
        ["B-PER", "I-PER", "E-PER"],  # too long
    ],
)
def test_nearly_is_wrong(answer):
    truth = ["B-PER", "E-PER", "O"]
    assert entity_scores([truth], [answer]).f1 == 0.0
    assert entity_scores([truth], [truth]).f1 == 1.0


def test_where_there_is_nothing_there_is_no_warning():
    assert entity_scores([["O", "O"]], [["O", "O"]]) == (0.0, 0.0, 0.0)
    assert entity_scores([["S-PER"]], [["O"]]) == (0.0, 0.0, 0.0)


def test_without_seqeval_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "seqeval.metrics.v1", None)
    with pytest.raises(UsageError, match=r'pip install "unrolled\[tasks\]"'):
        entity_scores([["O"]], [["O"]])
