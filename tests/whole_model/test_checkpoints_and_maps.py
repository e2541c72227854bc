"""Checkpoints, `torch.vmap` and control flow of torch in a model are opened, and another thread keeps its own."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import unrolled
from equal_accounts import Read, assert_equal
from unrolled.errors import UnsupportedOperationError
from whole_model_zoo import WORDS, D, E, ids


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
    calls, by_training = [], []

    def counted(x):
        calls.append(1)
        return x.tanh()

    def train():
        calls.clear()
        x = torch.randn(3, requires_grad=True)
        checkpoint(counted, x, use_reentrant=False).sum().backward()
        checkpoint(counted, x, use_reentrant=True).sum().backward()
        by_training.append(len(calls))

    def read(_, h):
        thread = threading.Thread(target=train)
        thread.start()
        thread.join()
        return h

    unrolled.account(Read(read), ids(1, 3), target=1)
    assert set(by_training) == {4}


def test_maps_of_another_thread_stay_maps():
    calls = {}

    def counted(name):
        return lambda x: (calls.update({name: calls.get(name, 0) + 1}), x.tanh())[1]

    def read(_, h):
        calls.clear()
        thread = threading.Thread(target=lambda: torch.vmap(counted("other"))(torch.ones(3, 2)))
        thread.start()
        thread.join()
        return torch.vmap(counted("own"))(h)

    unrolled.account(Read(read), ids(3, 3), target=1)
    assert calls == {"other": 1, "own": 3}


def test_a_map_over_no_entries_adds_nothing():
    """The control: one over an entry of zeros adds what the function gives for zeros."""

    def rows(count):
        def read(_, h):
            given = torch.cat([h[:0], h.new_zeros(count, D)])
            mapped, largest = torch.vmap(lambda one: (one + 1, one.argmax()), out_dims=(1, 0))(given)
            return torch.cat([h.T, mapped], 1).sum(1) + len(largest)

        return unrolled.account(Read(read), tokens, target=1)

    tokens = ids(1, 3)
    found, expected = rows(0), unrolled.account(Read(lambda _, h: h[0]), tokens, target=1)
    torch.testing.assert_close(found.tokens, expected.tokens, rtol=0, atol=1e-12)
    torch.testing.assert_close(found.output, expected.output, rtol=0, atol=1e-12)
    assert float((found.output - rows(1).output).abs()) > 1e-3


def test_a_checkpoint_whose_function_fails_tells_its_own_error():
    def fails(_):
        raise UnsupportedOperationError("of the model")

    with pytest.raises(UnsupportedOperationError, match="of the model"):
        unrolled.account(Read(lambda _, h: checkpoint(fails, h, use_reentrant=False)), ids(1, 3), target=1)


def carried(h):
    states = [h[:, 0]]
    for one in h.T[:-1]:
        states.append(states[-1] * 0.5 + one)
    return torch.stack(states, 1).tanh()


OPERATORS = torch.ops.higher_order
STEPS = {
    "cond": (
        lambda m, h: OPERATORS.cond(h.sum() < 1e9, m.middle, torch.tanh, (h,)),
        lambda m, h: m.middle(h),
    ),
    "while_loop": (
        lambda m, h: OPERATORS.while_loop(
            lambda k, _: k < 2, lambda k, a: (k + 1, m.middle(a)), (torch.tensor(0), h), ()
        )[1],
        lambda m, h: m.middle(m.middle(h)),
    ),
    "map_impl": (
        lambda m, h: OPERATORS.map_impl(lambda one: m.middle(one).tanh(), [h], []),
        lambda m, h: m.middle(h).tanh(),
    ),
    "scan": (
        lambda _, h: OPERATORS.scan(lambda s, one: [s * 0.5 + one, s.tanh()], [h[:, 0]], [h.T], [])[1].T,
        lambda _, h: carried(h),
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_control_flow_of_torch_is_opened_as_python_is(name):
    if not hasattr(OPERATORS, name):
        pytest.skip(f"this version of torch lacks {name}")
    assert_equal(*STEPS[name])
