from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.errors import ShapeError, UsageError
from unrolled.lab.models.classifier import Classifier
from unrolled.lab.models.factory import make_classifier
from unrolled.lab.models.pooling import LastState
from unrolled.lab.models.settings import PooledSettings

ENCODERS = ("rnn", "gru", "lstm")
POOLINGS = ("last", "mean", "max", "attention")
LENGTHS = torch.tensor([3, 6, 1, 4])


def classifier(**parts):
    torch.manual_seed(0)
    return make_classifier(PooledSettings(hidden=5, embedding=4, **parts), words=20, outputs=3).double().eval()


def tokens(batch=4, time=6):
    return torch.randint(2, 20, (batch, time), generator=torch.Generator().manual_seed(1))


GRID = pytest.mark.parametrize(
    "parts",
    [
        {"encoder": encoder, "pooling": pooling, "bidirectional": bidirectional, "layers": layers}
        for encoder in ENCODERS
        for pooling in POOLINGS
        for bidirectional in (False, True)
        for layers in (1, 2)
    ],
    ids=lambda parts: "-".join(map(str, parts.values())),
)


@GRID
def test_a_padded_sequence_says_what_it_says_alone(parts):
    model, rows = classifier(**parts), tokens()
    together = model(rows, LENGTHS)
    alone = torch.cat([model(row[None, :n]) for row, n in zip(rows, LENGTHS.tolist(), strict=True)])
    assert together.shape == (4, 3)
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-12)


@GRID
def test_what_stands_in_the_padding_changes_nothing_and_without_lengths_it_does(parts):
    model, rows = classifier(**parts), tokens()
    others = rows.masked_fill(torch.arange(6) >= LENGTHS[:, None], 7)
    assert torch.equal(model(rows, LENGTHS), model(others, LENGTHS))
    assert not torch.allclose(model(rows), model(others))


@GRID
def test_no_gradient_reaches_the_padding(parts):
    model, rows = classifier(**parts), tokens()
    seen = {}
    hook = model.embedding.register_forward_hook(lambda _, __, out: seen.update(vectors=out) or out.retain_grad())
    model(rows, LENGTHS).square().sum().backward()
    hook.remove()
    outside = torch.arange(6) >= LENGTHS[:, None]
    gradient = seen["vectors"].grad
    assert (gradient[outside] == 0).all()
    assert (gradient[~outside] != 0).any()


@pytest.mark.parametrize("lengths", [None, torch.tensor([6, 6, 6, 6])])
def test_sequences_of_equal_length_are_not_packed(lengths):
    model, inputs = classifier(), []
    model.encoder.register_forward_hook(lambda _, args, __: inputs.append(args[0]))
    model(tokens(), lengths)
    model(tokens(), LENGTHS)
    assert isinstance(inputs[0], torch.Tensor)
    assert isinstance(inputs[1], nn.utils.rnn.PackedSequence)


def test_the_last_state_is_what_torch_calls_the_final_hidden_state():
    for bidirectional in (False, True):
        model = classifier(bidirectional=bidirectional)
        _, final = model.encoder(model.embedding(tokens()))
        expected = model.head(torch.cat(list(final), dim=-1))
        torch.testing.assert_close(model(tokens()), expected, rtol=0, atol=1e-12)


def test_any_encoder_with_torchs_interface_will_do():
    class Halved(nn.Module):
        def forward(self, vectors):
            return vectors / 2, None

    model = Classifier(nn.Embedding(20, 4), Halved(), LastState(), nn.Linear(4, 2))
    rows = tokens()
    assert torch.equal(model(rows), model.head(model.embedding(rows[:, -1]) / 2))


def test_dropout_acts_in_training_only():
    model = classifier(dropout=0.5)
    assert torch.equal(model(tokens()), model(tokens()))
    model.train()
    assert not torch.equal(model(tokens()), model(tokens()))


@pytest.mark.parametrize(
    ("rows", "lengths", "error", "message"),
    [
        (torch.zeros(3, dtype=torch.int64), None, ShapeError, r"shape \(3,\); expected \(batch, time\)"),
        (torch.zeros(2, 0, dtype=torch.int64), None, ShapeError, r"shape \(2, 0\)"),
        (tokens(), torch.tensor([3, 2]), ShapeError, r"shape \(2,\); expected \(4,\), one for each sequence"),
        (tokens(), torch.tensor([3, 2, 0, 6]), UsageError, "lengths are between 0 and 6; expected 1 to 6"),
        (tokens(), torch.tensor([3, 2, 1, 7]), UsageError, "lengths are between 1 and 7; expected 1 to 6"),
    ],
)
def test_inputs_that_cannot_be_are_refused(rows, lengths, error, message):
    with pytest.raises(error, match=message):
        classifier()(rows, lengths)


def test_parts_that_do_not_fit_are_refused():
    with pytest.raises(UsageError, match="batch_first=False; expected True"):
        Classifier(nn.Embedding(20, 4), nn.GRU(4, 5), LastState(), nn.Linear(5, 2))
    with pytest.raises(ShapeError, match="states have 5 features; expected a multiple of the 2 directions"):
        LastState(2)(torch.zeros(1, 2, 5), None)
