"""What the tasks for words and characters have in common: which encoders they take, and that none sees the future."""

from __future__ import annotations

import pytest
import torch

from unrolled.errors import UsageError
from unrolled.lab.models.encoder_names import ENCODER_NAMES
from unrolled.lab.models.softmax import AdaptiveSoftmax, FullSoftmax, TiedSoftmax
from unrolled.lab.training.language_modelling import LanguageModelSettings, make_language_model

WORDS, TIME = 15, 8
SIZES = {"mm": (4, 4)}


def made(name, **options):
    torch.manual_seed(4)
    embedding, hidden = SIZES.get(name, (3, 12))
    chosen = LanguageModelSettings(encoder=name, embedding=embedding, hidden=hidden, **options)
    model = make_language_model(chosen, WORDS).double().eval()
    for parameter in model.parameters():
        parameter.data.mul_(2).add_(0.1)
    return model


@pytest.mark.parametrize("name", ENCODER_NAMES)
def test_no_encoder_of_the_catalogue_sees_the_future(name):
    model = made(name)
    text = torch.randint(1, WORDS, (2, TIME), generator=torch.Generator().manual_seed(0))
    scores = model(text)
    for t in range(TIME - 1):
        other = text.clone()
        other[:, t + 1] = 1 + other[:, t + 1] % (WORDS - 1)
        found = model(other)
        torch.testing.assert_close(found[:, : t + 1], scores[:, : t + 1], rtol=0, atol=1e-12)
        assert (found[:, t + 1] - scores[:, t + 1]).abs().max() > 1e-9


@pytest.mark.parametrize("name", ENCODER_NAMES)
def test_read_from_both_ends_every_one_of_them_is_refused(name):
    embedding, hidden = SIZES.get(name, (3, 12))
    chosen = LanguageModelSettings(encoder=name, embedding=embedding, hidden=hidden, bidirectional=True)
    with pytest.raises(UsageError, match="bidirectional is True, but a backward network"):
        make_language_model(chosen, WORDS)


def test_a_transformer_is_made_causal_and_one_that_is_not_to_be_is_refused():
    assert made("transformer").encoder.causal
    with pytest.raises(
        UsageError, match=r"TransformerEncoder\) sees the token that it must predict; expected .* causal=true"
    ):
        made("transformer", options={"causal": False})


@pytest.mark.parametrize(
    ("words", "options", "head"),
    [
        (49_999, {}, TiedSoftmax),
        (49_999, {"tied": False}, FullSoftmax),
        (49_999, {"adaptive": "on"}, AdaptiveSoftmax),
        (50_000, {}, AdaptiveSoftmax),
        (50_000, {"adaptive": "off"}, TiedSoftmax),
    ],
)
def test_which_softmax_it_is(words, options, head):
    model = make_language_model(LanguageModelSettings(embedding=8, hidden=8, encoder="gru", **options), words)
    assert type(model.head) is head


def test_tied_vectors_are_there_once():
    tied, own = (made("gru", tied=tied) for tied in (True, False))
    shapes = [sorted(tuple(each.shape) for each in model.state_dict().values()) for model in (tied, own)]
    assert (WORDS, 3) in shapes[0]
    assert (WORDS, 12) not in shapes[0]
    assert (3, 12) in shapes[0]
    assert (WORDS, 12) in shapes[1]
