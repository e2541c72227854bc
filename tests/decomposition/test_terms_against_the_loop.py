"""Every n-gram's vector of torch.nn's networks is the one that an independent float64 loop over dense matrices gives.

In the upper layers of a stack the loop knows the zero and the operating expansion, whose operator is the Jacobian of
the whole stack. The path's is not: every layer has a ray of its own. Its loop is written out here, layer by layer.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import nn

import unrolled
from reference import STEPS, affine, elman_step, layer_weights, ngrams, relative, run, stack_step

T, E, D = 4, 3, 4
LAYERS, BIAS = (1, 2, 3), (True, False)
NODES, WEIGHTS = (torch.from_numpy(each) / 2 for each in np.polynomial.legendre.leggauss(60))
NODES = NODES + 0.5
KINDS = {
    "tanh": (nn.RNN, {}),
    "relu": (nn.RNN, {"nonlinearity": "relu"}),
    "gru": (nn.GRU, {}),
    "lstm": (nn.LSTM, {}),
    "projected": (nn.LSTM, {"proj_size": 2}),
}


def build(name, layers, bias):
    torch.manual_seed(14)
    kind, options = KINDS[name]
    rnn = kind(E, D, layers, bias=bias, **options).double()
    for parameter in rnn.parameters():
        parameter.data.mul_(2)
    return rnn, torch.randn(T, E).double()


def steps_of(rnn):
    """Each layer's own step."""
    base = next(kind for kind in STEPS if isinstance(rnn, kind))
    bound = lambda w: lambda x, s: elman_step(w, x, s, rnn.nonlinearity) if base is nn.RNN else STEPS[base](w, x, s)
    return [bound(layer_weights(rnn, level)) for level in range(rnn.num_layers)]


def mean_slopes(rnn, level, step, start, x, s):
    """The mean of ∂f/∂(x, s) from (start, 0) to (x, s): by nodes, and across a relu's kink as a quotient."""
    if getattr(rnn, "nonlinearity", "") == "relu":
        w = layer_weights(rnn, level)
        low = w["weight_ih"] @ start + w["bias_ih"] + w["bias_hh"]
        high = w["weight_ih"] @ x + w["bias_ih"] + w["weight_hh"] @ s + w["bias_hh"]
        gain = torch.where(high == low, (high > 0).double(), (high.relu() - low.relu()) / (high - low))
        return torch.diag(gain) @ w["weight_ih"], torch.diag(gain) @ w["weight_hh"]
    slopes = torch.func.jacrev(step, argnums=(0, 1))
    along = torch.func.vmap(lambda a: slopes(start + a * (x - start), a * s))(NODES)
    return tuple(torch.einsum("n,nij->ij", WEIGHTS, each) for each in along)


def path_of_a_stack(rnn, x, states):
    """(g, A) of one step of the stack: what a layer makes of the token alone, and of the whole state below and its own.

    ``states`` is all layers' state before the step.
    """
    out = rnn.proj_size or rnn.hidden_size
    before = states.split(len(states) // rnn.num_layers)
    start = now = x
    terms, rows = [], []
    into = torch.zeros(len(x), len(states)).double()  # how the input of the layer depends on the state before
    for level, step in enumerate(steps_of(rnn)):
        size, here = len(before[level]), len(before[level]) * level
        by_input, by_state = mean_slopes(rnn, level, step, start, now, before[level])
        row = by_input @ into
        row[:, here : here + size] += by_state
        terms.append(step(start, torch.zeros(size).double()))
        rows.append(row)
        start, now, into = terms[-1][-out:], step(now, before[level])[-out:], row[-out:]
    return torch.cat(terms), torch.cat(rows)


def found_and_expected(name, layers, bias, rule):
    rnn, x = build(name, layers, bias)
    step, size = stack_step(rnn)
    states = run(step, x, torch.zeros(size).double())
    if rule == "path":
        pairs = [path_of_a_stack(rnn, x[t], states[t]) for t in range(T)]
    else:
        pairs = [affine(step, rule, x[t], states[t]) for t in range(T)]
    found = unrolled.decompose(rnn, x, expansion=rule, tolerance=1e-13)
    expected = ngrams(pairs)[..., -(rnn.proj_size or D) :]
    return found.vectors()[0], expected


@pytest.mark.quick_diagonal(3)  # quick: every network, every rule
@pytest.mark.parametrize("rule", ["zero", "operating", "path"])
@pytest.mark.parametrize("name", KINDS)
def test_terms_are_those_of_the_loop(name, rule):
    for layers, bias in itertools.product(LAYERS, BIAS):
        found, expected = found_and_expected(name, layers, bias, rule)
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)
        assert expected[-1, :-1].abs().max() > 1e-6, (layers, bias)  # the longer n-grams are not nothing


@pytest.mark.parametrize("name", KINDS)
def test_the_control_one_rule_is_not_another(name):
    for layers, bias in itertools.product(LAYERS, BIAS):
        found, _ = found_and_expected(name, layers, bias, "operating")
        _, expected = found_and_expected(name, layers, bias, "zero")
        assert relative(found, expected) > 1e-2, (layers, bias)
