"""Every encoder of the zoo, found by listing, against table 1 written apart."""

from __future__ import annotations

import math

import pytest
import torch
from safetensors.torch import load, save
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from reference_encoders import TABLES, contexts
from unrolled.cells import CELLS
from unrolled.encoders import ENCODERS
from unrolled.encoders.cnn import CNN
from unrolled.encoders.mm import MM
from unrolled.encoders.transformer import Transformer
from unrolled.encoders.va_w import VAW
from unrolled.errors import ShapeError, UnknownNameError, UsageError
from unrolled.models.classifier import Classifier
from unrolled.models.pooling import LastState, MeanPooling
from unrolled.recurrence.both_ways import BothWays
from unrolled.recurrence.encoder import CompositionEncoder, GrowingEncoder

B, T = 3, 6
LENGTHS = (6, 2, 4)
SIZES = {"mm": (4, 4)}
COMPOSITIONS = [name for name, kind in ENCODERS.members.items() if issubclass(kind, CompositionEncoder)]
CAUSAL = [*COMPOSITIONS, "cnn", "window"]


def made(name, **options):
    torch.manual_seed(11)
    encoder = ENCODERS.get(name)(*SIZES.get(name, (3, 4)), **options).double().eval()
    for parameter in encoder.parameters():
        parameter.data.mul_(2.0)
    return encoder


def inputs(encoder, time=T):
    torch.manual_seed(12)
    return torch.randn(B, time, encoder.input_size).double()


@pytest.fixture(params=ENCODERS.names())
def encoder(request):
    return made(request.param)


@pytest.fixture(params=COMPOSITIONS)
def composition(request):
    return made(request.param)


def test_table_1_is_here_and_the_baselines():
    assert set(COMPOSITIONS) == set(TABLES)
    assert set(ENCODERS.names()) - set(COMPOSITIONS) == {"cnn", "transformer", "window"}


def test_ngrams_are_products_of_dense_matrices(composition):
    x = inputs(composition)
    found = composition.ngrams(x)
    assert found.shape == (B, T, T, composition.output_size)
    weights = {key: value.detach() for key, value in composition.state_dict().items()}
    for b in range(B):
        torch.testing.assert_close(found[b], TABLES[composition.name](weights, x[b]))


def test_contexts_are_made_of_the_ngrams(composition):
    x = inputs(composition)
    outputs, final = composition(x)
    table = composition.ngrams(x)
    for b in range(B):
        torch.testing.assert_close(outputs[b], contexts(composition.name, table[b]))
    torch.testing.assert_close(final[0], outputs[:, -1])


@pytest.mark.parametrize("name", [n for n in COMPOSITIONS if issubclass(ENCODERS.get(n), GrowingEncoder)])
def test_the_plain_recursion_gives_the_same_contexts(name):
    encoder = made(name)
    x = inputs(encoder).transpose(0, 1)
    torch.testing.assert_close(encoder.contexts(x), GrowingEncoder.contexts(encoder, x))


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


@pytest.mark.parametrize("name", ["cnn", "transformer", "window"])
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


@pytest.mark.parametrize("x", ["e", "g", "l", "me"])
def test_mvma_is_the_affine_cell_run_as_a_recurrence(x):
    encoder = made(f"mvma_{x}")
    cell = CELLS.get(f"mvma_{x}")(3, 4).double()
    cell.load_state_dict({key.removeprefix("cell."): value for key, value in encoder.state_dict().items()})
    tokens = inputs(encoder)
    state, states = cell.initial_state(B), []
    for t in range(T):
        state = cell.step(tokens[:, t], state)
        states.append(cell.hidden(state))
    torch.testing.assert_close(encoder(tokens)[0], torch.stack(states, dim=1))


@pytest.mark.parametrize("x", ["e", "g", "l"])
def test_mvm_and_mvma_differ_in_nothing_but_the_sum(x):
    longest, total = made(f"mvm_{x}"), made(f"mvma_{x}")
    longest.load_state_dict(total.state_dict())
    tokens = inputs(total)
    torch.testing.assert_close(longest.ngrams(tokens), total.ngrams(tokens))
    torch.testing.assert_close(longest(tokens)[0][:, 0], total(tokens)[0][:, 0])
    assert (longest(tokens)[0] - total(tokens)[0]).abs().max() > 1e-3


def swapped(x):
    """The first two tokens change places."""
    return torch.cat((x[:, 1:2], x[:, :1], x[:, 2:]), dim=1)


@pytest.mark.parametrize("name", [n for n in ENCODERS.names() if n != "vm"])
def test_order_matters(name):
    encoder = made(name, **({"window": T} if name == "va_w" else {}))
    x = inputs(encoder, time=3)
    final, other = encoder(x)[0][:, -1], encoder(swapped(x))[0][:, -1]
    assert (final - other).abs().max() > 1e-4


def test_products_of_vectors_commute():
    encoder = made("vm")
    x = inputs(encoder, time=3)
    torch.testing.assert_close(encoder(x)[0][:, -1], encoder(swapped(x))[0][:, -1])


@pytest.mark.parametrize("name", CAUSAL)
def test_a_context_knows_nothing_of_what_follows(name):
    encoder = made(name)
    x = inputs(encoder)
    later = x.clone()
    later[:, 3:] += 1
    assert torch.equal(encoder(x)[0][:, :3], encoder(later)[0][:, :3])
    assert not torch.equal(encoder(x)[0][:, 3:], encoder(later)[0][:, 3:])


