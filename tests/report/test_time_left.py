"""Long work says how far it has come where it is asked to; short work says nothing."""

from __future__ import annotations

import io
import re
import sys
import time
from threading import Thread

import pytest
import torch
from torch import nn

import unrolled
from unrolled.decomposition.recurrences.sweep_progress import told_of_sweeps
from unrolled.report import time_left

WORK = {
    "explain": lambda ids: unrolled.explain(Loop(), ids, target=1),
    "explain_batch": lambda ids: unrolled.explain_batch(Loop(), ids.expand(3, -1), target=1),
}


@pytest.mark.parametrize("name", WORK)
def test_lines_tell_how_much_is_done_and_left(name, monkeypatch):
    said, ids = [], torch.tensor([[1, 2, 3, 4]], device="cpu")
    with unrolled.progress("a line", said.append):
        WORK[name](ids)
    assert said == []  # it took no ten seconds
    monkeypatch.setattr(time_left, "_FIRST", 0.0)
    monkeypatch.setattr(time_left, "_EVERY", 0.0)
    with unrolled.progress("a novel", said.append):
        WORK[name](ids)
    shares = [int(re.fullmatch(r"a novel: (\d+)% done, about \d+ s left", line)[1]) for line in said]
    assert len(shares) >= 2
    assert shares == sorted(shares)
    WORK[name](ids)
    assert len(said) == len(shares)  # nobody asks any more


def test_the_time_left_of_a_second_text_is_told_by_its_own_steps(monkeypatch):
    said, clock = [], [0.0]
    monkeypatch.setattr(time_left.time, "monotonic", lambda: clock[0])
    lines = time_left._Lines("texts", said.append)
    for steps in (1000, 100):  # of a second each; the second text's first share is larger than the first one's
        for step in range(steps):
            clock[0] += 1.0
            lines.tell((step + 1) / steps)
    assert said[0] == "texts: 1% done, about 16 min left"
    assert said[-2:] == ["texts: 11% done, about 89 s left", "texts: 71% done, about 29 s left"]


@pytest.mark.parametrize("gate", [0.0, -9.0])
@pytest.mark.parametrize("expansion", ["operating", "mean(operating,gates)"])
def test_n_grams_that_die_away_before_the_longest_are_done_as_well(gate, expansion):
    torch.manual_seed(0)
    rnn, inputs = nn.GRU(3, 4, batch_first=True, bidirectional=True), torch.randn(1, 160, 3)
    for bias in (rnn.bias_ih_l0, rnn.bias_ih_l0_reverse):
        bias.data[4:8] += gate  # of what is kept
    shares = []
    with told_of_sweeps(shares.append):
        unrolled.explain(rnn, inputs, target=lambda out: out[0].sum((1, 2)), expansion=expansion, max_order=60)
    steps = 60 * (2 if expansion == "operating" else 4)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(shares) == steps if gate == 0.0 else len(shares) < steps  # the control: what is forgotten ends sooner


def test_where_no_sweep_runs_a_line_says_that_the_work_does(capsys, monkeypatch):
    monkeypatch.setattr(time_left, "_SILENT", 0.05)
    with unrolled.progress("a novel"):
        time.sleep(0.3)
    said = capsys.readouterr().err.splitlines()
    assert 2 <= len(said) <= 6
    assert set(said) == {"a novel: running for 0 s"}
    with unrolled.progress("a line"):
        pass
    time.sleep(0.1)
    assert capsys.readouterr().err == ""  # it has ended


class Closed(io.StringIO):
    """A standard error whose reader has left."""

    def write(self, _):
        raise BrokenPipeError


@pytest.mark.parametrize("stream", [None, Closed()])
def test_work_that_nobody_hears_of_is_done(stream, monkeypatch):
    monkeypatch.setattr(time_left, "_FIRST", 0.0)
    monkeypatch.setattr(sys, "stderr", stream)
    with unrolled.progress():
        found = unrolled.explain(Loop(), torch.tensor([[1, 2, 3, 4]], device="cpu"), target=1)
    assert abs(found.ledger.remainder) < 1e-5


