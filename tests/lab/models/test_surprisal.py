"""The surprisals of a text: their sum is a probability, and windows do not change what a recurrent network says."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from unrolled.lab.models.surprisal import surprisals
from unrolled.lab.training.language_modelling import LanguageModelSettings, make_language_model

WORDS = 5


def model(encoder="lstm", words=WORDS, **settings):
    torch.manual_seed(0)
    made = make_language_model(LanguageModelSettings(encoder=encoder, hidden=8, embedding=8, **settings), words)
    return made.double().eval()


@pytest.mark.parametrize("encoder", ["rnn", "gru", "lstm", "mlstm", "transformer"])
def test_the_probabilities_of_all_texts_of_one_length_sum_to_one(encoder):
    network = model(encoder)
    total = sum(2 ** -sum(surprisals(network, 1, text, window=3)) for text in product(range(WORDS), repeat=3))
    assert total == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("settings", [{}, {"tied": False}, {"adaptive": "on", "words": 2500}], ids=str)
def test_they_are_those_of_reading_token_by_token(settings):
    network, text = model(**settings), [2, 4, 3, 3, 1, 2]
    state, expected = (), []
    for before, token in zip([1, *text], text, strict=False):
        scores, state = network.next(torch.tensor([[before]]), state)
        expected.append(-scores[0].log_softmax(dim=-1)[token].item() / torch.log(torch.tensor(2.0)).item())
    for window in (1, 4, 100):
        assert surprisals(network, 1, text, window) == pytest.approx(expected, rel=1e-6)


def test_an_encoder_without_a_state_starts_anew_in_each_window():
    network, text = model("transformer"), [2, 4, 3, 3]
    whole, cut = surprisals(network, 1, text, 4), surprisals(network, 1, text, 2)
    assert whole[:2] == pytest.approx(cut[:2])
    assert whole[2:] != pytest.approx(cut[2:])
