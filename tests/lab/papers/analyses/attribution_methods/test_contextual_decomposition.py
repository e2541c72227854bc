"""Contextual decomposition: parts that add up, shares as in a game, and what a phrase cannot have done."""

from __future__ import annotations

import math
from itertools import permutations

import pytest
import torch
from torch import nn

from unrolled.errors import ShapeError, UsageError
from unrolled.lab.papers.analyses.attribution_methods.contextual_decomposition import contextual_decomposition

TIME, BATCH, INPUT, HIDDEN = 7, 3, 4, 5
STARTS, STOPS = torch.tensor([0, 2, 5]), torch.tensor([7, 4, 6])


@pytest.fixture(params=[True, False], ids=["bias", "no bias"])
def lstm(request):
    torch.manual_seed(0)
    network = nn.LSTM(INPUT, HIDDEN, bias=request.param).double()
    for weight in network.parameters():
        weight.data.mul_(3)  # far from linear
    return network


@pytest.fixture
def inputs():
    return torch.randn(TIME, BATCH, INPUT, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def test_phrase_and_rest_add_up_to_the_networks_own_states_and_logits(lstm, inputs):
    phrase, rest = contextual_decomposition(lstm, inputs, STARTS, STOPS)
    own = lstm(inputs)[0]
    torch.testing.assert_close(phrase + rest, own, atol=1e-13, rtol=0)
    head = nn.Linear(HIDDEN, 2).double()
    torch.testing.assert_close(phrase @ head.weight.T + rest @ head.weight.T + head.bias, head(own))
    assert (phrase - own)[:, 1].abs().max() > 0.1  # the phrase alone is not all


def test_a_phrase_has_done_nothing_before_it_begins_and_all_when_it_is_the_whole_sentence(lstm, inputs):
    phrase, rest = contextual_decomposition(lstm, inputs, STARTS, STOPS)
    assert not rest[:, 0].any()
    for number, start in ((1, 2), (2, 5)):
        assert not phrase[:start, number].any()
        assert phrase[start:, number].any(dim=-1).all()
        assert rest[start:, number].any(dim=-1).all()


def naive(lstm, x, start, stop):
    """One sentence, number by number; shares by listing the orders, the bias first in each."""
    weights = {name: value.tolist() for name, value in lstm.named_parameters()}
    none = [0.0] * (4 * HIDDEN)
    bias = [a + b for a, b in zip(weights.get("bias_ih_l0", none), weights.get("bias_hh_l0", none), strict=True)]

    def product(matrix, row, vector):
        return sum(a * b for a, b in zip(weights[matrix][row], vector, strict=True))

    def shares(activation, terms, first):
        total = [0.0] * len(terms)
        for order in permutations(range(len(terms))):
            reached = first
            for which in order:
                total[which] += activation(reached + terms[which]) - activation(reached)
                reached += terms[which]
        return [each / math.factorial(len(terms)) for each in total]

    def sigmoid(z):
        return 1 / (1 + math.exp(-z))

    h, c, states = [[0.0] * HIDDEN, [0.0] * HIDDEN], [[0.0] * HIDDEN, [0.0] * HIDDEN], []
    for t, token in enumerate(x.tolist()):
        inside, new_h, new_c = start <= t < stop, [[], []], [[], []]
        for unit in range(HIDDEN):
            terms = {}
            for gate, name in enumerate("ifgo"):
                row = gate * HIDDEN + unit
                own = product("weight_ih_l0", row, token)
                terms[name] = [
                    product("weight_hh_l0", row, h[0]) + own * inside,
                    product("weight_hh_l0", row, h[1]) + own * (not inside),
                    bias[row],
                ]
            parts = {}
            for name, activation in (("i", sigmoid), ("f", sigmoid), ("g", math.tanh)):
                *others, first = terms[name]
                parts[name] = [*shares(activation, others, first), activation(first)]
            made = [0.0, 0.0]  # products of gates, one pair of factors after the other
            for a, i in enumerate(parts["i"]):
                for b, g in enumerate(parts["g"]):
                    biases_alone = a == b == 2
                    made[(not inside) if biases_alone else int(1 in (a, b))] += i * g
            for a, f in enumerate(parts["f"]):
                made[int(a == 1)] += f * c[0][unit]
                made[1] += f * c[1][unit]
            output = sigmoid(sum(terms["o"]))
            for side, share in enumerate(shares(math.tanh, made, 0.0)):
                new_c[side].append(made[side])
                new_h[side].append(output * share)
        h, c = new_h, new_c
        states.append(h)
    return torch.tensor(states, dtype=torch.float64).transpose(0, 1)


def test_it_is_the_papers_number_by_number(lstm, inputs):
    found = torch.stack(contextual_decomposition(lstm, inputs, STARTS, STOPS))
    for number in range(BATCH):
        expected = naive(lstm, inputs[:, number], int(STARTS[number]), int(STOPS[number]))
        torch.testing.assert_close(found[:, :, number], expected, atol=1e-12, rtol=0)


def test_other_networks_and_a_phrase_too_few_are_refused(inputs):
    for options in ({"num_layers": 2}, {"bidirectional": True}, {"proj_size": 2}):
        with pytest.raises(UsageError, match="needs an LSTM of one layer and one direction"):
            contextual_decomposition(nn.LSTM(INPUT, HIDDEN, **options).double(), inputs, STARTS, STOPS)
    with pytest.raises(ShapeError, match=r"expected \(3,\), one for each sentence"):
        contextual_decomposition(nn.LSTM(INPUT, HIDDEN).double(), inputs, STARTS[:2], STOPS)