def test_a_transformer_looks_ahead_unless_it_is_causal():
    x = torch.randn(B, T, 3).double()
    later = x.clone()
    later[:, 3:] += 1
    for causal in (True, False):
        encoder = made("transformer", causal=causal)
        same = torch.allclose(encoder(x)[0][:, :3], encoder(later)[0][:, :3])
        assert same == causal
        padded, alone = encoder(x, LENGTHS)[0], encoder(x[1, :2])[0]
        torch.testing.assert_close(padded[1, :2], alone)


@pytest.mark.parametrize("size", [4, 5])
def test_positions_are_sines_and_cosines(size):
    found = Transformer(3, size, heads=1).positions(7, torch.zeros((), dtype=torch.float64))[:, 0]
    for t in range(7):
        for k in range(size):
            angle = t / 10000 ** ((k - k % 2) / size)
            assert float(found[t, k]) == pytest.approx(math.cos(angle) if k % 2 else math.sin(angle))


@pytest.mark.parametrize("width", [1, 2, 3, 9])
def test_a_convolution_is_a_product_with_each_window_and_a_maximum(width):
    encoder = CNN(3, 4, width=width).double()
    W = encoder.filters.weight.detach().permute(0, 2, 1).flatten(1)
    x = torch.randn(B, T, 3).double()
    outputs, final = encoder(x, LENGTHS)
    for b, n in enumerate(LENGTHS):
        nothing = torch.zeros(width - 1, 3).double()
        padded = torch.cat((nothing, x[b, :n], nothing))
        windows = [padded[i : i + width].flatten() for i in range(n + width - 1)]
        p = torch.stack([torch.tanh(W @ window + encoder.filters.bias) for window in windows])
        torch.testing.assert_close(outputs[b, :n], p[:n])
        torch.testing.assert_close(final[0, b], p.amax(dim=0))


@pytest.mark.parametrize("window", [1, 2, 9])
def test_a_window_may_be_longer_than_the_sequence(window):
    encoder = VAW(3, 4, window=window).double()
    x = inputs(encoder)
    weights = {key: value.detach() for key, value in encoder.state_dict().items()}
    for b in range(B):
        table = TABLES["va_w"](weights, x[b])
        torch.testing.assert_close(encoder.ngrams(x)[b], table)
        torch.testing.assert_close(encoder(x)[0][b], table.sum(dim=1))


def test_matrices_may_begin_near_the_identity():
    encoder, embedding = MM(16, 16), nn.Embedding(50, 16)
    encoder.initialise(embedding)
    words = torch.arange(5)[None]
    far, _ = encoder(embedding(words))
    assert (far[0, -1].view(4, 4) - torch.eye(4)).abs().max() < 0.1
    nn.init.normal_(embedding.weight, std=1e-3)  # the control
    assert encoder(embedding(words))[0][0, -1].abs().max() < 1e-6


@pytest.mark.parametrize("name", ENCODERS.names())
def test_both_ways(name):
    encoder = BothWays(made(name), made(name))
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
        BothWays(made(name), made(name, batch_first=False))


@pytest.mark.parametrize("name", ENCODERS.names())
def test_an_encoder_stands_in_a_classifier(name):
    encoder = made(name).float()
    embedding = nn.Embedding(10, encoder.input_size)
    tokens = torch.randint(10, (B, T))
    for pooling in (LastState(), MeanPooling()):
        model = Classifier(embedding, encoder, pooling, nn.Linear(encoder.output_size, 2)).eval()
        logits = model(tokens, torch.tensor(LENGTHS))
        for b, n in enumerate(LENGTHS):
            torch.testing.assert_close(logits[b : b + 1], model(tokens[b : b + 1, :n]))


@pytest.mark.parametrize("lengths", [(0, 1, 2), (7, 1, 1), (1, 1), (1.0, 2.0, 3.0)])
def test_lengths_that_cannot_be(encoder, lengths):
    calls = [encoder, encoder.ngrams] if isinstance(encoder, CompositionEncoder) else [encoder]
    for call in calls:
        with pytest.raises((UsageError, ShapeError), match=r"lengths .* expected") as caught:
            call(inputs(encoder), lengths)
        assert "\n" not in str(caught.value)


def test_inputs_that_cannot_be(encoder):
    with pytest.raises(ShapeError, match=r"expected \(batch, time, "):
        encoder(torch.zeros(B, T, encoder.input_size + 1).double())


@pytest.mark.parametrize("name", ENCODERS.names())
@pytest.mark.parametrize(("sizes", "message"), [((0, 4), "input_size is 0"), ((4, -1), "hidden_size is -1")])
def test_sizes_that_cannot_be(name, sizes, message):
    with pytest.raises(UsageError, match=f"{message}; expected a positive integer"):
        ENCODERS.get(name)(*sizes)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MM(5, 5), "expected the same square number"),
        (lambda: MM(4, 9), "expected the same square number"),
        (lambda: VAW(3, 4, window=0), "window is 0; expected a positive integer"),
        (lambda: CNN(3, 4, width=0), "width is 0; expected a positive integer"),
        (lambda: Transformer(3, 6), "hidden_size is 6; expected a multiple of the 4 heads"),
        (lambda: Transformer(3, 4, heads=0), "heads is 0; expected a positive integer"),
        (lambda: Transformer(3, 4, num_layers=0), "num_layers is 0; expected a positive integer"),
        (lambda: Transformer(3, 4, feedforward_size=-2), "feedforward_size is -2; expected a positive integer"),
    ],
)
def test_options_that_cannot_be(make, message):
    with pytest.raises(UsageError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_an_unknown_encoder_has_a_nearest_name():
    with pytest.raises(UnknownNameError, match="unknown encoder 'mvma_gru'; did you mean 'mvma_g'"):
        ENCODERS.get("mvma_gru")
