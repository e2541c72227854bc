"""A model that is a class of TorchScript is refused as that, and a scripted network of torch.nn is opened by itself."""

import os
import subprocess
import sys

import pytest
import torch
from torch import Tensor, nn

import unrolled
from unrolled.errors import UnsupportedOperationError, UsageError

X = torch.randn(4, 1, 3, generator=torch.Generator().manual_seed(0))
STATE = torch.zeros(1, 5)


def layer(base, method):
    """Make a network that computes its steps in one method."""

    class Layer(base):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.cell = nn.Linear(8, 5)

        @method
        def forward(self, x: Tensor, state: Tensor) -> Tensor:
            for step in x.unbind(0):
                state = torch.tanh(self.cell(torch.cat([step, state], dim=1)))
            return state

    return Layer()


def scripted_layer():
    return layer(torch.jit.ScriptModule, torch.jit.script_method)


@pytest.mark.parametrize("opens", [unrolled.explain, unrolled.explain_batch, unrolled.account])
def test_a_model_whose_forward_is_a_script_method_is_refused_with_advice_that_helps(opens):
    with pytest.raises(UnsupportedOperationError, match=r"the model is a scripted module.*derive Layer from torch\.nn"):
        opens(scripted_layer(), X, STATE, target=1)
    plain = layer(nn.Module, lambda method: method)
    assert unrolled.account(plain, X, STATE, target=1).closes
    with pytest.raises(UsageError, match="does not take these arguments: missing a required argument: 'state'"):
        opens(plain, X, target=1)  # the control: arguments of a model of Python are checked


WITHOUT_TORCHSCRIPT = """
import torch, unrolled

class Layer(torch.jit.ScriptModule):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.rnn, self.head = torch.nn.GRU(3, 5), torch.nn.Linear(5, 2)

    @torch.jit.script_method
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(x)[0][-1])

x = torch.linspace(-1, 1, 12).view(4, 1, 3)
print(unrolled.check(Layer(), x))
print(unrolled.account(Layer(), x, target=1).closes, unrolled.explain(Layer(), x, target=1).ledger.remainder)
"""


@pytest.mark.slow
@pytest.mark.parametrize("jit", ["0", "1"])
def test_python_that_was_started_without_torchscript_runs_such_a_model_as_a_plain_one(tmp_path, jit):
    (tmp_path / "model.py").write_text(WITHOUT_TORCHSCRIPT)  # TorchScript reads the source
    command = [sys.executable, tmp_path / "model.py"]
    done = subprocess.run(command, env=os.environ | {"PYTORCH_JIT": jit}, capture_output=True, text=True, check=False)
    if jit == "1":  # the control
        assert "start Python with the environment variable PYTORCH_JIT=0" in done.stderr
    else:
        assert done.returncode == 0, done.stderr
        closes, remainder = done.stdout.splitlines()[-1].split()
        assert closes == "True"
        assert abs(float(remainder)) < 1e-5


def test_check_says_why_a_model_whose_forward_is_a_script_method_does_not_open():
    assert "derive Layer from torch.nn.Module" in unrolled.check(scripted_layer(), X, STATE).render(400)


def last(output):
    return output[0][-1, :, 2]


def test_a_scripted_network_is_a_model_by_itself():
    rnn = nn.GRU(3, 5).eval()
    made = torch.jit.script(rnn)
    ours, plain = (unrolled.explain(each, X, target=last) for each in (made, rnn))
    torch.testing.assert_close(ours.token_scores, plain.token_scores)
    torch.testing.assert_close(*(unrolled.account(each, X, target=last).features["0"] for each in (made, rnn)))
