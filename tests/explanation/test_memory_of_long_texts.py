"""Memory is bounded by what was asked for: a process of its own explains a long text and says how much it took."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from peak_memory import MEGABYTES

# Modules are loaded once; what is measured runs in children, whose peaks begin with what is loaded.
MEASURED = (
    MEGABYTES
    + """
import json, os, sys, torch, unrolled
from torch import nn

class Reader(nn.Module):
    def __init__(self, kind, layers):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(100, 64), getattr(nn, kind)(64, 64, layers, batch_first=True)
        self.head = nn.Linear(64, 2)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0].mean(dim=1))

def shown(model, tokens, order, place):
    found = unrolled.explain(model, tokens, max_order=order)
    assert abs(found.ledger.remainder) < 1e-4 and found.max_order == order
    found.save_html(f"{place}/explanation.html")
    str(found)
    found.figure().savefig(f"{place}/explanation.png")
    found = unrolled.account(model, tokens)
    assert abs(float(found.remainder)) < 1e-4
    found.save_html(f"{place}/account.html")
    found.figure().savefig(f"{place}/account.png")
    str(found)

def measured(kind, layers, time, place):
    torch.manual_seed(0)
    model, tokens = Reader(kind, layers).eval(), torch.randint(0, 100, (1, time))
    with torch.no_grad():
        model(tokens)
    unrolled.explain(model, tokens[:, :9], max_order=4)  # what torch allocates once
    unrolled.account(model, tokens[:, :9])
    before = megabytes()
    shown(model, tokens, 8, place)
    print(json.dumps([megabytes() - before, megabytes()]), flush=True)

torch.set_num_threads(1)
shown(Reader("GRU", 1).eval(), torch.randint(0, 100, (1, 9)), 4, sys.argv[1])  # what is imported late
for line in sys.stdin:
    child = os.fork()
    if not child:
        measured(*json.loads(line))
        os._exit(0)
    assert not os.waitpid(child, 0)[1]
"""
)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Measure what the explanation and the account of a text of so many tokens take, in megabytes."""
    pytest.importorskip("matplotlib", reason="figures need the extra [figures]")
    if not hasattr(os, "fork"):
        pytest.skip("the measured processes are forked, and this system has no fork")
    place = tmp_path_factory.mktemp("warm")
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", MEASURED, str(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:

        def measure(place, *given):
            server.stdin.write(json.dumps([*given, str(place)]) + "\n")
            server.stdin.flush()
            line = server.stdout.readline()
            assert line, "see the error of the process above"
            assert (place / "explanation.html").stat().st_size < 40e6
            return json.loads(line)

        yield measure
        server.stdin.close()


@pytest.mark.slow
def test_a_text_of_3_000_tokens_takes_no_square_of_numbers(tmp_path, measured):
    added, _ = measured(tmp_path, "GRU", 1, 3000)
    assert added < 200  # one square of 3,000 tokens: 72 MB; scores and contributions of two classes: 288 MB


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "layers"),
    [("GRU", 1), *(pytest.param(*each, marks=pytest.mark.fuzz) for each in (("GRU", 2), ("LSTM", 1), ("LSTM", 2)))],
)
def test_a_text_of_20_000_tokens_takes_less_than_a_gigabyte_with_torch(tmp_path, measured, kind, layers):
    _, whole = measured(tmp_path, kind, layers, 20_000)
    assert whole < 1024
