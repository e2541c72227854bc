"""Sampling: which tokens, how often, and with the state carried along as with the whole text."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest
import torch
from torch import nn

from unrolled.cells import recurrent
from unrolled.composition.matrix_vector import MVMAGEncoder
from unrolled.errors import UsageError
from unrolled.lab.models.language_model import LanguageModel
from unrolled.lab.models.sampling import generate_tokens, sample_token
from unrolled.lab.models.softmax import FullSoftmax

WORDS = 12
PROMPT = [3, 1, 4, 1, 5]
ENCODERS = {
    "lstm": lambda: nn.LSTM(6, 6, batch_first=True),
    "mi_gru": lambda: recurrent("mi_gru", 6, 6, batch_first=True),
    "n-grams": lambda: MVMAGEncoder(6, 6),
}


def made(encoder="lstm"):
    torch.manual_seed(8)
    model = LanguageModel(nn.Embedding(WORDS, 6), ENCODERS[encoder](), FullSoftmax(6, WORDS)).double().eval()
    for parameter in model.parameters():
        parameter.data.normal_(std=1.5)
    return model


def written(model, count=15, **options):
    return list(islice(generate_tokens(model, PROMPT, **options), count))


@pytest.mark.parametrize("encoder", ENCODERS)
def test_cold_it_takes_the_likeliest_after_the_whole_text_so_far(encoder):
    model = made(encoder)
    found = written(model, temperature=0.0, context=100)
    text = PROMPT.copy()
    for token in found:
        scores = model(torch.tensor([text]))[0, -1]
        scores[0] = -torch.inf
        assert token == int(scores.argmax())
        text.append(token)
    assert len(set(found)) > 1


def test_a_context_bounds_what_an_encoder_without_a_state_reads():
    model = made("n-grams")
    text = PROMPT + written(model, temperature=0.0, context=3)
    for end in range(len(PROMPT), len(text)):
        scores = model(torch.tensor([text[end - 3 : end]]))[0, -1]
        scores[0] = -torch.inf
        assert text[end] == int(scores.argmax())


def test_the_same_seed_gives_the_same_text_and_another_another():
    model = made()
    seeds = [torch.Generator().manual_seed(seed) for seed in (1, 1, 2)]
    one, same, other = (written(model, generator=seed) for seed in seeds)
    assert one == same != other


def test_what_is_never_to_be_drawn_is_not():
    model = made()
    model.head.output.bias.data[[0, 7]] = 50.0
    assert set(written(model, 30)) == {7}
    assert not {0, 7} & set(written(model, 200, never=(0, 7)))


@pytest.mark.slow
def test_tokens_come_as_often_as_they_are_likely():
    scores, generator = torch.tensor([0.3, -1.0, 1.2, 0.0]), torch.Generator().manual_seed(0)
    for temperature in (0.5, 1.0, 2.0):
        counts = Counter(sample_token(scores, temperature, generator=generator) for _ in range(20_000))
        found = torch.tensor([counts[k] for k in range(4)]) / 20_000
        expected = (scores / temperature).softmax(0)
        assert (found - expected).abs().max() < 0.015
        assert (found - scores.softmax(0)).abs().max() < 0.015 or temperature != 1.0


def test_top_leaves_the_likeliest_and_their_proportions():
    scores, generator = torch.tensor([0.3, -1.0, 1.2, 0.0]), torch.Generator().manual_seed(0)
    counts = Counter(sample_token(scores, top=2, generator=generator) for _ in range(10_000))
    assert set(counts) == {0, 2}
    assert counts[2] / 10_000 == pytest.approx(float(torch.sigmoid(torch.tensor(0.9))), abs=0.015)
    assert {sample_token(scores, top=1, generator=generator) for _ in range(20)} == {2}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -0.1}, "temperature is -0.1; expected 0 or more"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"top": 0}, "top is 0; expected 1 or more"),
        ({"context": 0}, "context is 0; expected 1 or more"),
    ],
)
def test_invalid_numbers(options, message):
    with pytest.raises(UsageError, match=message):
        written(made(), **options)


def test_an_empty_prompt():
    with pytest.raises(UsageError, match="prompt is empty; expected at least one token"):
        next(generate_tokens(made(), []))
