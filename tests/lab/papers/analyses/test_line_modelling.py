"""Lines that do not know each other: what they cost, one after the other and side by side."""

from __future__ import annotations

import math

import pytest
import torch

from unrolled.errors import DataError
from unrolled.lab.data.corpus import Stream
from unrolled.lab.data.stream_encoding import build_vocabulary
from unrolled.lab.papers.framework.synthetic_corpora import characters
from unrolled.lab.papers.second_order_rnns.partial import EncodedLines, LineModelling
from unrolled.lab.tasks.chars import CharacterModelling, CharacterModelSettings

CORPUS = characters((12, 6, 6))


def made(kind=LineModelling):
    task = kind(CharacterModelSettings(hidden=5, embedding=4, dropout=0.0, bptt=1000), build_vocabulary(CORPUS.train))
    torch.manual_seed(0)
    return task, task.build().double().eval()


def judged(task, model, lines, size=3):
    split = task.encode(Stream(lambda: iter(lines)))
    with torch.no_grad():
        return task.compute_metrics(model, (split.select(which) for which in split.plan(size)))["bpc"]


def by_hand(task, model, lines):
    """Bits a character, line by line and character by character."""
    bits, count = 0.0, 0
    for line in lines:
        read = [task.line_end, *task.vocabulary.encode(line)]
        for place in range(1, len(read)):
            with torch.no_grad():
                scores = model(torch.tensor([read[:place]]))[0, -1]
            bits -= scores.log_softmax(-1)[read[place]].item() / math.log(2)
            count += 1
    return bits / count


def test_every_character_is_predicted_from_those_of_its_own_line():
    task, model = made()
    lines = [*CORPUS.dev]
    assert judged(task, model, lines) == pytest.approx(by_hand(task, model, lines), abs=1e-12)


def test_neither_order_nor_company_changes_what_a_line_costs_but_in_running_text_it_does():
    lines = [*CORPUS.dev]
    task, model = made()
    assert judged(task, model, lines) == pytest.approx(judged(task, model, lines[::-1], 1), abs=1e-12)
    running, model = made(CharacterModelling)
    assert judged(running, model, lines, 1) != pytest.approx(judged(running, model, lines[::-1], 1), abs=1e-6)


def test_a_line_without_an_end_says_nothing_of_where_lines_end():
    task, _ = made()
    window = task.encode(Stream(lambda: iter([tuple("the cat")]))).select(torch.tensor([0]))
    assert task.line_end not in window.targets
    assert window.tokens[0, 0] == task.line_end


def test_no_lines_and_an_empty_one_are_refused():
    with pytest.raises(DataError, match="no examples"):
        EncodedLines.encode([], 2)
    with pytest.raises(DataError, match="example 2 of 2 is empty"):
        EncodedLines.encode([(3,), ()], 2)
