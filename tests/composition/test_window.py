"""Bengio's window model, against its formula."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.composition.windows import WindowEncoder
from unrolled.errors import UsageError
from unrolled.lab.models.language_model import LanguageModel
from unrolled.lab.models.softmax import FullSoftmax


@pytest.mark.parametrize("window", [1, 3, 9])
def test_its_language_model_is_the_formula(window):
    torch.manual_seed(0)
    e, units, words, time = 3, 5, 11, 6
    encoder = WindowEncoder(e, units + window * e, window=window, direct=True)
    model = LanguageModel(nn.Embedding(words, e), encoder, FullSoftmax(units + window * e, words)).double().eval()
    W1, b1 = encoder.hidden.weight, encoder.hidden.bias
    W2, W3 = model.head.output.weight.split((units, window * e), dim=1)
    b3 = model.head.output.bias
    tokens = torch.randint(words, (2, time))
    found = model(tokens).softmax(-1)
    for b in range(2):
        rows = [torch.zeros(e, dtype=torch.float64)] * (window - 1) + list(model.embedding(tokens[b]))
        for t in range(time):
            x = torch.cat(rows[t : t + window])
            expected = torch.softmax(W2 @ torch.tanh(W1 @ x + b1) + W3 @ x + b3, dim=0)
            torch.testing.assert_close(found[b, t], expected, rtol=0, atol=1e-14)


def test_without_direct_connections_a_context_is_the_hidden_layer():
    torch.manual_seed(0)
    encoder, x = WindowEncoder(3, 4, window=2).double(), torch.randn(1, 5, 3).double()
    contexts, final = encoder(x)
    expected = torch.tanh(encoder.hidden(torch.cat((x[0, 1], x[0, 2]))))
    torch.testing.assert_close(contexts[0, 2], expected)
    assert torch.equal(final[0], contexts[:, -1])


def test_a_context_depends_only_on_its_window():
    torch.manual_seed(0)
    encoder, x = WindowEncoder(3, 4, window=2).double(), torch.randn(1, 6, 3).double()
    other = x.clone()
    other[:, 2] += 1
    same = torch.isclose(encoder(x)[0], encoder(other)[0]).all(dim=-1)[0]
    assert same.tolist() == [True, True, False, False, True, True]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 0}, "window is 0; expected a positive integer"),
        (
            {"window": 2, "direct": True},
            "hidden_size is 6; expected more than 6, because .* the 2 token vectors of size 3",
        ),
    ],
)
def test_invalid_options(options, message):
    with pytest.raises(UsageError, match=message):
        WindowEncoder(3, 6, **options)
