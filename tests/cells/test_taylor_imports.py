"""The Taylor expansion of torch's own cells does not make torch import its compiler, which takes seconds."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys, torch, unrolled
torch.manual_seed(0)
for kind in (torch.nn.RNN, torch.nn.GRU, torch.nn.LSTM):
    for bias in (True, False):
        network = kind(3, 4, bias=bias, num_layers=2, batch_first=True)
        unrolled.decompose(network, torch.randn(1, 5, 3), expansion="taylor(2)")
{control}
print("torch._dynamo" in sys.modules)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("control", "imported"), [("", "False"), ("import torch._dynamo", "True")])
def test_a_taylor_expansion_does_not_import_the_compiler(control, imported):
    words = [sys.executable, "-c", PROGRAM.format(control=control)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [imported]
