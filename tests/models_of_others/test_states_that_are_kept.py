"""Loops that keep a part of the old state: masks of padding; leaky, residual and zoned-out states."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import unrolled

V, D = 20, 4
RIGHT = torch.tensor([[9, 13, 8, 12, 8], [12, 11, 12, 0, 0], [9, 15, 13, 11, 0]])
LEFT = torch.tensor([[9, 13, 8, 12, 8], [0, 0, 12, 11, 12], [0, 9, 15, 13, 11]])
APART = torch.tensor([[9, 13, 0, 12, 8], [0, 0, 12, 11, 12], [9, 0, 13, 0, 0]])  # never a token of all examples
GAPS = torch.tensor([[9, 13, 0, 12, 8], [12, 0, 11, 0, 12], [9, 15, 13, 11, 0]])


class Loop(nn.Module):
    """A loop over a cell that keeps the state of an example where its token is padding."""

    def __init__(self, kind, keep):
        super().__init__()
        self.keep = keep
        self.embed, self.cell, self.head = nn.Embedding(V, D), kind(D, D), nn.Linear(D, 2)

    def forward(self, ids: Tensor) -> Tensor:
        x, of_lstm = self.embed(ids), isinstance(self.cell, nn.LSTMCell)
        state = torch.zeros(2 if of_lstm else 1, len(ids), D, dtype=x.dtype).unbind()
        for t in range(ids.shape[1]):
            given = tuple(state) if of_lstm else state[0]
            new = self.cell(x[:, t], given)
            state = [self.keep(ids[:, t] != 0, n, h) for n, h in zip(new if of_lstm else [new], state, strict=True)]
        return self.head(state[0])


def chosen(real, new, old):
    return torch.where(real[:, None], new, old)


def mixed(real, new, old):
    part = real[:, None].to(new.dtype)
    return part * new + (1 - part) * old


def interpolated(real, new, old):
    return torch.lerp(old, new, real[:, None].to(new.dtype))


def written(real, new, old):
    kept = old.clone()
    kept[real] = new[real]
    return kept


def filled(real, new, old):
    return new.masked_fill(~real[:, None], 0.0) + old.masked_fill(real[:, None], 0.0)


class OfThoseLeft(Loop):
    """Steps with the examples that have a token there alone, with none of them if none has."""

    def forward(self, ids: Tensor) -> Tensor:
        x, h = self.embed(ids), torch.zeros(len(ids), D, dtype=torch.float64)
        for t in range(ids.shape[1]):
            real, kept = ids[:, t] != 0, h.clone()
            kept[real] = self.cell(x[real, t], h[real])
            h = kept
        return self.head(h)


def made(kind=nn.GRUCell, keep=chosen, model=Loop):
    torch.manual_seed(5)
    return model(kind, keep).double()


def n_grams(found):
    """What every n-gram contributes, by its words."""
    parts: dict[tuple[str, ...], float] = {}
    for sequence in found.sequences:
        for each in sequence.ngrams():
            words = sequence.tokens[each.start : each.stop]
            parts[words] = parts.get(words, 0.0) + each.contribution
    return {words: part for words, part in parts.items() if abs(part) > 1e-12}


@pytest.mark.quick_diagonal(4)  # quick: every cell, every way to keep, every padding
@pytest.mark.parametrize("ids", [RIGHT, LEFT, GAPS], ids=["right", "left", "gaps"])
@pytest.mark.parametrize("keep", [chosen, mixed, interpolated, written, filled])
@pytest.mark.parametrize("kind", [nn.RNNCell, nn.GRUCell, nn.LSTMCell])
def test_a_batch_changes_no_examples_n_grams(kind, keep, ids):
    model = made(kind, keep)
    for b, found in enumerate(unrolled.explain_batch(model, ids, target=1)):
        alone = unrolled.explain(model, ids[b : b + 1], target=1)
        assert n_grams(found) == pytest.approx(n_grams(alone), abs=1e-12)
        assert len(found.sequences) == 1
        assert abs(found.ledger.remainder) < 1e-12


@pytest.mark.quick_diagonal(2)  # quick: both cells, both paddings
@pytest.mark.parametrize("ids", [RIGHT, LEFT], ids=["right", "left"])
@pytest.mark.parametrize("kind", [nn.GRUCell, nn.LSTMCell])
def test_padding_changes_no_n_grams(kind, ids):
    model = made(kind)
    for b, found in enumerate(unrolled.explain_batch(model, ids, target=1)):
        bare = unrolled.explain(model, ids[b : b + 1, ids[b] != 0], target=1)
        assert n_grams(found) == pytest.approx(n_grams(bare), abs=1e-12)


@pytest.mark.parametrize("ids", [RIGHT, LEFT, GAPS, APART], ids=["right", "left", "gaps", "apart"])
def test_steps_of_some_examples_or_of_none_have_the_n_grams_of_the_bare_text(ids):
    model = made(model=OfThoseLeft)
    for b, found in enumerate(unrolled.explain_batch(model, ids, target=1)):
        bare, alone = (
            unrolled.explain(model, part, target=1) for part in (ids[b : b + 1, ids[b] != 0], ids[b : b + 1])
        )
        assert found.tokens == alone.tokens == bare.tokens
        assert n_grams(found) == pytest.approx(n_grams(bare), abs=1e-12)
        assert n_grams(alone) == pytest.approx(n_grams(bare), abs=1e-12)
    account = unrolled.account(model, ids, target=1)
    torch.testing.assert_close(account.tokens, unrolled.account(made(), ids, target=1).tokens, atol=1e-12, rtol=0)


def test_an_example_whose_state_is_reset_breaks_no_n_gram_of_another():
    class Resets(Loop):
        def forward(self, ids: Tensor) -> Tensor:
            x, h = self.embed(ids), torch.zeros(len(ids), D, dtype=torch.float64)
            outputs = []
            for t in range(ids.shape[1]):
                h = self.cell(x[:, t], h * (ids[:, t, None] != 12))
                outputs.append(h)
            return self.head(torch.stack(outputs).mean(dim=0))

    model = made(model=Resets)
    for b, found in enumerate(unrolled.explain_batch(model, RIGHT, target=1)):
        alone = unrolled.explain(model, RIGHT[b : b + 1], target=1)
        assert [each.tokens for each in found.sequences] == [each.tokens for each in alone.sequences]
        assert n_grams(found) == pytest.approx(n_grams(alone), abs=1e-12)


def test_two_layers_with_a_mask_are_one_stack_whatever_the_padding():
    class Two(Loop):
        def __init__(self, kind, keep):
            super().__init__(kind, keep)
            self.upper = nn.GRUCell(D, D)

        def forward(self, ids: Tensor) -> Tensor:
            x = self.embed(ids)
            h = g = torch.zeros(len(ids), D, dtype=x.dtype)
            for t in range(ids.shape[1]):
                real = ids[:, t] != 0
                h = self.keep(real, self.cell(x[:, t], h), h)
                g = self.keep(real, self.upper(h, g), g)
            return self.head(g)

    model = made(model=Two)
    for ids in (RIGHT, LEFT):
        for b, found in enumerate(unrolled.explain_batch(model, ids, target=1)):
            bare = unrolled.explain(model, ids[b : b + 1, ids[b] != 0], target=1)
            assert n_grams(found) == pytest.approx(n_grams(bare), abs=1e-12)
            assert len(found.sequences) == 1


class Mixing(nn.Module):
    """h_t = a · tanh(W x + U h_{t-1}) + k · h_{t-1}: leaky, residual, or zoned out unit by unit."""

    def __init__(self, a, k):
        super().__init__()
        torch.manual_seed(2)
        self.a, self.k = a, k
        self.embed, self.cell, self.head = nn.Embedding(V, D), nn.RNNCell(D, D), nn.Linear(D, 2)

    def forward(self, ids: Tensor) -> Tensor:
        h = torch.zeros(len(ids), D, dtype=self.head.weight.dtype)
        for t in range(ids.shape[1]):
            h = self.a * self.cell(self.embed(ids[:, t]), h) + self.k * h
        return self.head(h)


def by_hand(model, ids, target):
    """Contributions of n-grams from i to t, shape (start, end), by a loop over starts."""
    with torch.no_grad():
        cell, time = model.cell, ids.shape[1]
        a, k = (torch.as_tensor(each, dtype=torch.float64).expand(D) for each in (model.a, model.k))
        kept, g, operators, h = [], [], [], torch.zeros(D, dtype=torch.float64)
        for t in range(time):
            own = cell.weight_ih @ model.embed(ids[0, t]) + cell.bias_ih + cell.bias_hh
            moved = cell.weight_hh @ h
            slope = torch.where(moved == 0, 0.0, (torch.tanh(own + moved) - torch.tanh(own)) / moved)
            g.append(torch.tanh(own))
            operators.append(slope[:, None] * cell.weight_hh)
            h = a * torch.tanh(own + moved) + k * h
            kept.append(k)
        found = torch.zeros(time, time, dtype=torch.float64)
        for i in range(time):
            carried = torch.zeros(D, dtype=torch.float64)
            for t in range(i, time):
                term = g[t] if t == i else operators[t] @ carried
                carried = a * term + k * carried
                found[i, t] = (model.head.weight[target] * a * k ** (time - 1 - t)) @ term
        return found


@pytest.mark.parametrize(
    ("a", "k"),
    [(0.7, 0.3), (1.0, 1.0), (torch.tensor([1.0, 0.0, 0.5, 1.0]), torch.tensor([0.0, 1.0, 0.5, 0.25]))],
    ids=["leaky", "residual", "zoneout"],
)
def test_what_a_loop_keeps_beside_the_cell_is_part_of_its_n_grams(a, k):
    model, ids = Mixing(a, k).double(), RIGHT[:1]
    found = unrolled.explain(model, ids, target=1)
    expected = by_hand(model, ids, 1)
    assert found.tokens == ("9", "13", "8", "12", "8")
    for each in found.ngrams():
        assert each.contribution == pytest.approx(float(expected[each.start, each.stop - 1]), abs=1e-12)
    assert abs(found.ledger.remainder) < 1e-12


class Turned(Mixing):
    """What is kept passes a matrix, which is no such mixture."""

    def forward(self, ids: Tensor) -> Tensor:
        h = torch.zeros(len(ids), D, dtype=self.head.weight.dtype)
        for t in range(ids.shape[1]):
            h = self.cell(self.embed(ids[:, t]), h) + h.flip(-1)
        return self.head(h)


class Attends(Mixing):
    """A context of all earlier states is added to the state."""

    def forward(self, ids: Tensor) -> Tensor:
        h, states = torch.zeros(len(ids), D, dtype=self.head.weight.dtype), []
        for t in range(ids.shape[1]):
            h = self.cell(self.embed(ids[:, t]), h)
            states.append(h)
            h = h + 0.1 * torch.stack(states).mean(dim=0)
        return self.head(h)


@pytest.mark.parametrize("made", [Mixing, Turned, Attends])
def test_without_biases_the_n_grams_of_a_token_sum_to_its_account(made):
    model = made(0.7, 0.3).double()
    with torch.no_grad():
        for bias in (model.cell.bias_ih, model.cell.bias_hh):
            bias.zero_()
    found, account = (call(model, RIGHT[:1], target=1) for call in (unrolled.explain, unrolled.account))
    assert found.tokens == ("9", "13", "8", "12", "8")
    assert len(found.sequences) == 1
    torch.testing.assert_close(found.token_scores, account.tokens[0], atol=1e-12, rtol=0)


class OfNumbers(nn.Module):
    """Reads series of numbers of several lengths, padded behind or in front, or one after another."""

    def __init__(self, how):
        super().__init__()
        torch.manual_seed(6)
        self.how, self.cell, self.head = how, nn.GRUCell(3, D), nn.Linear(D, 2)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        if self.how == "one by one":
            return torch.cat([self.run(one[None, : int(n)], n[None]) for one, n in zip(x, lengths, strict=True)])
        return self.run(x.flip(1) if self.how == "in front" else x, lengths)

    def run(self, x: Tensor, lengths: Tensor) -> Tensor:
        h, time = torch.zeros(len(x), D, dtype=x.dtype), x.shape[1]
        for t in range(time):
            real = time - t <= lengths if self.how == "in front" else t < lengths
            h = torch.where(real[:, None], self.cell(x[:, t], h), h)
        return self.head(h)


@pytest.mark.parametrize("how", ["behind", "in front", "one by one"])
def test_the_numbers_of_every_step_are_credited_however_series_are_padded(how):
    lengths = torch.tensor([5, 3, 4])
    x = torch.randn(3, 5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x = x * (torch.arange(5) < lengths[:, None])[..., None]
    model = OfNumbers(how).double()
    parts = unrolled.account(model, x, lengths, target=1).features["0"]
    for found, part, length in zip(unrolled.explain_batch(model, x, lengths, target=1), parts, lengths, strict=True):
        own = part if how == "behind" else part[:length]
        expected = own.flip(0) if how == "in front" else own
        torch.testing.assert_close(found.feature_scores, expected, atol=1e-12, rtol=0)


def test_an_initial_state_that_is_kept_is_counted_once():
    class Starts(Loop):
        def forward(self, ids: Tensor) -> Tensor:
            x, h = self.embed(ids), self.head.weight[0].expand(len(ids), -1)
            for t in range(ids.shape[1]):
                h = self.keep(ids[:, t] != 0, self.cell(x[:, t], h), h)
            return self.head(h)

    model = made(model=Starts)
    for ids in (RIGHT, LEFT, GAPS):
        for b, found in enumerate(unrolled.explain_batch(model, ids, target=1)):
            bare = unrolled.explain(model, ids[b : b + 1, ids[b] != 0], target=1)
            mine, its = found.ledger, bare.ledger  # what a mask adds to a state is a bias
            assert mine.ngrams == pytest.approx(its.ngrams, abs=1e-12)
            assert mine.initial + mine.bias == pytest.approx(its.initial + its.bias, abs=1e-12)
            assert abs(found.ledger.remainder) < 1e-12
