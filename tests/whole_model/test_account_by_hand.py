"""The account where its truth is known: linear models by hand, a deep bidirectional network by a loop of its own."""

import pytest
import torch
from torch import nn

import unrolled
from reference import layer_weights
from reference_paths import secant_parts
from whole_model_zoo import Classifier, ids

# a linear model: the account is known


def test_a_linear_model_is_its_weights_times_its_inputs():
    model, x = nn.Linear(4, 3).double(), torch.randn(5, 4).double()
    found = unrolled.account(model, x, target=1)
    torch.testing.assert_close(found.features["0"], x * model.weight[1].detach(), rtol=0, atol=0)
    torch.testing.assert_close(found.biases["bias"], model.bias[1].detach().expand(5))
    torch.testing.assert_close(found.output, model(x)[:, 1].detach())
    assert not found.constants
    assert not found.initial.any()


def test_padding_that_a_model_adds_is_no_token_of_a_text():
    class Pads(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = nn.Embedding(9, 4), nn.Linear(4, 3)

        def forward(self, one, other):
            both = nn.utils.rnn.pad_sequence([one[0], other[0]], batch_first=True)
            return self.head(self.embed(both).sum(dim=(0, 1)))[None]

    model, texts = Pads().double(), {"0": [5, 3, 2, 4], "1": [7, 1]}
    found = unrolled.account(model, *(torch.tensor([words]) for words in texts.values()), target=1)
    vectors, weight = model.embed.weight.detach(), model.head.weight.detach()[1]
    for name, words in texts.items():
        torch.testing.assert_close(found.texts[name].reshape(-1), vectors[words] @ weight)
    assert float(found.biases["embed.weight"]) == pytest.approx(2 * float(vectors[0] @ weight))


def test_several_linear_layers_and_an_embedding():
    model = nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(12, 5), nn.Linear(5, 2)).double()
    tokens = torch.tensor([[1, 2, 3], [4, 4, 4]])
    found = unrolled.account(model, tokens, target=0)
    w = model[3].weight[0] @ model[2].weight
    expected = (model[0](tokens) * w.view(3, 4)).sum(-1).detach()
    torch.testing.assert_close(found.tokens, expected)
    torch.testing.assert_close(found.biases["2.bias"], (model[3].weight[0] @ model[2].bias).detach().expand(2))


def test_the_bias_of_a_first_step_from_zeros_has_its_own_name():
    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.x, self.h, self.out = nn.Linear(3, 4, bias=False), nn.Linear(4, 4), nn.Linear(4, 2, bias=False)
            self.double()

        def forward(self, x):
            h = x.new_zeros(len(x), 4)
            for step in x.unbind(1):
                h = self.x(step) + self.h(h)
            return self.out(h)

    model, x = Loop(), torch.randn(2, 3, 3, dtype=torch.float64)
    found = unrolled.account(model, x, target=1)
    u, bias = model.h.weight, model.h.bias
    expected = model.out.weight[1] @ (bias + u @ bias + u @ u @ bias)
    assert set(found.biases) == {"h.bias"}
    torch.testing.assert_close(found.biases["h.bias"], expected.expand(2).detach())


# a deep bidirectional network, by a loop over n-grams


def loop_account(model, tokens):
    """The account by token of a bidirectional stack, written out: one matrix for each step, layer and direction.

    Every layer's state is a map of its inputs' parts: f(u⁰, 0) of the part that its own token makes, and A, C of the
    secant. Contributions are carried as one vector for every source (token or anything else) by explicit sums.
    """
    x = model.embed.weight.detach()[tokens]  # (time, e)
    time = len(tokens)
    rnn = model.rnn
    d = rnn.hidden_size
    lstm = isinstance(rnn, nn.LSTM)
    # parts[t] is (sources, features): columns of sources are the tokens and, last, everything else
    alone = [
        torch.cat([torch.diag(torch.eye(time)[t])[:, t : t + 1].double() * v, torch.zeros(1, len(v)).double()])
        for t, v in enumerate(x)
    ]
    moved = [torch.zeros_like(each) for each in alone]
    for layer in range(rnn.num_layers):
        outs, bases = [], []
        for way in range(2):
            w = layer_weights(rnn, layer, way == 1)
            order = range(time) if way == 0 else range(time - 1, -1, -1)
            size = 2 * d if lstm else d
            state, parts = torch.zeros(size).double(), torch.zeros(time + 1, size).double()
            hidden, base = [None] * time, [None] * time
            for t in order:
                u0, du = alone[t].sum(0), moved[t].sum(0)
                g, A, C, new = secant_parts(w, u0, du, state, lstm)
                # by shares, what the token alone makes goes back to u0 and to the biases
                held = share_of_input(w, alone[t], lstm)
                parts = held + parts @ A.T + moved[t] @ C.T
                assert torch.allclose(held.sum(0), g, atol=1e-12)
                state = new
                hidden[t], base[t] = parts[:, -d:], held[:, -d:]
            outs.append(hidden)
            bases.append(base)
        alone = [torch.cat([bases[0][t], bases[1][t]], 1) for t in range(time)]
        moved = [torch.cat([outs[0][t], outs[1][t]], 1) - alone[t] for t in range(time)]
    return [a + m for a, m in zip(alone, moved, strict=True)]


def share_of_input(w, parts, lstm, p=0.75):
    """f(u⁰, 0) as a sum over sources by shares: lines from zero, p of a gated product for the content."""
    d = w["weight_hh"].shape[1]
    sig, tanh = torch.sigmoid, torch.tanh
    pre = parts @ w["weight_ih"].T
    pre[-1] += w["bias_ih"]
    both = pre.clone()
    both[-1] += w["bias_hh"]

    def line(phi, z):
        total = z.sum(0)
        zero = phi(torch.zeros(()).double())
        return z * torch.where(total.abs() > 1e-12, (phi(total) - zero) / total, torch.zeros(()).double())

    def gated(gate, content):
        """σ(gate) ⊙ content: σ(0) and p of the rest for the content, 1 - p for the gate."""
        risen, held = line(sig, gate), content.sum(0)
        kept = 0.5 + p * risen.sum(0)
        return kept * content + (1 - p) * risen * held

    if lstm:
        zi, _, zg, zo = both.split(d, dim=1)
        c = gated(zi, line(tanh, zg))
        return torch.cat([c, gated(zo, line(tanh, c))], 1)
    (zr, zz, _), (_, _, an) = both.split(d, dim=1), pre.split(d, dim=1)
    m = torch.zeros_like(an)
    m[-1] += w["bias_hh"][2 * d :]
    n = line(tanh, an + gated(zr, m))
    # n + z (h - n) with h = 0
    minus = gated(zz, -n)
    return n + minus


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
def test_a_deep_bidirectional_network_equals_a_loop(kind):
    model = Classifier(kind, 2, True, "mean", "linear").double().eval().requires_grad_(False)
    for parameter in model.rnn.parameters():
        parameter.mul_(2)
    tokens = ids(6)
    found = unrolled.account(model, tokens[None], target=1)
    parts = loop_account(model, tokens)
    expected = sum(part @ model.head.weight[1] for part in parts) / len(tokens)
    torch.testing.assert_close(found.tokens[0], expected[:-1], rtol=1e-9, atol=1e-12)
    assert float(found.inputs) == pytest.approx(float(expected[:-1].sum()), abs=1e-12)
