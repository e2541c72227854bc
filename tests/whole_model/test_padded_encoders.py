"""torch's Transformer encoder with a padding mask: it cuts the padding off where no gradient is asked for."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled

TEXTS = torch.tensor([[3, 4, 5, 6, 7], [8, 9, 10, 0, 0]])


class Encoder(nn.Module):
    """Two layers of a Transformer below a GRU, or by themselves."""

    def __init__(self, cuts=True, recurrent=False, masked=True):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.head = nn.Embedding(12, 8, padding_idx=0), nn.Linear(8, 2)
        layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=cuts)
        self.rnn, self.masked = nn.GRU(8, 8, batch_first=True) if recurrent else None, masked
        self.double()

    def forward(self, tokens):
        padding = tokens == 0
        states = self.body(self.embed(tokens), src_key_padding_mask=padding)
        if self.rnn is not None:
            states = self.rnn(states)[0]
        if self.masked:
            return self.head(states.masked_fill(padding[..., None], 0.0).sum(1))
        return self.head(states.mean(1))


@pytest.mark.parametrize("recurrent", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_an_encoder_that_cuts_padding_off_has_the_account_of_one_that_keeps_it(recurrent, masked):
    model = Encoder(recurrent=recurrent, masked=masked)
    found = unrolled.account(model, TEXTS, target=1)
    expected = unrolled.account(Encoder(False, recurrent, masked), TEXTS, target=1)
    assert found.closes
    torch.testing.assert_close(found.tokens, expected.tokens, rtol=0, atol=1e-12)
    torch.testing.assert_close(found.output, model.eval()(TEXTS)[:, 1].detach(), rtol=0, atol=1e-12)
    assert not found.tokens[1, 3:].any()
    assert bool(found.tokens[0].all())
    assert model.body.use_nested_tensor


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_where_the_padding_is_read_it_counts():
    """The control: torch gives two outputs there, with a gradient and without."""
    model = Encoder(masked=False).eval()
    with torch.no_grad():
        cut = model(TEXTS)
    assert float((cut - model(TEXTS).detach()).abs().max()) > 0.1
    alone = unrolled.account(model, TEXTS[1:, :3], target=1)
    assert float((unrolled.account(model, TEXTS, target=1).tokens[1, :3] - alone.tokens[0]).abs().max()) > 0.01


def test_explain_reads_a_network_behind_it():
    found, expected = (unrolled.explain_batch(Encoder(cuts, recurrent=True), TEXTS, target=1) for cuts in (True, False))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.token_scores, other.token_scores, rtol=0, atol=1e-12)
        assert abs(one.ledger.remainder) < 1e-12
