"""A first state that a model computes from words or numbers is no constant: a note says what it is computed from."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled
from unrolled.errors import StrictError
from unrolled.explanation.further_runs import first_states

D, WORDS = 6, 11
TOKENS = torch.tensor([[3, 1, 4, 1]])
IMAGE = torch.tensor([[0.5, -1.0, 2.0]], dtype=torch.float64)
OF_WORDS = (
    "the initial state is computed from vectors of embed.weight: unrolled.account says what each token contributes"
)
OF_NUMBERS = (
    "the initial state is computed from numbers of the arguments: unrolled.account says what each number contributes"
)


class OwnCell(nn.Module):
    """A step of the user's own, whose first argument is its state."""

    def __init__(self):
        super().__init__()
        self.read, self.keep = nn.Linear(D, D), nn.Linear(D, D)

    def forward(self, state, x):
        return torch.tanh(self.read(x) + self.keep(state))


class Begins(nn.Module):
    """Begins with a state that ``begin`` makes of the model, the vectors of the words, and the other arguments."""

    def __init__(self, begin, network=None):
        super().__init__()
        torch.manual_seed(0)
        self.begin, self.embed, self.image = begin, nn.Embedding(WORDS, D), nn.Linear(3, D)
        self.network = nn.GRU(D, D, batch_first=True) if network is None else network()
        self.learned, self.head = nn.Parameter(torch.randn(1, D)), nn.Linear(D, 2)
        self.double()

    def forward(self, tokens, *others):
        vectors = self.embed(tokens)
        state = self.begin(self, vectors, *others)
        if isinstance(self.network, nn.GRU):
            return self.head(self.network(vectors, state[None])[0][:, -1])
        for x in vectors.unbind(1):
            state = self.network(state, x) if isinstance(self.network, OwnCell) else self.network(x, state)
        return self.head(state)


BEGIN = {
    "words": (lambda _, vectors: torch.tanh(vectors.mean(1)), (), OF_WORDS),
    "words, detached": (lambda _, vectors: vectors[:, 0].detach() * 2.0, (), OF_WORDS),
    "an image": (lambda model, _, image: model.image(image), (IMAGE,), OF_NUMBERS),
    "a parameter": (lambda model, *_: model.learned, (), None),
    "a parameter, beside an image": (lambda model, *_: model.learned, (IMAGE,), None),
    "an argument": (lambda _, __, state: state, (IMAGE.repeat(1, 2),), None),
}


@pytest.mark.parametrize("network", [None, lambda: nn.GRUCell(D, D), OwnCell], ids=["GRU", "cell", "own"])
@pytest.mark.parametrize("name", BEGIN)
def test_a_note_says_what_the_first_state_is_computed_from(name, network):
    begin, others, note = BEGIN[name]
    found = unrolled.explain(Begins(begin, network), TOKENS, *others, target=1)
    assert abs(found.ledger.initial) > 1e-3 * abs(found.ledger.logit - found.ledger.bias)
    assert [each for each in found.notes if "initial state" in each] == ([] if note is None else [note])
    if note is not None:
        with pytest.raises(StrictError, match="initial state is computed from"):
            unrolled.explain(Begins(begin, network), TOKENS, *others, target=1, strict=True)


def looked_up(begin):
    """Explain a model that begins with a state of its ids."""

    class Model(Begins):
        def __init__(self):
            super().__init__(begin)
            self.bag, self.start = nn.EmbeddingBag(WORDS, D).double(), nn.Embedding(1, D).double()
            self.table = nn.Parameter(torch.randn(WORDS, D, dtype=torch.float64))

        def forward(self, tokens):
            return self.head(self.network(self.embed(tokens), self.begin(self, tokens)[None])[0][:, -1])

    found = unrolled.explain(Model(), TOKENS, target=1)
    assert abs(found.ledger.initial) > 1e-3 * abs(found.ledger.logit - found.ledger.bias)
    return [each for each in found.notes if "initial state" in each]


VECTORS_OF = {
    "F.embedding": (lambda model, ids: F.embedding(ids, model.table).mean(1), "table"),
    "an index": (lambda model, ids: model.table[ids[:, 0]], "table"),
    "index_select": (lambda model, ids: model.table.index_select(0, ids[:, 0]), "table"),
    "the table of the words": (lambda model, ids: F.embedding(ids, model.embed.weight).mean(1), "embed.weight"),
    "a bag": (lambda model, ids: model.bag(ids), "bag.weight"),
    "one-hot vectors": (lambda model, ids: F.one_hot(ids, WORDS).double().mean(1) @ model.table, "tokens"),
}


@pytest.mark.parametrize("name", VECTORS_OF)
def test_vectors_of_words_are_noted_however_they_are_looked_up(name):
    begin, table = VECTORS_OF[name]
    assert looked_up(begin) == [OF_WORDS.replace("embed.weight", table)]


@pytest.mark.parametrize("kind", ["start", "table"])
def test_a_vector_that_stands_in_a_table_is_a_parameter(kind):
    def begin(model, ids):
        place = torch.zeros(len(ids), dtype=torch.long)
        return model.start(place) if kind == "start" else model.table[place]

    assert looked_up(begin) == []


def test_what_another_opened_network_makes_is_no_initial_state():
    class Translator(Begins):
        def forward(self, tokens):
            state = self.encoder(self.embed(tokens))[1][0]
            return self.head(self.network(self.embed(tokens[:, :2]), state[None])[0][:, -1])

    model = Translator(None)
    model.encoder = nn.GRU(D, D, batch_first=True).double()
    assert not unrolled.explain(model, TOKENS, target=1).notes
    assert unrolled.explain(model, TOKENS, target=1, rnn="network").notes == (OF_WORDS,)  # the encoder's


