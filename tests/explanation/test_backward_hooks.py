"""Backward hooks of a model's modules meet no gradient of ours, and every one of the user's, in any thread."""

from __future__ import annotations

import warnings
from threading import Thread

import pytest
import torch
from torch import nn
from torch.nn.modules.module import register_module_full_backward_hook, register_module_full_backward_pre_hook

import unrolled

V, E, D = 20, 5, 7
TOKENS = torch.randint(0, V, (2, 6), generator=torch.Generator().manual_seed(0))
CALLS = [unrolled.explain_batch, unrolled.account]


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head = nn.Embedding(V, E), nn.GRU(E, D, batch_first=True), nn.Linear(D, 2)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0].mean(1))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("part", ["", "embed", "rnn", "head"])
def test_backward_hooks_meet_no_gradient_of_ours_and_stay(part, call):
    """The numbers are those without hooks, which change no output; a backward pass of the user's calls them."""
    model, met = Base(), []
    expected = call(model, TOKENS, target=1)
    module = model.get_submodule(part)
    module.register_full_backward_hook(lambda *_: met.append("after"))
    module.register_full_backward_pre_hook(lambda *_: met.append("before"))
    found = call(model, TOKENS, target=1)
    for one, other in zip(found, expected, strict=True):
        assert one.to_records() == other.to_records()
    assert met == []
    with warnings.catch_warnings(action="ignore"):  # the inputs of an embedding have no gradient
        model(TOKENS)[:, 1].sum().backward()
    assert met == ["before", "after"]


@pytest.mark.parametrize("call", CALLS)
def test_backward_hooks_of_all_modules_meet_no_gradient_of_ours_and_stay(call):
    model, met = Base(), []
    expected = call(model, TOKENS, target=1)
    handles = [
        register(lambda *_: met.append(None))
        for register in (register_module_full_backward_pre_hook, register_module_full_backward_hook)
    ]
    try:
        found = call(model, TOKENS, target=1)
        assert met == []
        with warnings.catch_warnings(action="ignore"):
            model(TOKENS)[:, 1].sum().backward()
    finally:
        for each in handles:
            each.remove()
    for one, other in zip(found, expected, strict=True):
        assert one.to_records() == other.to_records()
    assert len(met) == 2 * len(list(model.modules()))
    model(TOKENS)[:, 1].sum().backward()
    assert len(met) == 2 * len(list(model.modules()))  # they are removed for good


@pytest.mark.parametrize("call", CALLS)
def test_backward_hooks_of_a_model_that_another_thread_trains_meanwhile_stay(call):
    model, met = Base(), []
    for each in (model.head, model.rnn):
        each.register_full_backward_hook(lambda module, *_: met.append(type(module)))
        each.register_full_backward_pre_hook(lambda module, *_: met.append(type(module)))

    def train():
        model(TOKENS)[:, 1].sum().backward()

    def target(out):
        if not met:
            thread = Thread(target=train)
            thread.start()
            thread.join()
        return out[:, 1]

    call(model, TOKENS, target=target)
    assert met == [nn.Linear, nn.Linear, type(model.rnn), type(model.rnn)]
