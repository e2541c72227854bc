# ruff: noqa: ARG004  # autograd gives a context
"""A custom function of autograd has the account of the operations that its forward computes."""

from __future__ import annotations

import threading
import types

import pytest
import torch

import unrolled
from equal_accounts import Read, assert_equal
from unrolled.errors import UnsupportedOperationError
from whole_model_zoo import ids


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(context, x, scale=1.0):
        gate = torch.sigmoid(scale * x)
        context.save_for_backward(x, gate)
        context.scale = scale
        return x * gate

    @staticmethod
    def backward(context, gradient):
        x, gate = context.saved_tensors
        return gradient * gate * (1 + context.scale * x * (1 - gate)), None


class SwishInTwoParts(torch.autograd.Function):
    """The newer form, of which the context is no argument."""

    @staticmethod
    def forward(x):
        return x * torch.sigmoid(x)

    @staticmethod
    def setup_context(context, inputs, output):
        context.save_for_backward(*inputs)

    @staticmethod
    def backward(context, gradient):
        return gradient


class Reversed(torch.autograd.Function):
    """Gives its operand, and turns the gradient."""

    @staticmethod
    def forward(context, x, strength):
        context.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(context, gradient):
        return -context.strength * gradient, None


class StraightThrough(torch.autograd.Function):
    """Rounds, and hands the gradient on."""

    @staticmethod
    def forward(context, x):
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(context, gradient):
        return gradient


class Scan(torch.autograd.Function):
    """A recurrence that changes its buffer in place, and says which of its results are numbers of the model."""

    @staticmethod
    def forward(context, decay, x):
        states, states[:, 0] = torch.zeros_like(x), x[:, 0]
        for t in range(1, x.shape[1]):
            states[:, t] = decay[:, t] * states[:, t - 1].clone() + x[:, t]
        count = torch.full((len(x),), x.shape[1])
        context.mark_non_differentiable(count)
        return states, count

    @staticmethod
    def backward(context, gradient, _):
        raise AssertionError("a held run asks for no gradient of it")


kept = Swish.apply
kept_is_compiled = isinstance(kept, types.BuiltinMethodType)  # in torch 2.15


def scanned(_, h):
    states, count = Scan.apply(torch.sigmoid(h), h)
    return states / count[:, None]


def in_a_loop(_, h):
    decay, state, states = torch.sigmoid(h), h[:, 0], [h[:, 0]]
    for t in range(1, h.shape[1]):
        state = decay[:, t] * state + h[:, t]
        states.append(state)
    return torch.stack(states, 1) / h.shape[1]


EQUAL = {
    "a saved gate": (lambda _, h: Swish.apply(h), lambda _, h: h * torch.sigmoid(h)),
    "setup_context": (lambda _, h: SwishInTwoParts.apply(h), lambda _, h: h * torch.sigmoid(h)),
    "a gradient that is turned": (lambda _, h: Reversed.apply(h, 3.0) * h, lambda _, h: h * h),
    "a held result": (lambda _, h: StraightThrough.apply(h) * h, lambda _, h: (h > 0) * h),
    "a scan": (scanned, in_a_loop),
    "inside another": (lambda _, h: Reversed.apply(Swish.apply(h), 1.0), lambda _, h: h * torch.sigmoid(h)),
}


@pytest.mark.parametrize("name", EQUAL)
def test_a_custom_function_has_the_account_of_its_forward(name):
    assert_equal(*EQUAL[name])


def test_a_function_whose_apply_the_model_keeps_is_followed_or_refused():
    def read(_, h):
        return kept(h, 2.0)

    if kept_is_compiled:
        with pytest.raises(UnsupportedOperationError, match=r"let it call Swish\.apply itself"):
            unrolled.account(Read(read), ids(1, 3), target=1)
    else:
        assert_equal(read, lambda _, h: h * torch.sigmoid(2.0 * h))


def test_the_functions_of_another_thread_and_of_later_runs_keep_their_gradient():
    found = []

    def turned():
        x = torch.ones(2, requires_grad=True)
        Reversed.apply(x, 2.0).sum().backward()
        found.append(x.grad.tolist())

    def read(_, h):
        thread = threading.Thread(target=turned)
        thread.start()
        thread.join()
        return Reversed.apply(h, 2.0)

    unrolled.account(Read(read), ids(1, 3), target=1)
    turned()
    assert len(found) > 2
    assert all(each == [-2.0, -2.0] for each in found)
