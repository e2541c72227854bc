"""Decompositions of torch.nn networks: directions, initial states, windows, tolerances, what they leave alone."""

from __future__ import annotations

import copy
import itertools
import pickle

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

import unrolled
from reference import affine, ngrams, run, stack_step
from toy_networks import LENGTHS, B, D, E, T, build, initial
from unrolled.cells import CELLS
from unrolled.decomposition.recurrences import affine_sequence
from unrolled.decomposition.recurrences.sweeps import forward_sweep, ngrams_by_length
from unrolled.errors import ChangedWeightsError


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
def test_the_backward_direction_is_the_forward_one_on_the_reversed_sentence(kind):
    rnn = build(kind, {}, {"bidirectional": True}, batch_first=True)
    mirror = kind(E, D, batch_first=True).double()
    for name, p in mirror.named_parameters():
        p.data = getattr(rnn, name + "_reverse").data
    x = torch.randn(B, T, E).double()
    backward = unrolled.decompose(rnn, x, LENGTHS, expansion="path").vectors(1)
    for b, n in enumerate(LENGTHS.tolist()):
        forward = unrolled.decompose(mirror, x[b : b + 1, :n].flip(1), expansion="path").vectors()[0]
        torch.testing.assert_close(backward[b, :n, :n], forward.flip(0, 1), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_initial_state_is_an_entry_of_its_own(kind):
    rnn = build(kind, {}, {})
    step, _ = stack_step(rnn)
    x, state = torch.randn(T, 1, E).double(), initial(rnn, torch.float64, 1)
    s = torch.cat([state[1][0, 0], state[0][0, 0]]) if isinstance(state, tuple) else state[0, 0]
    states = run(step, x[:, 0], s)
    pairs = [affine(step, "operating", x[t, 0], states[t]) for t in range(T)]
    carried = s
    found = unrolled.decompose(rnn, x, state=state, expansion="operating")
    for t in range(T):
        carried = pairs[t][1] @ carried
        torch.testing.assert_close(found.initial()[0, t], carried[-D:])
    torch.testing.assert_close(found.vectors()[0], ngrams(pairs)[..., -D:])


@pytest.mark.quick_diagonal(3)  # quick: every network, every order
@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
@pytest.mark.parametrize("order", [1, 2, 4, 10**12])
@pytest.mark.parametrize("at_once", [affine_sequence.AT_ONCE, 2 * B, 2])
def test_a_window_loses_nothing(kind, order, at_once, monkeypatch):
    monkeypatch.setattr(affine_sequence, "AT_ONCE", at_once)
    rnn = build(kind, {}, {"bidirectional": True}, batch_first=True)
    x, state = torch.randn(B, T, E).double(), initial(rnn, torch.float64)
    whole = unrolled.decompose(rnn, x, LENGTHS, state, expansion="operating")
    part = unrolled.decompose(rnn, x, LENGTHS, state, expansion="operating", max_order=order)
    weight = torch.randn(2, D).double()
    for d in (0, 1):
        vectors, all_ = part.vectors(d), whole.vectors(d)
        kept = min(order, T)  # no n-gram is longer than the sentence
        assert vectors.shape == (B, T, kept, D)
        for b, n in enumerate(LENGTHS.tolist()):
            for t in range(n):
                for k in range(kept):
                    i = t - k if d == 0 else t + k
                    inside = 0 <= i < n
                    expected = all_[b, t, i] if inside else torch.zeros(D).double()
                    torch.testing.assert_close(vectors[b, t, kept - 1 - k], expected)
        torch.testing.assert_close(vectors.sum(2) + part.older(d) + part.initial(d), whole.context(d))
        torch.testing.assert_close(part.scores(weight, d), vectors @ weight.T)
        assert not whole.older(d).any()


@pytest.mark.parametrize(("batch", "most"), [(1, 12), (3, 12), (40, 40)])
def test_few_vectors_are_computed_at_once_however_many_texts_there_are(batch, most, monkeypatch):
    """A cell without a closed form keeps many results for each vector."""
    monkeypatch.setattr(affine_sequence, "AT_ONCE", 12)
    sizes, apply = [], affine_sequence.AffineSequence.apply

    def counted(sequence, time, block, *others):
        sizes.append(block.shape[0] * block.shape[1])
        return apply(sequence, time, block, *others)

    monkeypatch.setattr(affine_sequence.AffineSequence, "apply", counted)
    unrolled.decompose(nn.GRU(E, D), torch.randn(30, batch, E), max_order=3).vectors()
    assert sum(sizes) == batch * (29 + 28)
    assert max(sizes) == most


@pytest.mark.quick_diagonal(3)  # quick: every network, every expansion
@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
@pytest.mark.parametrize("expansion", ["operating", "gates", "mean"])
def test_scores_without_vectors(kind, expansion):
    for layers, classes, time in itertools.product((1, 2), (1, 3), (1, 2, 7)):
        rnn = build(kind, {}, {"num_layers": layers, "bidirectional": True}, batch_first=True)
        x = torch.randn(B, time, E).double()
        lengths = torch.tensor([time, 1, max(1, time - 1)])
        found = unrolled.decompose(rnn, x, lengths, expansion=expansion)
        weight = torch.randn(classes, D).double()
        for d in (0, 1):
            expected = found.vectors(d) @ weight.T
            torch.testing.assert_close(found.scores(weight, d), expected)
            last = expected[:, 0] if d else expected[torch.arange(B), lengths - 1]
            torch.testing.assert_close(found.final_scores(weight, d), last)
            torch.testing.assert_close(found.scores(weight[0], d)[..., 0], expected[..., 0])


def test_unbatched_input():
    rnn = build(nn.LSTM, {}, {})
    x = torch.randn(T, E).double()
    found = unrolled.decompose(rnn, x, state=(torch.randn(1, D).double(), torch.randn(1, D).double()))
    torch.testing.assert_close(found.vectors().shape, torch.Size([1, T, T, D]))
    assert found.residual().max() < 1e-6


def test_path_tolerance_is_kept_and_tightens():
    rnn = build(nn.LSTM, {}, {}, scale=4.0, batch_first=True)
    x = torch.randn(B, 12, E).double()
    open_within = lambda tolerance: unrolled.decompose(rnn, x, expansion="path", tolerance=tolerance)
    errors = [float(open_within(tolerance).residual().max()) for tolerance in (1e-2, 1e-5, 1e-9)]
    assert errors[0] < 1e-2
    assert errors[1] < 1e-5
    assert errors[2] < 1e-9
    assert errors[0] > errors[1] > errors[2]


@pytest.mark.parametrize("form", ["padded", "batch first", "lengths", "packed", "unbatched", "cell"])
@pytest.mark.parametrize("layers", [1, 2])
def test_what_the_caller_writes_later_changes_nothing(form, layers):
    torch.manual_seed(0)
    x, state, lengths = torch.randn(T, B, E), 0.5 * torch.randn(layers, B, D), None
    rnn = nn.GRU(E, D, num_layers=layers, batch_first=form == "batch first")
    if form == "batch first":
        x = x.transpose(0, 1).contiguous()
    elif form == "lengths":
        lengths = LENGTHS.clone()
    elif form == "packed":
        x = pack_padded_sequence(x, LENGTHS, enforce_sorted=False)
    elif form == "unbatched":
        x, state = x[:, 0].clone(), state[:, 0].clone()
    elif form == "cell":
        rnn, state = CELLS.get("gru")(E, D), state[0].clone()
    own = [*(x if form == "packed" else (x,)), state, *(() if lengths is None else (lengths,))]
    copies = [each.clone() for each in own]

    def read(found):
        return [found.vectors(), found.initial(), found.residual()]

    expected = read(unrolled.decompose(rnn, x, lengths, state))
    found = unrolled.decompose(rnn, x, lengths, state)
    for each in own:
        each.zero_()
    for one, other in zip(read(found), expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    # the negative control: another state gives other terms
    for each, copy_of in zip(own, copies, strict=True):
        each.copy_(copy_of)
    assert not torch.equal(read(unrolled.decompose(rnn, x, lengths, 0 * state))[1], expected[1])


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_the_network_is_left_as_it_was(kind):
    rnn = build(kind, {}, {"num_layers": 2}, dropout=0.5, batch_first=True)
    rnn.train()
    calls = []
    rnn.register_forward_hook(lambda *_: calls.append(1))
    weights = {k: v.clone() for k, v in rnn.state_dict().items()}
    seed = torch.get_rng_state()
    found = unrolled.decompose(rnn, torch.randn(B, T, E, generator=torch.Generator().manual_seed(0)).double())
    assert found.residual().max() < 1e-6  # dropout was off while it ran
    assert rnn.training
    assert not calls
    assert torch.equal(seed, torch.get_rng_state())
    assert all(p.grad is None and p.requires_grad for p in rnn.parameters())
    assert all(torch.equal(v, weights[k]) for k, v in rnn.state_dict().items())
    assert "forward" not in rnn.__dict__


def test_nan_in_the_padding_is_not_read():
    rnn = build(nn.GRU, {}, {}, batch_first=True)
    x = torch.randn(B, T, E).double()
    dirty = x.clone()
    for b, n in enumerate(LENGTHS.tolist()):
        dirty[b, n:] = torch.nan
    torch.testing.assert_close(
        unrolled.decompose(rnn, dirty, LENGTHS).vectors(), unrolled.decompose(rnn, x, LENGTHS).vectors()
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_terms_that_have_died_away_are_let_go_and_not_missed(kind):
    """In float32 they would be subnormal; float64 still holds them, and judges."""
    rnn = build(kind, {}, {"bidirectional": True}, torch.float32, scale=0.2, batch_first=True)
    x, weight = torch.randn(1, 300, E), torch.randn(2, D)
    found = unrolled.decompose(rnn, x, expansion="operating")
    assert [block.first for block in forward_sweep(found.sequences[0][0])][-1] > 100
    of_judge = copy.deepcopy(rnn).double()
    judge = unrolled.decompose(of_judge, x.double(), expansion="operating")
    for d in (0, 1):
        torch.testing.assert_close(
            found.scores(weight, d).double(), judge.scores(weight.double(), d), rtol=1e-4, atol=1e-6
        )
        torch.testing.assert_close(found.vectors(d).sum(2).double(), judge.states(d), rtol=1e-4, atol=1e-6)
    *_, last = ngrams_by_length(found.sequences[0][0], 250)
    assert len(last) > 300 - 249 or not last.flatten(1).any(dim=1).all()  # all longer ones are left out, or some are
    part = unrolled.decompose(rnn, x, expansion="operating", max_order=250).scores(weight)
    torch.testing.assert_close(
        part.double(),
        unrolled.decompose(of_judge, x.double(), expansion="operating", max_order=250).scores(weight.double()),
        rtol=1e-4,
        atol=1e-6,
    )


def test_the_residual_tells_of_terms_that_outgrow_their_sum():
    """Exact terms cancel: rounding grows with the largest of them, so float32 loses the sum that float64 still has."""
    torch.manual_seed(0)
    rnn, x = nn.RNN(32, 64), torch.randn(100, 1, 32)
    for p in rnn.parameters():
        p.data.mul_(3)
    grown = unrolled.decompose(rnn, x, expansion="gates")
    assert grown.vectors().abs().max() > 1e6 * grown.states().abs().max()
    assert grown.residual().max() > 1e-3
    tame = unrolled.decompose(rnn, x, expansion="operating")  # the same states, of terms that do not grow
    assert tame.residual().max() < 1e-5
    assert unrolled.decompose(rnn.double(), x.double(), expansion="gates").residual().max() < 1e-6


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda found: pickle.loads(pickle.dumps(found))])
def test_a_copy_of_the_decomposition_of_a_trained_network_is_read_as_it_is(copied):
    rnn, x = build(nn.LSTM, {}, {"num_layers": 2}, batch_first=True), torch.randn(B, T, E).double()
    with torch.no_grad():
        for _ in range(3):  # torch counts each write, and begins anew in a copy
            for p in rnn.parameters():
                p.mul_(0.9)
    found = unrolled.decompose(rnn, x)
    other, expected = copied(found), found.vectors()
    torch.testing.assert_close(other.vectors(), expected, rtol=0, atol=0)
    with torch.no_grad():  # the control: weights of the original that change are noticed there, and not in the copy
        rnn.weight_hh_l0.mul_(2)
    torch.testing.assert_close(other.vectors(), expected, rtol=0, atol=0)
    with pytest.raises(ChangedWeightsError):
        found.vectors()


def test_it_says_what_it_is_in_one_line():
    found = unrolled.decompose(nn.GRU(E, D, bidirectional=True), torch.randn(T, B, E), max_order=2)
    sizes = f"batch={B}, time={T}, hidden={D}, directions=2, max_order=2"
    assert repr(found).startswith(f"Decomposition(secant: {sizes}, parity=")
    assert "\n" not in repr(found)
    assert "mean(operating, path)" in repr(
        unrolled.decompose(nn.GRU(E, D), torch.randn(T, E), expansion="mean(operating,path)")
    )
