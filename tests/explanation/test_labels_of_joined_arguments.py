"""Ids of several arguments that a model joins and looks up at once keep their words, in the order of the arguments."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import ShapeError

FIRST, SECOND = torch.tensor([[7, 3, 9, 4], [6, 2, 8, 5]]), torch.tensor([[11, 14, 12], [10, 15, 13]])
WORDS = [["seven", "three", "nine", "four", "eleven", "fourteen", "twelve"]]
WORDS += [["six", "two", "eight", "five", "ten", "fifteen", "thirteen"]]
STARTS = 1


class Joins(nn.Module):
    """Reads a text that is made of two arguments."""

    def __init__(self, join, networks=1):
        super().__init__()
        torch.manual_seed(0)
        self.join, self.embed, self.head = join, nn.Embedding(16, 6), nn.Linear(5, 2)
        self.rnns = nn.ModuleList(nn.GRU(6, 5, batch_first=True) for _ in range(networks))
        self.double()

    def forward(self, one, other):
        vectors = self.embed(self.join(one, other))
        return self.head(sum(rnn(vectors)[0][:, -1] for rnn in self.rnns))


def between(one, other):
    return torch.cat([one, torch.full_like(one[:, :1], STARTS), other], dim=1)


JOINS = {
    "one after the other": lambda one, other: torch.cat([one, other], dim=1),
    "the other first": lambda one, other: torch.cat([other, one], dim=1),
    "with a separator": between,
    "backwards": lambda one, other: torch.cat([one, other], dim=1).flip(1),
    "in turns": lambda one, other: torch.stack([one[:, :3], other], dim=2).flatten(1),
}


@pytest.mark.parametrize("networks", [1, 2])
@pytest.mark.parametrize("way", JOINS)
def test_words_of_all_arguments_stand_where_their_ids_are_read(way, networks):
    model = Joins(JOINS[way], networks)
    read = model.join(FIRST, SECOND)[:1]
    word = dict(zip(torch.cat([FIRST, SECOND], dim=1)[0].tolist(), WORDS[0], strict=True))
    expected = tuple(word.get(number, f"‹{number}›") for number in read[0].tolist())
    found = unrolled.explain(model, FIRST[:1], SECOND[:1], target=1, tokens=WORDS[0])
    assert {each.tokens for each in found.sequences} == {expected}
    by_id = unrolled.explain(model, FIRST[:1], SECOND[:1], target=1)
    assert {each.tokens for each in by_id.sequences} == {tuple(map(str, read[0].tolist()))}


@pytest.mark.parametrize("way", ["one after the other", "the other first", "with a separator"])
def test_every_text_of_a_batch_has_its_own_words(way):
    model = Joins(JOINS[way])
    for found, alone in zip(
        unrolled.explain_batch(model, FIRST, SECOND, target=1, tokens=WORDS),
        (unrolled.explain(model, FIRST[[k]], SECOND[[k]], target=1, tokens=WORDS[k]) for k in range(2)),
        strict=True,
    ):
        assert found.tokens == alone.tokens
        assert "‹1›" in found.tokens or len(set(found.tokens)) == 7


def test_words_of_one_argument_may_be_given_alone_if_they_fit_no_other():
    for networks in (1, 2):
        model = Joins(JOINS["one after the other"], networks)
        expected = ("‹7›", "‹3›", "‹9›", "‹4›", *WORDS[0][4:])
        found = unrolled.explain(model, FIRST[:1], SECOND[:1], target=1, tokens=WORDS[0][4:])
        assert {each.tokens for each in found.sequences} == {expected}
    expected = [(*WORDS[b][:4], *(f"‹{k}›" for k in SECOND[b].tolist())) for b in range(2)]
    alone = unrolled.explain_batch(Joins(model.join), FIRST, SECOND, target=1, tokens=[each[:4] for each in WORDS])
    assert [each.tokens for each in alone] == expected


@pytest.mark.parametrize("networks", [1, 2])
def test_padding_of_one_of_the_arguments_needs_no_word(networks):
    model = Joins(lambda one, other: torch.cat([one[one != 0][None], other], dim=1), networks)
    padded = torch.cat([FIRST[:1], torch.zeros(1, 2, dtype=torch.long)], dim=1)
    for words in (WORDS[0], [*WORDS[0][:4], "-", "-", *WORDS[0][4:]]):
        found = unrolled.explain(model, padded, SECOND[:1], target=1, tokens=words)
        assert {each.tokens for each in found.sequences} == {tuple(WORDS[0])}


@pytest.mark.parametrize("networks", [1, 2])
def test_padding_that_is_read_between_the_arguments_needs_no_word(networks):
    model, padded = Joins(JOINS["one after the other"], networks), torch.tensor([[7, 3, 9, 0]])
    texts = (padded, SECOND[:1])
    for words, between_them in ((WORDS[0][:3], "‹0›"), ([*WORDS[0][:3], "-"], "-")):
        found = unrolled.explain(model, *texts, target=1, tokens=[*words, *WORDS[0][4:]])
        assert {each.tokens for each in found.sequences} == {(*WORDS[0][:3], between_them, *WORDS[0][4:])}
    with pytest.raises(ShapeError, match="5 tokens"):  # the control: of a word of a text nothing is guessed
        unrolled.explain(model, *texts, target=1, tokens=[*WORDS[0][:2], *WORDS[0][4:]])


@pytest.mark.parametrize("networks", [1, 2])
def test_words_that_are_as_many_as_the_tokens_of_all_arguments_are_not_those_of_one_with_its_padding(networks):
    model, one = Joins(JOINS["one after the other"], networks), torch.tensor([[7, 3, 9, 0]])
    words = [*WORDS[0][:3], "eleven"]
    for other, last in (
        (torch.tensor([[11, 0]]), "eleven"),
        (torch.tensor([[11, 14]]), "‹11›"),
    ):  # the control: five tokens
        found = unrolled.explain(model, one, other, target=1, tokens=words)
        assert {each.tokens[4] for each in found.sequences} == {last}


def test_a_token_for_each_text_is_a_column_of_it():
    model, kinds = Joins(lambda one, kind: torch.cat([kind[:, None], one], dim=1)), torch.tensor([12, 13])
    texts = [each[:4] for each in WORDS]
    alone = unrolled.explain_batch(model, FIRST, kinds, target=1, tokens=texts)
    assert [each.tokens for each in alone] == [("‹12›", *texts[0]), ("‹13›", *texts[1])]
    both = unrolled.explain_batch(model, FIRST, kinds, target=1, tokens=[[*each, "kind"] for each in texts])
    assert [each.tokens for each in both] == [("kind", *each) for each in texts]


def test_words_of_one_argument_are_not_put_at_those_of_another_of_the_same_length():
    model = Joins(JOINS["one after the other"])
    with pytest.raises(ShapeError, match="3 tokens for a sequence of 6"):
        unrolled.explain(model, FIRST[:1, :3], SECOND[:1], target=1, tokens=WORDS[0][:3])


def test_an_account_has_the_words_at_the_same_ids():
    model = Joins(JOINS["the other first"])
    account = unrolled.account(model, FIRST[:1], SECOND[:1], target=1, tokens=WORDS[0])
    labels = [(row["source"], row["label"]) for row in account.to_records() if row["kind"] == "token"]
    assert labels == [*(("0", word) for word in WORDS[0][:4]), *(("1", word) for word in WORDS[0][4:])]
