"""The contract of every registered encoder, and the models of table 1 against a second implementation."""

from __future__ import annotations

from inspect import signature

import pytest
import torch
from safetensors.torch import load, save
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from reference_encoders import TABLES, contexts
from toy_encoders import BASELINES, COMPOSITIONS, LENGTHS, PUBLISHED, B, T, inputs, made
from unrolled.composition import ENCODERS
from unrolled.composition.base import BidirectionalEncoder, CompositionEncoder, RecursiveEncoder
from unrolled.composition.multiplicative import MMEncoder
from unrolled.composition.transformer import TransformerEncoder
from unrolled.composition.vector_additive import VAWEncoder
from unrolled.composition.windows import CNNEncoder
from unrolled.errors import ShapeError, UnknownNameError, UsageError
from unrolled.lab.models.classifier import Classifier
from unrolled.lab.models.pooling import LastState, MeanPooling


@pytest.fixture(params=ENCODERS.names())
def encoder(request):
    return made(request.param)


@pytest.fixture(params=COMPOSITIONS)
def composition(request):
    return made(request.param)


def test_table_1_and_the_baselines_are_registered():
    assert set(TABLES) <= set(COMPOSITIONS)
    assert set(BASELINES) <= set(ENCODERS.names()) - set(COMPOSITIONS)


@pytest.mark.parametrize("name", TABLES)
def test_ngrams_are_products_of_dense_matrices(name):
    composition = made(name)
    x = inputs(composition)
    found = composition.ngrams(x)
    assert found.shape == (B, T, T, composition.output_size)
    weights = {key: value.detach() for key, value in composition.state_dict().items()}
    for b in range(B):
        torch.testing.assert_close(found[b], TABLES[composition.name](weights, x[b]))


@pytest.mark.parametrize("name", TABLES)
def test_contexts_are_made_of_the_ngrams(name):
    composition = made(name)
    x = inputs(composition)
    outputs, final = composition(x)
    table = composition.ngrams(x)
    for b in range(B):
        torch.testing.assert_close(outputs[b], contexts(composition.name, table[b]))
    torch.testing.assert_close(final[0], outputs[:, -1])


@pytest.mark.parametrize("name", [n for n in COMPOSITIONS if issubclass(ENCODERS.get(n), RecursiveEncoder)])
def test_the_plain_recursion_gives_the_same_contexts(name):
    encoder = made(name)
    x = inputs(encoder).transpose(0, 1)
    torch.testing.assert_close(encoder.contexts(x), RecursiveEncoder.contexts(encoder, x))


def test_shapes_are_those_of_torch_nn(encoder):
    x, (size, out) = inputs(encoder), (encoder.input_size, encoder.output_size)
    outputs, final = encoder(x)
    expected, state = nn.GRU(size, out, batch_first=True)(x.float())
    assert (outputs.shape, final.shape) == (expected.shape, state.shape)
    outputs, final = encoder(x[0])
    expected, state = nn.GRU(size, out, batch_first=True)(x[0].float())
    assert (outputs.shape, final.shape) == (expected.shape, state.shape)
    assert f"{size}, {out}" in repr(encoder)


def test_time_may_come_first(encoder):
    x = inputs(encoder)
    other = made(encoder.name, batch_first=False)
    torch.testing.assert_close(other(x.transpose(0, 1))[0].transpose(0, 1), encoder(x)[0])
    torch.testing.assert_close(other(x.transpose(0, 1))[1], encoder(x)[1])


def test_batched_equals_unbatched_and_padding_is_never_read(encoder):
    x = inputs(encoder)
    for b, n in enumerate(LENGTHS):
        x[b, n:] = torch.nan
    outputs, final = encoder(x, LENGTHS)
    for b, n in enumerate(LENGTHS):
        alone, last = encoder(x[b, :n])
        torch.testing.assert_close(outputs[b, :n], alone)
        torch.testing.assert_close(final[:, b], last)
        assert not outputs[b, n:].any()
    packed = pack_padded_sequence(x, torch.tensor(LENGTHS), batch_first=True, enforce_sorted=False)
    found, last = encoder(packed)
    torch.testing.assert_close(pad_packed_sequence(found, batch_first=True)[0], outputs)
    torch.testing.assert_close(last, final)


def test_padding_has_no_ngrams(composition):
    x = inputs(composition)
    for b, n in enumerate(LENGTHS):
        x[b, n:] = torch.nan
    table = composition.ngrams(x, LENGTHS)
    for b, n in enumerate(LENGTHS):
        torch.testing.assert_close(table[b, :n, :n], composition.ngrams(x[b, :n]))
        assert not table[b, n:].any()
        assert not table[b, :, n:].any()
        starts_behind = torch.ones(T, T, dtype=torch.bool).triu(1)
        assert not table[b][starts_behind].any()


def test_no_gradient_flows_from_padding(encoder):
    x = inputs(encoder).requires_grad_()
    outputs, final = encoder(x, LENGTHS)
    # unequal weights: the plain sum of a layer norm's outputs has no gradient
    sum((each * torch.randn_like(each)).sum() for each in (outputs, final)).backward()
    for b, n in enumerate(LENGTHS):
        assert x.grad[b, :n].any()
        assert not x.grad[b, n:].any()


