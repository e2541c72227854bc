r"""Contextual decomposition: the part of an LSTM's state that comes from one phrase, and the part from the rest.

.. math:: h_t = β_t + γ_t, \qquad c_t = β^c_t + γ^c_t

β is what the words of the phrase contribute alone; γ is every contribution that involves anything else. An activation
of a sum is split among the sum's terms by Shapley values, averaged over the orders of the terms; the bias is always
first. Products of two gates are expanded; a product belongs to β if it contains only the phrase and biases. The output
gate is not split. A token's own product W x belongs to the side of the token, so three terms share an activation: β's,
γ's and the bias. Products of biases alone count for the phrase while it is read.

It is a baseline: the score of a phrase is the readout of β at the end of the sentence.

Source:
    Murdoch, Liu and Yu (2018), Beyond Word Importance, section 3. arXiv:1801.05453.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from unrolled.errors import ShapeError, UsageError

__all__ = ["contextual_decomposition", "one_way_lstm"]


def one_way_lstm(network: nn.Module) -> nn.LSTM:
    """Return a network that is an LSTM of one layer and one direction; UsageError for any other one."""
    if type(network) is not nn.LSTM or network.num_layers > 1 or network.bidirectional:
        raise UsageError("contextual decomposition needs an LSTM of one layer and one direction")
    return network


@torch.no_grad()
def contextual_decomposition(lstm: nn.LSTM, inputs: Tensor, starts: Tensor, stops: Tensor) -> tuple[Tensor, Tensor]:
    """Split the hidden states of a one-layer LSTM between a phrase and the rest, one phrase for each sentence.

    ``inputs`` has the shape (time, batch, input); phrases go from ``starts`` up to, not including, ``stops``, both of
    shape (batch,). Returns β and γ, each of shape (time, batch, hidden); they add up to the network's states.
    """
    if lstm.num_layers > 1 or lstm.bidirectional or lstm.proj_size:
        raise UsageError("contextual decomposition needs an LSTM of one layer and one direction, without a projection")
    time, batch = inputs.shape[:2]
    for bounds in (starts, stops):
        if bounds.shape != (batch,):
            raise ShapeError(
                f"the bounds of phrases have shape {tuple(bounds.shape)}; expected ({batch},), one for each sentence"
            )
    d = lstm.hidden_size
    weights = dict(lstm.named_parameters())
    bias = weights["bias_ih_l0"] + weights["bias_hh_l0"] if lstm.bias else inputs.new_zeros(4 * d)
    of_gates, of_candidate, of_output = bias.split((2 * d, d, d))
    by_input = linear(inputs, weights["weight_ih_l0"])
    place = torch.arange(time, device=inputs.device)[:, None]
    inside = ((place >= starts) & (place < stops)).to(inputs)[..., None]
    phrase_c = rest_c = inputs.new_zeros(batch, d)
    hidden = inputs.new_zeros(2, batch, d)
    states = []
    for x, is_inside in zip(by_input, inside, strict=True):
        pre = linear(hidden, weights["weight_hh_l0"]) + torch.stack((is_inside * x, (1 - is_inside) * x))
        gates, candidate, output = pre.split((2 * d, d, d), dim=-1)
        (i_phrase, f_phrase), (i_rest, f_rest), (i_bias, f_bias) = (
            share.chunk(2, dim=-1) for share in _shares(gates, of_gates, torch.sigmoid)
        )
        g_phrase, g_rest, g_bias = _shares(candidate, of_candidate, torch.tanh)
        of_biases = i_bias * g_bias
        phrase = i_phrase * (g_phrase + g_bias) + i_bias * g_phrase + is_inside * of_biases
        rest = i_rest * (g_phrase + g_rest + g_bias) + (i_phrase + i_bias) * g_rest + (1 - is_inside) * of_biases
        rest_c = rest + (f_phrase + f_rest + f_bias) * rest_c + f_rest * phrase_c
        phrase_c = phrase + (f_phrase + f_bias) * phrase_c
        o = torch.sigmoid(output.sum(dim=0) + of_output)
        by_phrase, by_rest, _ = _shares(torch.stack((phrase_c, rest_c)), torch.zeros_like(of_output), torch.tanh)
        hidden = torch.stack((o * by_phrase, o * by_rest))
        states.append(hidden)
    of_phrase, of_rest = torch.stack(states, dim=1)
    return of_phrase, of_rest


def _shares(terms: Tensor, bias: Tensor, activation: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Split activation(one + other + bias) among its terms, the bias first in every order; the shares add up to it.

    ``terms`` stacks one and other, shape (2, batch, n). For tanh without a bias, the share of the bias is zero.
    """
    one, other = activation(terms + bias)
    none, both = activation(bias), activation(terms.sum(dim=0) + bias)
    return (one - none + both - other) / 2, (other - none + both - one) / 2, none
