"""torch's default device is the user's: nothing of ours is made there, and a CPU model is opened whatever it is."""

from __future__ import annotations

import ast
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch import nn

import unrolled

SOURCE = Path(unrolled.__file__).parent
PARTS = "decomposition explanation whole_model held_forward forward_mode linalg expansions report".split()
"""What runs in the four calls. Cells and composition models make parameters, on the default device as torch.nn does."""
FACTORIES = frozenset(
    "zeros ones empty full eye arange linspace logspace tensor as_tensor asarray scalar_tensor rand randn randint "
    "randperm tril_indices triu_indices".split()
)


def without_device(source):
    """The calls of torch's factories that name no device."""
    return [
        call
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "torch"
        and call.func.attr in FACTORIES
        and not any(keyword.arg == "device" for keyword in call.keywords)
    ]


@pytest.mark.parametrize("part", PARTS)
def test_every_tensor_of_ours_names_its_device(part):
    found = {
        f"{path.relative_to(SOURCE)}:{call.lineno}"
        for path in (SOURCE / part).rglob("*.py")
        for call in without_device(path.read_text(encoding="utf-8"))
    }
    assert found == set()


def test_a_tensor_that_names_no_device_is_found():
    assert len(without_device("torch.zeros(3)\ntorch.zeros(3, device='cpu')\nx.new_zeros(3)")) == 1


class Model(nn.Module):
    """A network of two layers in both directions, mean or last state, and a head."""

    def __init__(self, both, layers):
        super().__init__()
        self.embed = nn.Embedding(30, 4, padding_idx=0)
        self.rnn = nn.GRU(4, 5, num_layers=layers, bidirectional=both, batch_first=True)
        self.head = nn.Linear(10 if both else 5, 3)

    def forward(self, ids):
        return self.head(torch.tanh(self.rnn(self.embed(ids))[0].mean(1)))


class Siamese(Model):
    """Two calls of one network, and a loop over a cell: calls that are opened one by one."""

    def __init__(self):
        super().__init__(False, 1)
        self.cell = nn.GRUCell(5, 5)

    def forward(self, ids):
        one, other = (self.rnn(self.embed(part))[0] for part in (ids[:, :3], ids[:, 3:].flip(0).flip(0)))
        state = one.new_zeros(len(ids), 5)
        for t in range(one.shape[1]):
            state = self.cell(one[:, t], state)
        return self.head(state - other[:, -1])


class Sorted(Model):
    """Reorders its texts, so that examples are told apart."""

    def forward(self, ids):
        return super().forward(ids.flip(0))


@contextmanager
def default_device(device):
    torch.set_default_device(device)
    try:
        yield
    finally:
        torch.set_default_device(None)  # any device, "cpu" among them, would leave a mode behind


class Numbers(Model):
    """Reads numbers, backward, two steps at once."""

    def forward(self, x):
        pairs = torch.cat((x, x.roll(1, 1)), dim=2).flip(1)
        return self.head(self.rnn(pairs)[0][:, -1])


MODELS = {
    "one direction": lambda: Model(False, 1),
    "two directions": lambda: Model(True, 1),
    "deep": lambda: Model(True, 2),
    "several calls": Siamese,
    "reordered": lambda: Sorted(False, 1),
}
CALLS = {
    "explain": lambda model, ids: [str(unrolled.explain(model, ids[:1], target=1))],
    "explain path": lambda model, ids: [str(unrolled.explain(model, ids[:1], target=1, expansion="path"))],
    "explain_batch": lambda model, ids: [str(one) for one in unrolled.explain_batch(model, ids, target=1)],
    "account": lambda model, ids: [str(one) for one in unrolled.account(model, ids, target=1)],
    "check": lambda model, ids: [str(unrolled.check(model, ids[:1]))],
}


@pytest.mark.quick_diagonal(3)  # quick: every model, every call
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_on_the_cpu_is_opened_whatever_the_default_device_is(name, call):
    torch.manual_seed(0)
    model, ids = MODELS[name]().double().eval(), torch.randint(1, 30, (3, 6))
    expected = CALLS[call](model, ids)
    with default_device("meta"):
        assert torch.zeros(1).is_meta
        assert CALLS[call](model, ids) == expected


@pytest.mark.parametrize("call", CALLS)
def test_a_model_that_reads_numbers_is_opened_whatever_the_default_device_is(call):
    torch.manual_seed(0)
    model, x = Numbers(False, 1).double().eval(), torch.randn(3, 6, 2).double()
    expected = CALLS[call](model, x)
    with default_device("meta"):
        assert CALLS[call](model, x) == expected


@pytest.mark.quick_diagonal(3)  # quick: every expansion, each option on and off
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("lengths", [None, [5, 2]])
@pytest.mark.parametrize("expansion", ["secant", "path", "gates"])
def test_decompose_whatever_the_default_device_is(both, layers, lengths, expansion):
    torch.manual_seed(0)
    rnn = nn.LSTM(3, 4, num_layers=layers, bidirectional=both, batch_first=True).double()
    x, weight = torch.randn(2, 5, 3).double(), [[1.0, 0.0, 2.0, -1.0]]

    def read():
        found = unrolled.decompose(rnn, x, lengths, expansion=expansion)
        return [found.vectors(), found.scores(weight), found.initial(), found.residual()]

    expected = read()
    with default_device("meta"):
        for one, other in zip(read(), expected, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=0)