@pytest.mark.parametrize("method", ["forward", "ngrams"])
def test_gradients_reach_every_parameter_and_are_right(composition, method):
    x = inputs(composition, time=4)[:2].requires_grad_()
    parameters = list(composition.parameters())
    run = {"forward": lambda x, *_: composition(x)[0], "ngrams": lambda x, *_: composition.ngrams(x)}[method]
    weight = torch.randn_like(run(x))
    gradients = torch.autograd.grad((run(x) * weight).sum(), (x, *parameters))
    for gradient in gradients:
        assert torch.isfinite(gradient).all()
        assert gradient.any()
    assert torch.autograd.gradcheck(run, (x, *parameters), fast_mode=True)


@pytest.mark.parametrize("name", [name for name in ENCODERS.names() if name not in COMPOSITIONS])
def test_gradients_reach_every_parameter_of_the_baselines(name):
    encoder = made(name)
    outputs, _ = encoder(inputs(encoder))
    (outputs * torch.randn_like(outputs)).sum().backward()
    for key, parameter in encoder.named_parameters():
        assert parameter.grad is not None, key
        assert parameter.grad.any(), key


def test_saves_and_loads(encoder):
    x = inputs(encoder)
    expected = encoder(x)[0]
    other = ENCODERS.get(encoder.name)(encoder.input_size, encoder.output_size).double().eval()
    other.load_state_dict(load(save(encoder.state_dict())))
    assert torch.equal(other(x)[0], expected)


@pytest.mark.parametrize("name", ENCODERS.names())
def test_bidirectional(name):
    encoder = BidirectionalEncoder(made(name), made(name))
    for parameter in encoder.back.parameters():
        parameter.data.mul_(0.7)
    x, size = inputs(encoder), made(name).output_size
    outputs, final = encoder(x, LENGTHS)
    assert outputs.shape == (B, T, 2 * size) == (B, T, encoder.output_size)
    for b, n in enumerate(LENGTHS):
        ahead, last = encoder.ahead(x[b, :n])
        back, first = encoder.back(x[b, :n].flip(0))
        torch.testing.assert_close(outputs[b, :n], torch.cat((ahead, back.flip(0)), dim=-1))
        torch.testing.assert_close(final[:, b], torch.cat((last, first)))
    assert encoder(x[0])[1].shape == (2, size)
    with pytest.raises(UsageError, match="expected the same"):
        BidirectionalEncoder(made(name), made(name, batch_first=False))


@pytest.mark.parametrize("name", ENCODERS.names())
def test_an_encoder_works_in_a_classifier(name):
    encoder = made(name).float()
    embedding = nn.Embedding(10, encoder.input_size)
    tokens = torch.randint(10, (B, T))
    for pooling in (LastState(), MeanPooling()):
        model = Classifier(embedding, encoder, pooling, nn.Linear(encoder.output_size, 2)).eval()
        logits = model(tokens, torch.tensor(LENGTHS))
        for b, n in enumerate(LENGTHS):
            torch.testing.assert_close(logits[b : b + 1], model(tokens[b : b + 1, :n]))


@pytest.mark.parametrize("lengths", [(0, 1, 2), (7, 1, 1), (1, 1), (1.0, 2.0, 3.0)])
def test_invalid_lengths(encoder, lengths):
    calls = [encoder, encoder.ngrams] if isinstance(encoder, CompositionEncoder) else [encoder]
    for call in calls:
        with pytest.raises((UsageError, ShapeError), match=r"lengths .* expected") as caught:
            call(inputs(encoder), lengths)
        assert "\n" not in str(caught.value)


def test_invalid_inputs(encoder):
    with pytest.raises(ShapeError, match=r"expected \(batch, time, "):
        encoder(torch.zeros(B, T, encoder.input_size + 1).double())


@pytest.mark.parametrize("name", ENCODERS.names())
@pytest.mark.parametrize(("sizes", "message"), [((0, 4), "input_size is 0"), ((4, -1), "hidden_size is -1")])
def test_invalid_sizes(name, sizes, message):
    with pytest.raises(UsageError, match=f"{message}; expected a positive integer"):
        ENCODERS.get(name)(*sizes)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MMEncoder(5, 5), "expected the same square number"),
        (lambda: MMEncoder(4, 9), "expected the same square number"),
        (lambda: VAWEncoder(3, 4, window=0), "window is 0; expected a positive integer"),
        (lambda: CNNEncoder(3, 4, width=0), "width is 0; expected a positive integer"),
        (lambda: TransformerEncoder(3, 6), "hidden_size is 6; expected a multiple of the 4 heads"),
        (lambda: TransformerEncoder(3, 4, heads=0), "heads is 0; expected a positive integer"),
        (lambda: TransformerEncoder(3, 4, num_layers=0), "num_layers is 0; expected a positive integer"),
        (lambda: TransformerEncoder(3, 4, feedforward_size=-2), "feedforward_size is -2; expected a positive integer"),
    ],
)
def test_invalid_options(make, message):
    with pytest.raises(UsageError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("option", "takers"),
    [
        ("num_layers", {"transformer"}),
        ("dropout", {"transformer"}),
        ("bidirectional", set()),
        ("batch_first", set(PUBLISHED)),
    ],
)
def test_the_readme_says_which_encoders_have_an_option_of_torch(option, takers):
    assert {name for name in PUBLISHED if option in signature(ENCODERS.get(name)).parameters} == takers


def test_every_encoder_has_batch_first():
    assert all("batch_first" in signature(kind).parameters for kind in ENCODERS.members.values())


def test_the_error_for_an_unknown_encoder_suggests_the_nearest_name():
    with pytest.raises(UnknownNameError, match="unknown encoder 'mvma_gru'; did you mean 'mvma_g'"):
        ENCODERS.get("mvma_gru")
