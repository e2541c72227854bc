"""The example of brackets: what it asks and how it judges is right; its strings have tests of their own.

Training itself takes minutes and is not repeated here.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
import torch

from unrolled.lab.data.datasets.dyck import DyckStrings
from unrolled.lab.models.brackets import dyck_rnn, fixed_brackets


@pytest.fixture(scope="module")
def dyck():
    path = Path(__file__).parent.parent / "examples" / "dyck.py"
    spec = importlib.util.spec_from_file_location("dyck_example", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


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
    model = dyck_rnn(fixed_brackets(2), 4)
    with torch.no_grad():
        model.encoder.cell(0, 0).weight.fill_(gate)
        model.head.weight.copy_(torch.tensor([[0.0], [20.0]]))
        model.head.bias.copy_(torch.tensor([30.0, 0.0]))
    asked = dyck.questions(DyckStrings(2, 4, short=(50, 100), symbols=(4000, 1, 1)).read().train, 2)
    assert (dyck.wcpa(model, asked) == 1.0) is right


@pytest.mark.parametrize(("test", "status"), [(1.0, 0), (0.999, 1)])
def test_it_fails_when_one_distance_is_not_always_right(dyck, monkeypatch, capsys, test, status):
    monkeypatch.setattr(dyck, "row", lambda depth: dyck.Row(depth, 5, 1.0, test, 80, 8.0, 60.0))
    assert dyck.main() == status
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert {len(line) for line in lines} == {len(dyck.HEADING)}
