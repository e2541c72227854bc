from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.lab.models.output_at_position import OutputAtPosition


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(9, 4)
        self.rnn = nn.GRU(4, 5, batch_first=True)
        self.head = nn.Linear(5, 3)

    def forward(self, tokens):
        return self.head(self.rnn(self.embedding(tokens))[0])


@pytest.mark.parametrize("position", [0, 2, -1])
def test_one_position_of_a_tagger_is_opened_as_a_classifier(position):
    torch.manual_seed(0)
    model, tokens = Tagger().double().eval(), torch.tensor([[1, 2, 3, 4, 5]])
    read = OutputAtPosition(model, position)
    logits = model(tokens)[:, position]
    assert torch.equal(read(tokens), logits)
    ledger = unrolled.explain(read, tokens, target=1).ledger
    assert abs(ledger["logit"] - logits[0, 1].item()) < 1e-12
    assert abs(sum(ledger[part] for part in ("ngrams", "initial", "bias", "remainder")) - ledger["logit"]) < 1e-12
    later = unrolled.explain(read, torch.tensor([[1, 2, 3, 8, 7]]), target=1).ledger["logit"]
    assert (later == ledger["logit"]) == (position in (0, 2))  # later tokens are not read
