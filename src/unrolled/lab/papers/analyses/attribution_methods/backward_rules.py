r"""Layer-wise relevance propagation and DeepLift for LSTMs, and DeepLift for GRUs, written as gradients.

A rule makes the network linear in its inputs with factors that are held; gradient times input of that network is the
attribution. Written out for a pre-activation z, an activation φ and a gate γ with content κ:

- relevance propagation (ε rule; "signal takes all"): φ(z) → z φ(z) / (z + ε sign z), γ κ → γ κ with γ held. What biases
  and ε take is lost, as in the paper.
- DeepLift (rescale rule): φ(z) → φ(z⁰) + (z - z⁰) (φ(z) - φ(z⁰)) / (z - z⁰), and for products, as SHAP's version of it,
  γ κ - γ⁰ κ⁰ = ½ (γ + γ⁰) Δκ + ½ (κ + κ⁰) Δγ. The index 0 is the network's run over vectors of zero.

Source:
    Arras et al. (2017), arXiv:1706.07206, section 3.2; Shrikumar et al. (2017), arXiv:1704.02685; Lundberg and Lee
    (2017), arXiv:1705.07874, for products.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from unrolled.cells.batch_layout import read_batch
from unrolled.errors import UsageError, kind_of
from unrolled.lab.papers.analyses.attribution_methods.explained_texts import Explained

__all__ = ["EPSILON", "deep_lift", "relevance"]

EPSILON = 0.001
"""As in the paper."""
_SMALL = 1e-6


def _with_slope(values: Tensor, by: Tensor, slope: Tensor) -> Tensor:
    """Return the values, with ``slope`` as their derivative by ``by``."""
    return values.detach() + slope.detach() * (by - by.detach())


class _Rule(ABC):
    """How activations, products and sums pass a gradient on."""

    @abstractmethod
    def activation(self, function: Callable[[Tensor], Tensor], z: Tensor) -> Tensor: ...

    @abstractmethod
    def product(self, gate: Tensor, content: Tensor) -> Tensor: ...

    def total(self, values: Tensor) -> Tensor:
        """Pass on the gradient of a sum of contributions."""
        return values


class _Relevance(_Rule):
    def activation(self, function: Callable[[Tensor], Tensor], z: Tensor) -> Tensor:
        at_zero = z.abs() < _SMALL
        return _with_slope(function(z), z, torch.where(at_zero, 1.0, function(z) / torch.where(at_zero, 1.0, z)))

    def product(self, gate: Tensor, content: Tensor) -> Tensor:
        return gate.detach() * content

    def total(self, values: Tensor) -> Tensor:
        stabilised = values + EPSILON * torch.where(values >= 0, 1.0, -1.0)
        return _with_slope(values, values, values / stabilised)


class _DeepLift(_Rule):
    """The second half of every batch is the run over zeros; it takes no gradient."""

    def activation(self, function: Callable[[Tensor], Tensor], z: Tensor) -> Tensor:
        (here, zero), (out, out_zero) = z.chunk(2), function(z).chunk(2)
        step = here - zero
        small = step.abs() < _SMALL
        middle = ((here + zero) / 2).detach().requires_grad_()
        (tangent,) = torch.autograd.grad(function(middle).sum(), middle)
        slope = torch.where(small, tangent, (out - out_zero) / torch.where(small, torch.ones_like(step), step))
        return torch.cat((_with_slope(out, here, slope), out_zero.detach()))

    def product(self, gate: Tensor, content: Tensor) -> Tensor:
        (g, g_zero), (c, c_zero) = gate.chunk(2), content.chunk(2)
        out = _with_slope(g * c, g, (c + c_zero) / 2) + _with_slope(torch.zeros_like(c), c, (g + g_zero) / 2)
        return torch.cat((out, (g_zero * c_zero).detach()))


def _run_lstm(rule: _Rule, inputs: Tensor, weights: Sequence[Tensor]) -> Tensor:
    w, u, *biases = weights
    size = u.shape[1]
    h = c = inputs.new_zeros(inputs.shape[1], size)
    states = []
    for x in linear(inputs, w, biases[0] + biases[1] if biases else None):
        i, f, g, o = rule.total(x + linear(h, u)).chunk(4, dim=-1)
        new = rule.product(rule.activation(torch.sigmoid, i), rule.activation(torch.tanh, g))
        c = rule.total(rule.product(rule.activation(torch.sigmoid, f), c) + new)
        h = rule.product(rule.activation(torch.sigmoid, o), rule.activation(torch.tanh, c))
        states.append(h)
    return torch.stack(states)


def _run_gru(rule: _Rule, inputs: Tensor, weights: Sequence[Tensor]) -> Tensor:
    w, u, *biases = weights
    b, b_h = biases or (None, None)
    h = inputs.new_zeros(inputs.shape[1], u.shape[1])
    states = []
    for x in linear(inputs, w, b):
        (r, z, n), (hr, hz, hn) = x.chunk(3, dim=-1), linear(h, u, b_h).chunk(3, dim=-1)
        r, z = rule.activation(torch.sigmoid, r + hr), rule.activation(torch.sigmoid, z + hz)
        n = rule.activation(torch.tanh, n + rule.product(r, hn))
        h = rule.product(1 - z, n) + rule.product(z, h)
        states.append(h)
    return torch.stack(states)


def _margins(rule: _Rule, explained: Explained, vectors: Tensor) -> Tensor:
    """Run the model by a rule; the batch may hold several copies."""
    model, encoder = explained.model, explained.model.encoder
    runs = {"LSTM": _run_lstm} | ({"GRU": _run_gru} if isinstance(rule, _DeepLift) else {})
    if not isinstance(encoder, nn.RNNBase) or encoder.mode not in runs or not isinstance(model.head, nn.Linear):
        names = " or ".join(runs)
        raise UsageError(f"this rule needs a torch.nn.{names} with a linear head; found {kind_of(encoder)}")
    run, ways = runs[encoder.mode], 2 if encoder.bidirectional else 1
    lengths = explained.lengths.repeat(len(vectors) // len(explained.lengths))
    inputs, layout = read_batch(vectors, encoder.input_size, True, lengths)
    for layer in range(encoder.num_layers):
        outputs = []
        for way in range(ways):
            weights = [weight.detach() for weight in encoder.all_weights[ways * layer + way]]
            outputs.append(run(rule, layout.turn(inputs, way), weights))
        inputs = layout.in_token_order(outputs)
    return explained.target(model.head(model.pooling(layout.blank(inputs).transpose(0, 1), lengths)))


def relevance(explained: Explained) -> Tensor:
    """Propagate the relevance of the margin back to the words of an LSTM, shape (batch, time).

    UsageError for another network.
    """
    leaf = explained.vectors.requires_grad_()
    (gradient,) = torch.autograd.grad(_margins(_Relevance(), explained, leaf).sum(), leaf)
    return (gradient * leaf.detach()).sum(dim=-1)


def deep_lift(explained: Explained) -> tuple[Tensor, Tensor]:
    """Compare an LSTM or GRU with its run over zeros: contributions of the words, and the margin of that run.

    UsageError for another network.
    """
    leaf = explained.vectors.requires_grad_()
    margins, zero = _margins(_DeepLift(), explained, torch.cat((leaf, torch.zeros_like(leaf)))).chunk(2)
    (gradient,) = torch.autograd.grad(margins.sum(), leaf)
    return (gradient * leaf.detach()).sum(dim=-1), zero.detach()
