"""The example of brackets: its strings are of the language, and what it asks and how it judges is right.

Training itself takes minutes and is not repeated here.
"""

from __future__ import annotations

import importlib.util
import random
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch

from unrolled.models.brackets import ClosingBracket, fixed_brackets


@pytest.fixture(scope="module")
def dyck():
    path = Path(__file__).parent.parent / "examples" / "dyck.py"
    spec = importlib.util.spec_from_file_location("dyck_example", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def depths(brackets, kinds):
    """How deep it is after each bracket; fails where one is closed that was not opened last."""
    opened, found = [], []
    for bracket in brackets:
        if bracket < kinds:
            opened.append(bracket)
        else:
            assert opened.pop() == bracket - kinds
        found.append(len(opened))
    return found


@pytest.mark.parametrize(("kinds", "depth"), [(1, 1), (2, 4), (3, 2)])
def test_strings_are_balanced_bounded_and_as_long_as_asked(dyck, kinds, depth):
    draw = random.Random(0)
    strings = [dyck.string(kinds, depth, 20, 40, draw) for _ in range(200)]
    for brackets in strings:
        assert 20 <= len(brackets) + 1 <= 40  # END counts
        assert depths(brackets, kinds)[-1] == 0
    assert max(max(depths(brackets, kinds)) for brackets in strings) == depth
    assert {b for brackets in strings for b in brackets} == set(range(2 * kinds))


def test_the_same_seed_draws_the_same_strings(dyck):
    one, same, other = ([dyck.string(2, 4, 1, 99, random.Random(seed))] for seed in (5, 5, 6))
    assert one == same != other


def test_the_automaton_tosses_fair_coins(dyck):
    draw = random.Random(0)
    after = Counter()
    for _ in range(2000):
        brackets = dyck.string(2, 3, 1, 400, draw)
        depth = [0, *depths(brackets, 2)]
        for t, bracket in enumerate(brackets):
            after[depth[t], "open" if bracket < 2 else "close"] += 1
        after[0, "end"] += 1
        after[0, "open"] -= 1  # the first opens: an end before anything is drawn again
    assert after[3, "open"] == after[0, "close"] == 0
    for level, this in ((0, "end"), (1, "close"), (2, "close")):
        assert after[level, this] / (after[level, this] + after[level, "open"]) == pytest.approx(0.5, abs=0.03)


def test_every_closing_bracket_is_asked_for_with_its_distance(dyck):
    assert dyck.closings([1, 0, 2, 3, 0, 2], 2) == [(2, 0, 1), (3, 1, 3), (5, 0, 1)]
    asked = dyck.questions([[1, 0, 2, 3], [0, 2]], 2)
    assert asked.row.tolist() == [0, 0, 1]
    assert asked.after.tolist() == [1, 2, 0]
    assert asked.closing.tolist() == [0, 1, 0]
    assert asked.distance.tolist() == [1, 3, 1]
    assert asked.targets().tolist() == [[-100, 0, 1, -100], [0, -100, -100, -100]]


@pytest.mark.parametrize(("gate", "right"), [(40.0, True), (2.0, False)])
def test_its_judge_tells_a_stack_from_a_leak(dyck, gate, right):
    model = ClosingBracket(fixed_brackets(2), 4)
    with torch.no_grad():
        model.stack.cell(0, 0).weight.fill_(gate)
        model.head.weight.copy_(torch.tensor([[0.0], [20.0]]))
        model.head.bias.copy_(torch.tensor([30.0, 0.0]))
    draw = random.Random(0)
    asked = dyck.questions([dyck.string(2, 4, 50, 100, draw) for _ in range(50)], 2)
    assert (dyck.wcpa(model, asked) == 1.0) is right


@pytest.mark.parametrize(("test", "status"), [(1.0, 0), (0.999, 1)])
def test_it_fails_when_one_distance_is_not_always_right(dyck, monkeypatch, capsys, test, status):
    monkeypatch.setattr(dyck, "row", lambda depth: dyck.Row(depth, 5, 1.0, test, 80, 8.0, 60.0))
    assert dyck.main() == status
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert {len(line) for line in lines} == {len(dyck.HEADING)}
