"""A small call computes on one thread, a large one on all; the number is restored."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from whole_model_zoo import Classifier, ids


@pytest.fixture(autouse=True)
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def threads_in(call, model):
    """The number of threads that the model's head sees during a call."""
    seen = []
    handle = model.head.register_forward_hook(lambda *_: seen.append(torch.get_num_threads()))
    call()
    handle.remove()
    assert torch.get_num_threads() == 2
    return set(seen)


@pytest.mark.parametrize("call", [unrolled.account, unrolled.explain_batch])
def test_a_small_call_computes_on_one_thread(call, monkeypatch):
    model, tokens = Classifier(nn.GRU, 1, False, "last", "linear"), ids(3, 7)
    assert threads_in(lambda: call(model, tokens, target=1), model) == {1}
    monkeypatch.setattr("unrolled.explanation.thread_count._SMALL", 100.0)
    assert threads_in(lambda: call(model, tokens, target=1), model) == {2}


@pytest.mark.parametrize("call", [unrolled.account, unrolled.explain_batch])
def test_the_number_of_threads_is_restored_after_an_error(call):
    model = Classifier(nn.GRU, 1, False, "last", "linear")
    with pytest.raises(unrolled.UnrolledError):
        call(model, ids(3, 7), target=99)
    assert torch.get_num_threads() == 2
