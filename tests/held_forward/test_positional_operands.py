"""An operation whose operands are named gives the account of the same operation with operands by position."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import unrolled


class Model(nn.Module):
    """A GRU whose states one operation meets, with numbers ``a`` and ``b`` of the same shape."""

    def __init__(self, operation):
        super().__init__()
        torch.manual_seed(0)
        self.rnn, self.head, self.operation = nn.GRU(3, 4, batch_first=True), nn.Linear(4, 2), operation

    def forward(self, x):
        states = self.rnn(x)[0]
        made = self.operation(states, torch.tanh(states + 0.3))
        return self.head(made.reshape(1, -1, 4).sum(1))


MASK, INDEX = torch.tensor([True, False, True, True]), torch.tensor([2, 0])
PAIRS = {
    "mean": (lambda a, *_: torch.mean(a, 1), lambda a, *_: torch.mean(input=a, dim=1)),
    "sum": (lambda a, *_: torch.sum(a, 1), lambda a, *_: torch.sum(input=a, dim=1)),
    "cat": (lambda a, b: torch.cat([a, b], 1), lambda a, b: torch.cat(tensors=[a, b], dim=1)),
    "stack": (lambda a, b: torch.stack([a, b]), lambda a, b: torch.stack(tensors=(a, b))),
    "add": (lambda a, b: torch.add(a, b), lambda a, b: torch.add(a, other=b)),
    "sub": (lambda a, b: a.sub(b), lambda a, b: torch.sub(input=a, other=b)),
    "mul": (lambda a, b: torch.mul(a, b), lambda a, b: torch.mul(input=a, other=b)),
    "div": (lambda a, b: a.div(b + 2), lambda a, b: torch.div(a, other=b + 2)),
    "pow": (lambda a, *_: a.pow(2), lambda a, *_: a.pow(exponent=2)),
    "pow of a number": (lambda a, *_: torch.pow(2, a), lambda a, *_: torch.pow(exponent=a, self=2)),
    "float_power of a number": (
        lambda a, *_: torch.float_power(2, a),
        lambda a, *_: torch.float_power(self=2, exponent=a),
    ),
    "remainder of a number": (
        lambda a, *_: a * torch.remainder(2, a),
        lambda a, *_: a * torch.remainder(self=2, other=a),
    ),
    "xlogy": (lambda a, b: torch.xlogy(a, b.abs()), lambda a, b: torch.xlogy(input=a, other=b.abs())),
    "special.xlogy": (lambda a, b: torch.xlogy(a, b.abs()), lambda a, b: torch.special.xlogy(a, other=b.abs())),
    "xlogy of a number": (lambda a, *_: torch.xlogy(2, a.abs()), lambda a, *_: torch.xlogy(self=2, other=a.abs())),
    "xlog1py": (
        lambda a, b: torch.special.xlog1py(a, b.abs()),
        lambda a, b: torch.special.xlog1py(input=a, other=b.abs()),
    ),
    "vecdot": (lambda a, b: torch.linalg.vecdot(a, b), lambda a, b: torch.linalg.vecdot(x=a, y=b)),
    "dot": (
        lambda a, b: a * torch.dot(a.flatten(), b.flatten()),
        lambda a, b: a * torch.dot(input=a.flatten(), tensor=b.flatten()),
    ),
    "where of a number": (lambda a, *_: torch.where(MASK, 2.0, a), lambda a, *_: torch.where(MASK, self=2.0, other=a)),
    "bmm": (lambda a, b: torch.bmm(a @ b.mT, b), lambda a, b: torch.bmm(input=a @ b.mT, mat2=b)),
    "matmul": (lambda a, b: torch.matmul(a @ b.mT, b), lambda a, b: torch.matmul(input=a @ b.mT, other=b)),
    "maximum": (lambda a, b: torch.maximum(a, b), lambda a, b: torch.maximum(input=a, other=b)),
    "max of two": (lambda a, b: torch.max(a, b), lambda a, b: torch.max(input=a, other=b)),
    "max": (lambda a, *_: torch.max(a, 1)[0], lambda a, *_: torch.max(input=a, dim=1)[0]),
    "transpose": (lambda a, *_: a.transpose(1, 2), lambda a, *_: torch.transpose(input=a, dim0=1, dim1=2)),
    "to": (lambda a, *_: a.to("cpu", a.dtype), lambda a, *_: a.to(device="cpu", dtype=a.dtype)),
    "permute": (lambda a, *_: a.permute(0, 2, 1), lambda a, *_: torch.permute(input=a, dims=(0, 2, 1))),
    "lerp": (lambda a, b: torch.lerp(a, b, b.sigmoid()), lambda a, b: torch.lerp(input=a, end=b, weight=b.sigmoid())),
    "where": (lambda a, b: torch.where(MASK, a, b), lambda a, b: torch.where(condition=MASK, input=a, other=b)),
    "masked_fill": (lambda a, *_: a.masked_fill(MASK, 0.5), lambda a, *_: a.masked_fill(mask=MASK, value=0.5)),
    "addcmul": (lambda a, b: torch.addcmul(a, a, b), lambda a, b: torch.addcmul(input=a, tensor1=a, tensor2=b)),
    "scatter": (
        lambda a, b: a.scatter(1, torch.zeros_like(b, dtype=torch.int64)[:, :1], b[:, :1]),
        lambda a, b: a.scatter(dim=1, index=torch.zeros_like(b, dtype=torch.int64)[:, :1], src=b[:, :1]),
    ),
    "index_select": (lambda a, *_: a.index_select(1, INDEX), lambda a, *_: torch.index_select(a, dim=1, index=INDEX)),
    "relu": (lambda a, *_: F.relu(a), lambda a, *_: F.relu(input=a)),
    "sigmoid": (lambda a, b: torch.sigmoid(a) * b, lambda a, b: torch.sigmoid(input=a) * b),
    "softmax": (lambda a, b: F.softmax(a, 1) * b, lambda a, b: F.softmax(input=a, dim=1) * b),
    "layer_norm": (lambda a, *_: F.layer_norm(a, (4,)), lambda a, *_: F.layer_norm(input=a, normalized_shape=(4,))),
    "relu in place": (lambda a, *_: F.relu(a), lambda a, *_: torch.nn.ReLU(inplace=True)(input=a.clone())),
    "add in place": (lambda a, b: a + b, lambda a, b: a.clone().add_(other=b)),
    "unsqueeze": (lambda a, *_: a.unsqueeze(0), lambda a, *_: torch.unsqueeze(input=a, dim=0)),
    "chunk": (lambda a, *_: a.chunk(2, 1)[0], lambda a, *_: torch.chunk(input=a, chunks=2, dim=1)[0]),
    "split": (lambda a, *_: a.split(2, 1)[0], lambda a, *_: torch.split(tensor=a, split_size_or_sections=2, dim=1)[0]),
}


@pytest.mark.parametrize("name", PAIRS)
def test_named_operands_are_operands(name):
    x = torch.randn(1, 4, 3, generator=torch.Generator().manual_seed(1)).double()
    by_position, named = (unrolled.account(Model(each).double(), x, target=1) for each in PAIRS[name])
    assert by_position.exact
    assert named.exact
    torch.testing.assert_close(named.features, by_position.features, rtol=1e-12, atol=1e-14)
    assert max(part.abs().max() for part in named.features.values()) > 0


def test_the_account_of_another_operation_differs():
    x = torch.randn(1, 4, 3, generator=torch.Generator().manual_seed(1)).double()
    (one, _), (_, other) = PAIRS["add"], PAIRS["sub"]
    found, else_ = (unrolled.account(Model(each).double(), x, target=1) for each in (one, other))
    with pytest.raises(AssertionError):
        torch.testing.assert_close(else_.features, found.features, rtol=1e-3, atol=1e-6)
