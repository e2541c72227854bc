"""Memory is bounded by what was asked for: a process of its own explains a long text and says how much it took."""

from __future__ import annotations

import subprocess
import sys

import pytest

from peak_memory import MEGABYTES

MEASURED = (
    MEGABYTES
    + """
import sys, torch, unrolled
from torch import nn

class Reader(nn.Module):
    def __init__(self, kind, layers):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(100, 64), getattr(nn, kind)(64, 64, layers, batch_first=True)
        self.head = nn.Linear(64, 2)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0].mean(dim=1))

kind, layers, time, place = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
torch.manual_seed(0)
torch.set_num_threads(1)
model, tokens = Reader(kind, layers).eval(), torch.randint(0, 100, (1, time))
with torch.no_grad():
    model(tokens)
unrolled.explain(model, tokens[:, :9], max_order=4)  # what is imported late, and what torch allocates once
unrolled.account(model, tokens[:, :9])
before = megabytes()
found = unrolled.explain(model, tokens, max_order=8)
assert abs(found.ledger.remainder) < 1e-4 and found.max_order == 8
found.save_html(f"{place}/explanation.html")
str(found)
found.figure().savefig(f"{place}/explanation.png")
found = unrolled.account(model, tokens)
assert abs(float(found.remainder)) < 1e-4
found.save_html(f"{place}/account.html")
found.figure().savefig(f"{place}/account.png")
str(found)
print(megabytes() - before, megabytes())
"""
)


def measured(place, *given):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", MEASURED, *map(str, given), str(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    assert (place / "explanation.html").stat().st_size < 40e6
    return [float(each) for each in done.stdout.split()]


@pytest.mark.slow
def test_a_text_of_3_000_tokens_takes_no_square_of_numbers(tmp_path):
    pytest.importorskip("matplotlib", reason="figures need the extra [figures]")
    added, _ = measured(tmp_path, "GRU", 1, 3000)
    assert added < 200  # one square of 3,000 tokens: 72 MB; scores and contributions of two classes: 288 MB


@pytest.mark.slow
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
def test_a_text_of_20_000_tokens_takes_less_than_a_gigabyte_with_torch(tmp_path, kind, layers):
    pytest.importorskip("matplotlib", reason="figures need the extra [figures]")
    _, whole = measured(tmp_path, kind, layers, 20_000)
    assert whole < 1024