SECOND = {
    "an image": (lambda model, _, image, __: model.image(image), [OF_NUMBERS]),
    "a parameter": (lambda model, *_: model.learned, []),
    "the first call's state, weighed by an image": (lambda _, __, image, state: state * image.mean(), []),
    "words": (lambda _, vectors, *__: vectors.mean(1), [OF_WORDS]),
}


@pytest.mark.parametrize("network", [None, lambda: nn.GRUCell(D, D), OwnCell], ids=["GRU", "cell", "own"])
@pytest.mark.parametrize("name", SECOND)
def test_a_later_call_that_begins_anew_is_looked_at_as_the_first_one_is(name, network):
    """The controls are a learned state, and one that continues the first call's."""
    begin, notes = SECOND[name]

    class Twice(Begins):
        def read(self, vectors, state):
            if isinstance(self.network, nn.GRU):
                return self.network(vectors, state[None])[1][0]
            for x in vectors.unbind(1):
                state = self.network(state, x) if isinstance(self.network, OwnCell) else self.network(x, state)
            return state

        def forward(self, tokens, image):
            vectors = self.embed(tokens)
            first = self.read(vectors, self.learned)
            return self.head(first + self.read(vectors.flip(1), begin(self, vectors, image, first)))

    found = unrolled.explain(Twice(None, network), TOKENS, IMAGE, target=1)
    assert abs(found.ledger.initial) > 1e-3 * abs(found.ledger.logit - found.ledger.bias)
    assert [each for each in found.notes if "initial state" in each] == notes


class Decays(nn.Module):
    """A step that multiplies its state by a factor, and may add what it reads."""

    def __init__(self, adds):
        super().__init__()
        self.rate, self.adds = nn.Linear(D, D), adds

    def forward(self, x, h):
        return torch.sigmoid(self.rate(x)) * h + self.adds * x


@pytest.mark.parametrize("expansion", ["secant", "operating"])
def test_a_note_says_that_the_initial_state_holds_all_where_tokens_only_multiply_it(expansion):
    """The judge is the loop: from zeros it gives zeros. A step that adds a little is the control."""
    model = Begins(lambda model, *_: model.learned, lambda: Decays(0.0))
    found = unrolled.explain(model, TOKENS, target=1, expansion=expansion)
    state = torch.zeros(1, D, dtype=torch.float64)
    for x in model.embed(TOKENS).unbind(1):
        state = model.network(x, state)
    assert not state.any()
    assert not found.token_scores.any()
    (note,) = (each for each in found.notes if "initial state" in each)
    assert note.startswith("the initial state holds all that the network contributes")
    adding = Begins(lambda model, *_: model.learned, lambda: Decays(1e-3))
    assert not [n for n in unrolled.explain(adding, TOKENS, target=1, expansion=expansion).notes if "holds all" in n]


def test_what_that_note_names_divides_the_products():
    model = Begins(lambda model, *_: model.learned, lambda: Decays(0.0))
    shares = unrolled.explain(model, TOKENS, target=1, expansion="shares")
    assert not [each for each in shares.notes if "initial state" in each]
    assert float(shares.token_scores.abs().min()) > 1e-4
    assert float(unrolled.account(model, TOKENS, target=1).texts["0"].abs().min()) > 1e-4


def test_where_shares_add_nothing_either_the_note_does_not_name_them():
    class Decayed(Decays):
        def forward(self, x, h):
            return torch.exp(-self.rate(x).abs()) * h

    model = Begins(lambda model, *_: model.learned, lambda: Decayed(0.0))
    for expansion, named in (("secant", True), ("shares", False), ("shares(1)", False)):
        found = unrolled.explain(model, TOKENS, target=1, expansion=expansion)
        (note,) = (each for each in found.notes if "initial state" in each)
        assert note.startswith("the initial state holds all that the network contributes")
        assert ("the expansion shares" in note) == named


class LearnedStart(nn.Module):
    """A loop over a cell from a learned state, which the output reads by the states of all steps."""

    def __init__(self):
        super().__init__()
        self.embed, self.cell, self.head = nn.Embedding(9, 3), nn.GRUCell(3, 4), nn.Linear(4, 2)
        self.start = nn.Parameter(torch.randn(1, 4))

    def forward(self, tokens):
        h, states = self.start.expand(len(tokens), -1), []
        for x in self.embed(tokens).unbind(1):
            h = self.cell(x, h)
            states.append(h)
        return self.head(sum(states))


def test_the_gradients_of_first_states_grow_as_the_number_of_calls_does(monkeypatch):
    depends, asked = first_states.depends, []

    def counted(results, sources):
        asked.append(len(sources))
        return depends(results, sources)

    monkeypatch.setattr(first_states, "depends", counted)
    model, sums = LearnedStart().eval(), []
    for time in (20, 40, 60):
        asked.clear()
        unrolled.explain(model, torch.randint(0, 9, (1, time)), target=1, max_order=2)
        sums.append(sum(asked))
    assert sums[0] > 20
    assert sums[2] - sums[1] <= sums[1] - sums[0] + 20


def test_a_first_state_in_a_tuple_of_arguments_is_not_computed():
    class Actor(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.LSTMCell(4, 3)

        def forward(self, given):
            seen, (h, c) = given
            return self.cell(seen, (h, c))[0]

    given = (torch.ones(1, 4), (torch.ones(1, 3), torch.ones(1, 3)))
    assert not any("initial state is computed" in note for note in unrolled.explain(Actor(), given, target=1).notes)
