"""Weights as they are saved: each once, plain, and fitting the model they come back to."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import save
from torch import nn

from unrolled.cells import recurrent
from unrolled.errors import DataError
from unrolled.lab.training.model_tensors import all_tensors, load_tensors, plain_tensors
from unrolled.lab.training.spectral_norm import normalise_spectrum


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 3)
        self.head = nn.Linear(3, 5)
        self.head.weight = self.embedding.weight


def test_tied_weights_are_saved_once_and_come_back_tied(tmp_path):
    model, other = Tied(), Tied()
    tensors = all_tensors(model)
    assert set(tensors) == {"embedding.weight", "head.bias"}
    save(tensors)  # safetensors refuses tensors that share memory
    load_tensors(other, tensors, tmp_path)
    assert other.head.weight is other.embedding.weight
    assert torch.equal(other.head.weight, model.embedding.weight)


def test_normalised_weights_are_given_plain_and_fit_the_plain_model(tmp_path):
    torch.manual_seed(0)
    normalised = normalise_spectrum(recurrent("simplified_gru", 4, 6, batch_first=True)).eval()
    plain = recurrent("simplified_gru", 4, 6, batch_first=True)
    load_tensors(plain, plain_tensors(normalised), tmp_path)
    x = torch.randn(2, 5, 4)
    torch.testing.assert_close(plain(x)[0], normalised(x)[0])
    assert any("parametrizations" in name for name in all_tensors(normalised))
    with pytest.raises(DataError, match=r"lacks .*weight_hh"):
        load_tensors(plain, all_tensors(normalised), tmp_path)
