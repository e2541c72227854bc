"""Several threads explain one model in training: right results, and the model is left as it was."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

import unrolled
from unrolled.user_models.this_thread import ONE_THREAD


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 6)
        self.rnn = nn.GRU(6, 8, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0][:, -1])


CALLS = {
    "account": lambda model, x: unrolled.account(model, x, target=1).tokens,
    "explain": lambda model, x: unrolled.explain(model, x, target=1).triangle.contributions,
    "decompose": lambda model, x: unrolled.decompose(model.rnn, model.embed(x).detach()).vectors(),
}


@pytest.mark.parametrize("name", CALLS)
def test_ten_threads_explain_one_model_in_training(name):
    torch.manual_seed(0)
    model, x = Reader().double().train(), torch.randint(0, 20, (1, 6))
    expected = CALLS[name](model, x)
    with ThreadPoolExecutor(10) as pool:
        found = list(pool.map(lambda _: CALLS[name](model, x), range(40)))
    for each in found:
        torch.testing.assert_close(each, expected)
    assert all(part.training for part in model.modules())
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert not any("forward" in vars(part) for part in model.modules())


@pytest.mark.parametrize(
    "network", [nn.GRU, lambda inputs, units, **_: unrolled.cells.recurrent("mi_gru", inputs, units)]
)
@pytest.mark.parametrize("name", ["account", "explain"])
def test_another_thread_differentiates_the_model_meanwhile(name, network):
    """Its outputs and gradients are the model's own, and ours are as if it were not there."""
    torch.manual_seed(0)
    model, x, here = Reader().eval(), torch.randint(0, 20, (1, 6)), threading.get_ident()
    model.rnn = network(6, 8, batch_first=True)
    model.double()

    def differentiate():
        output = model(x)
        return output.detach(), *torch.autograd.grad(output.sum(), list(model.parameters()))

    alone, expected, found = differentiate(), CALLS[name](model, x), []
    with ThreadPoolExecutor(1) as pool:

        def meanwhile(*_):
            if threading.get_ident() == here:
                found.append(pool.submit(differentiate).result())

        hooks = [each.register_forward_pre_hook(meanwhile) for each in (model.embed, model.head)]
        torch.testing.assert_close(CALLS[name](model, x), expected, rtol=0, atol=0)
    for hook in hooks:
        hook.remove()
    assert len(found) >= 4
    for each in found:
        torch.testing.assert_close(each, alone, rtol=0, atol=0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("name", ["account", "explain"])
def test_a_process_that_is_forked_meanwhile_has_the_model_as_it_was(name):
    """It waits: no thread of the child would restore the model, or release the lock."""
    model, x, inside = Reader().train(), torch.randint(0, 20, (1, 6)), threading.Event()
    CALLS[name](model, x)  # imports what it needs

    def slow(*_):
        inside.set()
        time.sleep(0.02)

    hook = model.head.register_forward_pre_hook(slow)
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(CALLS[name], model, x)
        inside.wait()
        child = os.fork()
        if not child:
            as_it_was = model.training and model.head.weight.requires_grad and len(model._forward_pre_hooks) == 0
            os._exit(0 if as_it_was and not _is_locked() else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert found.result() is not None
    hook.remove()


def _is_locked() -> bool:
    """Whether another thread could not explain a model."""
    with ThreadPoolExecutor(1) as pool:
        return not pool.submit(ONE_THREAD.acquire, timeout=1).result()