def refused(line: str) -> None:
    raise ValueError(f"no terminal for {line}")


def test_a_say_that_raises_ends_neither_the_work_nor_the_thread_that_waits(monkeypatch):
    monkeypatch.setattr(time_left, "_FIRST", 0.0)
    monkeypatch.setattr(time_left, "_EVERY", 0.0)
    with (
        pytest.warns(UserWarning, match="since say raised ValueError: no terminal for a line") as warned,
        unrolled.progress("a line", refused),
    ):
        found = unrolled.explain(Loop(), torch.tensor([[1, 2, 3, 4]]), target=1)
    assert abs(found.ledger.remainder) < 1e-5
    assert [each.filename for each in warned] == [__file__]

    def stops(line: str) -> None:
        raise KeyboardInterrupt(line)

    with pytest.raises(KeyboardInterrupt), unrolled.progress("a line", stops):  # the control: a stop is obeyed
        unrolled.explain(Loop(), torch.tensor([[1, 2, 3, 4]]), target=1)
    monkeypatch.setattr(time_left, "_SILENT", 0.05)
    with pytest.warns(UserWarning, match="no terminal for a silence: running"), unrolled.progress("a silence", refused):
        time.sleep(0.2)


def test_of_blocks_in_each_other_the_innermost_tells_of_the_sweeps(monkeypatch):
    monkeypatch.setattr(time_left, "_FIRST", 0.0)
    monkeypatch.setattr(time_left, "_EVERY", 0.0)
    ids, outer, inner = torch.tensor([[1, 2, 3, 4]]), [], []
    with unrolled.progress("outer", outer.append):
        with unrolled.progress("inner", inner.append):
            unrolled.explain(Loop(), ids, target=1)
        assert (len(outer), len(inner) > 1) == (0, True)
        unrolled.explain(Loop(), ids, target=1)
    assert len(outer) == len(inner)


def test_blocks_of_several_threads_tell_of_their_own_work(monkeypatch):
    monkeypatch.setattr(time_left, "_FIRST", 0.0)
    monkeypatch.setattr(time_left, "_EVERY", 0.0)
    said: dict[int, list[str]] = {2: [], 3: [], 5: []}

    def work(length: int) -> None:
        with unrolled.progress(str(length), said[length].append):
            unrolled.explain(Loop(), torch.ones(1, length, dtype=torch.int64), target=1)

    with unrolled.progress("all", (others := []).append):
        threads = [Thread(target=work, args=(length,)) for length in said]
        [each.start() for each in threads]
        [each.join() for each in threads]
    assert others == []  # no work of this thread
    for length, lines in said.items():
        assert [line.split(": ")[0] for line in lines] == [str(length)] * (3 * length - 2)


class Loop(nn.Module):
    """A cell in a loop beside a network that is called once: two lines."""

    def __init__(self):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(9, 4), nn.GRU(4, 5, batch_first=True, bidirectional=True)
        self.cell, self.head = nn.GRUCell(4, 5), nn.Linear(15, 2)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        vectors, h = self.embed(ids), torch.zeros(len(ids), 5)
        for x in vectors.unbind(1):
            h = self.cell(x, h)
        logits: torch.Tensor = self.head(torch.cat((self.rnn(vectors)[0].mean(1), h), dim=-1))
        return logits


def test_all_calls_are_one_plan_and_what_is_asked_for_alone_is_counted():
    shares: list[float] = []
    ids = torch.tensor([[1, 2, 3, 4]])
    with told_of_sweeps(shares.append):
        unrolled.explain(Loop(), ids, target=1)
    assert shares == [(step + 1) / 12 for step in range(12)]  # a cell's four steps, and four in each direction
    counted = len(shares)
    unrolled.explain(Loop(), ids, target=1)  # nobody asks any more
    assert len(shares) == counted
