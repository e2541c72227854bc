"""A model has the account of the same model that is written with other operations of equal value."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import unrolled
from unrolled.errors import UnsupportedOperationError
from whole_model_zoo import WORDS, D, E, ids

A = torch.randn(D, D, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
A[A.abs() < 0.7] = 0.0


class Read(nn.Module):
    """A network, an operation on its last state, and a head.

    Args:
        read: the operation; it receives the model and a state for each text.
    """

    def __init__(self, read):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn = nn.Embedding(WORDS, E), nn.GRU(E, D, batch_first=True)
        self.middle = nn.Linear(D, D)
        self.register_buffer("dense", A)
        self.register_buffer("sparse", A.to_sparse())
        self.register_buffer("rows", A.to_sparse_csr())
        self.read = read
        self.double()
        generator = torch.Generator().manual_seed(4)
        self.head = torch.randn(200, generator=generator, dtype=torch.float64)

    def forward(self, tokens):
        read = self.read(self, self.rnn(self.embed(tokens))[0][:, -1])
        one = read.reshape(len(tokens), -1)
        return one @ self.head[: 2 * one.shape[1]].reshape(one.shape[1], 2)


def everything(found):
    """All parts of an account; of biases and constants the sums, since names may differ."""
    nothing = torch.zeros_like(found.output)
    sums = (sum(parts.values(), nothing) for parts in (found.biases, found.constants))
    return [found.tokens, found.initial, *sums]


def assert_equal(one, other):
    """Compare two models' accounts and explanations."""
    tokens = ids(3, 4)
    found, expected = (unrolled.account(Read(read), tokens, target=1) for read in (one, other))
    assert found.closes
    assert found.tokens.abs().max() > 1e-3
    torch.testing.assert_close(everything(found), everything(expected), rtol=1e-9, atol=1e-10)
    scores = [unrolled.explain(Read(read), tokens[:1], target=1) for read in (one, other)]
    for each in scores:
        assert not any("ray" in note for note in each.notes)
    torch.testing.assert_close(scores[0].token_scores, scores[1].token_scores, rtol=1e-9, atol=1e-10)


def middle(model, h):
    return torch.tanh(model.middle(h))


EQUAL = {
    "a sparse buffer that is not read": (lambda _, h: h * 2.0, lambda _, h: h + h),
    "a sparse matrix": (lambda model, h: (model.sparse @ h.T).T, lambda model, h: h @ model.dense.T),
    "a matrix by its sparse rows": (lambda model, h: (model.rows @ h.T).T, lambda model, h: h @ model.dense.T),
    "sparse.mm": (lambda model, h: torch.sparse.mm(model.sparse, h.T).T, lambda model, h: h @ model.dense.T),
    "sparse.mm that averages": (
        lambda model, h: torch.sparse.mm(model.rows, h.T, "mean").T,
        lambda model, h: h @ (model.dense / model.dense.ne(0).sum(1, keepdim=True)).T,
    ),
    "sparse.addmm": (
        lambda model, h: torch.sparse.addmm(h.T, model.sparse, h.T, beta=0.5, alpha=2.0).T,
        lambda model, h: 0.5 * h + 2.0 * (h @ model.dense.T),
    ),
    "a linear layer of sparse weights": (
        lambda model, h: nn.functional.linear(h, model.sparse),
        lambda model, h: h @ model.dense.T,
    ),
    "a sparse summand": (
        lambda model, h: h[:, :, None] @ h[:, None] * 0.1 + model.dense,
        lambda model, h: torch.stack([each + model.sparse for each in h[:, :, None] @ h[:, None] * 0.1]),
    ),
    "a checkpoint": (
        lambda model, h: checkpoint(middle, model, h, use_reentrant=False),
        middle,
    ),
    "a re-entrant checkpoint": (lambda model, h: checkpoint(middle, model, h, use_reentrant=True), middle),
}


@pytest.mark.parametrize("name", EQUAL)
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad=True")
def test_equal_operations_have_equal_accounts(name):
    assert_equal(*EQUAL[name])


def test_operations_of_other_value_have_other_accounts():
    with pytest.raises(AssertionError):
        assert_equal(lambda model, h: model.sparse @ h.T, lambda model, h: model.dense.T @ h.T)


def test_a_network_inside_a_checkpoint_is_opened():
    class Checkpointed(nn.Module):
        def __init__(self, checkpoints):
            super().__init__()
            torch.manual_seed(0)
            self.embed, self.rnn, self.head = nn.Embedding(WORDS, E), nn.GRU(E, D, batch_first=True), nn.Linear(D, 2)
            self.checkpoints = checkpoints

        def forward(self, tokens):
            x = self.embed(tokens)
            states, _ = checkpoint(self.rnn, x, use_reentrant=False) if self.checkpoints else self.rnn(x)
            return self.head(states[:, -1])

    tokens = ids(1, 5)
    models = [Checkpointed(checkpoints).double() for checkpoints in (True, False)]
    for call in (unrolled.account, unrolled.explain):
        found, expected = (call(model, tokens, target=1) for model in models)
        name = "tokens" if call is unrolled.account else "token_scores"
        torch.testing.assert_close(getattr(found, name), getattr(expected, name))
    assert unrolled.check(models[0], tokens).opens


def test_checkpoints_of_another_thread_keep_nothing():
    """Another thread trains with checkpoints meanwhile: their functions are computed twice as before."""
    calls = []

    def counted(x):
        calls.append(1)
        return x.tanh()

    def train():
        x = torch.randn(3, requires_grad=True)
        checkpoint(counted, x, use_reentrant=False).sum().backward()
        checkpoint(counted, x, use_reentrant=True).sum().backward()

    def read(_, h):
        thread = threading.Thread(target=train)
        thread.start()
        thread.join()
        return h

    unrolled.account(Read(read), ids(1, 3), target=1)
    assert calls
    assert len(calls) % 4 == 0


def test_a_checkpoint_whose_function_fails_tells_its_own_error():
    def fails(_):
        raise UnsupportedOperationError("of the model")

    with pytest.raises(UnsupportedOperationError, match="of the model"):
        unrolled.account(Read(lambda _, h: checkpoint(fails, h, use_reentrant=False)), ids(1, 3), target=1)
