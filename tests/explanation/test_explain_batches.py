"""Which example of a batch reads which sequence of its network: it is found out, and what mixes them is refused."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from toy_models import B, D, Model, V
from unrolled.errors import UsageError

LENGTHS = torch.tensor([5, 3, 4])
TOKENS = torch.randint(0, V, (B, 5), generator=torch.Generator().manual_seed(0))


class Sorts(Model):
    """Sorts its batch by length, packs it, and puts the answers back."""

    def forward(self, tokens, lengths=None, state=None):
        lengths, order = lengths.sort(descending=True)
        return super().forward(tokens[order], lengths, state)[order.argsort()]


class Mixes(Model):
    """What it says of an example is made of several."""

    def __init__(self, mix):
        super().__init__(nn.GRU, packed=True)
        self.mix = mix

    def forward(self, tokens, lengths=None, state=None):
        return self.mix(super().forward(tokens, lengths, state))


@pytest.mark.quick_diagonal(3)  # quick: both networks, all lengths
@pytest.mark.parametrize("lengths", [[5, 3, 4], [3, 4, 5], [4, 4, 5], [5, 4, 3]])
@pytest.mark.parametrize("kind", [Model, Sorts])
@pytest.mark.parametrize("options", [{"pool": "last"}, {"pool": "attention", "head": "gelu", "bidirectional": True}])
def test_a_sorted_batch_is_its_examples(kind, options, lengths):
    model = kind(nn.LSTM, packed=True, **options).double()
    lengths = torch.tensor(lengths)
    words = [[f"{b}.{t}" for t in range(n)] for b, n in enumerate(lengths.tolist())]
    together = unrolled.explain_batch(model, TOKENS, lengths, target=1, expansion="operating", tokens=words)
    for b, n in enumerate(lengths.tolist()):
        alone = unrolled.explain(model, TOKENS[b : b + 1, :n], lengths[b : b + 1], target=1, expansion="operating")
        assert together[b].tokens == tuple(words[b])
        assert together[b].ledger == pytest.approx(alone.ledger, abs=1e-11)
        torch.testing.assert_close(alone.triangle.scores, together[b].triangle.scores, rtol=1e-6, atol=1e-9)
        assert abs(together[b].ledger.remainder) < 1e-11
        assert abs(together[b].ledger.ngrams) > 1e-3
    named = unrolled.explain_batch(model, TOKENS, lengths, target=1)
    assert [e.tokens for e in named] == [
        tuple(map(str, row[:n])) for row, n in zip(TOKENS.tolist(), lengths.tolist(), strict=True)
    ]


def test_the_initial_state_of_a_sorted_example_is_its_own():
    model, states = Sorts(nn.GRU, packed=True).double(), torch.randn(1, B, D).double()
    order = LENGTHS.argsort(descending=True)
    together = unrolled.explain_batch(model, TOKENS, LENGTHS, states[:, order], expansion="operating")
    for b, n in enumerate(LENGTHS.tolist()):
        given = (TOKENS[b : b + 1, :n], LENGTHS[b : b + 1], states[:, b : b + 1])
        alone = unrolled.explain(model, *given, expansion="operating")
        assert together[b].ledger == pytest.approx(alone.ledger, abs=1e-11)
        assert abs(alone.ledger.initial) > 1e-4


def test_where_the_target_is_flat_at_the_states_the_order_is_found_below_them():
    model = Sorts(nn.GRU, packed=True).double()
    plain = unrolled.explain_batch(model, TOKENS, LENGTHS, target=1)
    limit = torch.tensor([0.7 * abs(e.ledger.logit - e.ledger.bias) for e in plain]).double()

    def flat(out):
        return torch.minimum((out[:, 1] - plain[0].ledger.bias).abs(), limit)

    found = unrolled.explain_batch(model, TOKENS, LENGTHS, target=flat)
    for e, before in zip(found, plain, strict=True):
        assert e.tokens == before.tokens
        assert e.ledger.logit == pytest.approx(0.7 * abs(before.ledger.ngrams), abs=1e-5)
        assert abs(e.ledger.remainder) < 1e-6


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 12))])
def test_a_head_that_is_often_flat_does_not_hide_the_order(seed):
    model = Sorts(nn.GRU, packed=True).double()
    torch.manual_seed(seed)
    model.head = nn.Sequential(nn.Linear(D, 2), nn.ReLU(), nn.Linear(2, 3)).double()
    tokens, lengths = torch.randint(0, V, (4, 5)), torch.tensor([2, 5, 4, 3])
    for b, e in enumerate(unrolled.explain_batch(model, tokens, lengths, target=1, expansion="operating")):
        alone = unrolled.explain(
            model, tokens[b : b + 1, : lengths[b]], lengths[b : b + 1], target=1, expansion="operating"
        )
        assert e.tokens == alone.tokens
        assert e.ledger == pytest.approx(alone.ledger, abs=1e-11)


def test_an_order_that_cannot_be_found_is_refused():
    model = Sorts(nn.GRU, packed=True).double()

    def half_dead(out):  # two of four examples say nothing of their states
        return torch.stack((out[0, 1], out[1, 1], 0 * out[2, 1], 0 * out[3, 1]))

    tokens, lengths = torch.randint(0, V, (4, 5)), torch.tensor([2, 5, 4, 3])
    with pytest.raises(UsageError, match=r"which states examples \[.*\] are read from could not be found out"):
        unrolled.explain_batch(model, tokens, lengths, target=half_dead)


@pytest.mark.parametrize(
    "mix",
    [
        lambda out: out - out.mean(0),
        lambda out: out - out.flip(0),
        lambda out: torch.cat((out[:1], out[1:] + 2 * out[1:].flip(0))),  # the first example is in order
        lambda out: out[[0, 0, 2]],
        lambda out: torch.stack((out[0] + out[1], 0 * out[1], out[2])),
    ],
    ids=["centred", "differences", "all but the first", "one sequence twice", "two sequences at once"],
)
def test_examples_that_depend_on_one_another_are_refused(mix):
    with pytest.raises(UsageError, match=r"depends on the states of another .* explain them one at a time") as caught:
        unrolled.explain_batch(Mixes(mix), TOKENS, LENGTHS)
    assert "\n" not in str(caught.value)
    assert len(unrolled.explain_batch(Mixes(lambda out: 2 * out), TOKENS, LENGTHS)) == B


def test_without_a_target_each_example_explains_its_predicted_class():
    model = Sorts(nn.GRU, packed=True).double()
    tokens = torch.randint(0, V, (8, 5), generator=torch.Generator().manual_seed(4))
    lengths = torch.tensor([5, 3, 4, 2, 5, 1, 4, 3])
    with torch.no_grad():
        logits = model(tokens, lengths)
    predicted = logits.argmax(dim=1).tolist()
    assert len(set(predicted)) > 1
    found = unrolled.explain_batch(model, tokens, lengths)
    assert [e.target for e in found] == [f"output {k}" for k in predicted]
    assert [e.ledger.logit for e in found] == pytest.approx(logits.max(dim=1).values.tolist())
    for b, (e, k) in enumerate(zip(found, predicted, strict=True)):
        alone = unrolled.explain(model, tokens[b : b + 1, : lengths[b]], lengths[b : b + 1])
        named = unrolled.explain(model, tokens[b : b + 1, : lengths[b]], lengths[b : b + 1], target=k)
        assert e.ledger == pytest.approx(alone.ledger, abs=1e-11)
        assert alone.ledger == named.ledger
    for readout in ("held", "ray"):
        for e in unrolled.explain_batch(model, tokens, lengths, readout=readout):
            assert abs(e.ledger.remainder) < 1e-6


def test_one_number_an_example_is_what_is_predicted():
    model = Mixes(lambda out: out[:, 2])
    found = unrolled.explain(model, TOKENS[:1], LENGTHS[:1])
    assert found.target == "output"
    assert found.ledger.logit == pytest.approx(model(TOKENS[:1], LENGTHS[:1]).item())


def test_a_batch_is_a_sequence_and_explain_takes_one_example():
    model = Model(nn.GRU, packed=True)
    found = unrolled.explain_batch(model, TOKENS, LENGTHS)
    assert isinstance(found, unrolled.Explanations)
    assert [len(e) for e in found] == LENGTHS.tolist()
    assert list(found[1:]) == [found[1], found[-1]]
    assert isinstance(found[1:], unrolled.Explanations)
    one = unrolled.explain_batch(model, TOKENS[:1], LENGTHS[:1])
    assert len(one) == 1
    assert isinstance(unrolled.explain(model, TOKENS[:1], LENGTHS[:1]), unrolled.Explanation)
    with pytest.raises(UsageError, match=r"the batch has 3 examples; expected one: use unrolled\.explain_batch"):
        unrolled.explain(model, TOKENS, LENGTHS)
