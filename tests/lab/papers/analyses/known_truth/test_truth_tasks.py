"""Tasks of known truth: each reason is the only smallest set that fixes the answer, and compiled networks are right."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
import torch

from unrolled.lab.papers.analyses.known_truth.compiled_networks import COMPILED
from unrolled.lab.papers.analyses.known_truth.truth_agreement import (
    accuracy,
    explained_cases,
    learn_task,
    reason_shares,
)
from unrolled.lab.papers.analyses.known_truth.truth_tasks import BLANK, TASKS, Case, TruthTask


def smallest_reasons(task, words, largest):
    """Try all sets of places: the smallest that fix the answer, whichever of the other words are blank."""
    everywhere, answer = frozenset(range(len(words))), task.answer(words)

    def stays(blanked):
        return task.answer([BLANK if place in blanked else word for place, word in enumerate(words)]) == answer

    blanked = [frozenset(some) for size in range(len(words) + 1) for some in combinations(everywhere, size)]
    changing = [some for some in blanked if not stays(some)]
    for size in range(largest + 1):
        found = [set(some) for some in combinations(everywhere, size) if all(each & set(some) for each in changing)]
        if found:
            return found
    return []


@pytest.mark.parametrize("name", [name for name in TASKS if name not in ("open bracket", "first word of 40")])
def test_the_reason_is_the_only_smallest_set_that_fixes_the_answer(name):
    task, rng = TASKS[name], random.Random(1)
    cases = [case for case in (task.draw(rng) for _ in range(20)) if case.reason is not None][:2]
    assert cases
    for case in cases:
        assert smallest_reasons(task, case.words, len(case.reason)) == [case.reason]


def test_the_search_finds_several_reasons_where_there_are_several():
    either = TruthTask("either", 2, lambda words: int(7 in words), lambda _: Case((7, 7, 3), None))
    assert smallest_reasons(either, (7, 7, 3), 2) == [{0}, {1}]


def test_the_open_bracket_is_the_last_that_nothing_closes():
    rng = random.Random(2)
    for _ in range(50):
        case, depth = TASKS["open bracket"].draw(rng), 0
        for place in reversed(range(len(case.words))):
            depth += 1 if case.words[place] == 8 else -1
            if depth < 0:
                assert case.reason == {place}
                assert TASKS["open bracket"].answer(case.words) == case.words[place] - 6
                break


@pytest.mark.parametrize("name", COMPILED)
def test_a_network_written_by_hand_answers_every_text_right(name):
    task, make = COMPILED[name]
    model = make()
    assert accuracy(model, TASKS[task], 0, reasons_only=True) == 1
    with torch.no_grad():
        for weight in model.encoder.parameters():
            weight.zero_()
    assert accuracy(model, TASKS[task], 0, reasons_only=True) < 1


def test_the_shares_count_the_highest_and_the_whole_set():
    reasons = torch.tensor([[True, True, False, False], [False, False, True, False]])
    values = torch.tensor([[3.0, 2.0, 1.0, 0.0], [1.0, 0.0, 0.5, -2.0]])
    assert reason_shares(values, reasons) == {"first": 0.5, "set": 0.5, "first by size": 0.5, "set by size": 0.5}
    values[0, 3] = -2.5
    assert reason_shares(values, reasons)["set by size"] == 0


def test_equal_attributions_find_a_reason_by_chance_only():
    reasons = torch.zeros(2000, 10, dtype=torch.bool)
    reasons[:, 0] = True
    assert reason_shares(torch.zeros(2000, 10), reasons)["first"] == pytest.approx(0.1, abs=0.03)


def test_a_small_network_learns_a_keyword_and_its_cases_are_answered_right():
    task = TASKS["keyword"]
    model = learn_task(task, "gru", 6, 200, 0)
    assert accuracy(model, task, 0) > 0.99
    explained, reasons = explained_cases(model, task, 20, 0)
    assert explained.tokens.shape == reasons.shape == (20, 12)
    assert torch.equal(explained.model(explained.tokens).argmax(dim=1), explained.classes)
    assert (explained.tokens[reasons] == 6).all()
