"""Ids that a model makes of those of several tokens name the steps that read them, and no token of an argument does."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled

SKILLS, ANSWERS = torch.tensor([[3, 1, 4, 2, 0]]), torch.tensor([[0, 1, 1, 0, 1]])
OTHERS = torch.tensor([[2, 1, 0, 2, 1]])
WORDS = "add carry divide count zero".split()


class Tracing(nn.Module):
    """Traces knowledge: reads rows of a table at ids that it makes of questions and answers."""

    def __init__(self, made):
        super().__init__()
        torch.manual_seed(0)
        self.made, self.embed, self.head = made, nn.Embedding(60, 4), nn.Linear(5, 2)
        self.rnn = nn.GRU(4, 5, batch_first=True)
        self.double()

    def forward(self, *given):
        return self.head(self.rnn(self.embed(self.made(*given)))[0][:, -1])


def in_place(skills, answers, others):
    made = skills.clone()
    made += 5 * answers
    made += 10 * others
    return made


MADE = {
    "of a question and an answer": lambda skills, answers, _: skills + 5 * answers,
    "of three arguments": lambda skills, answers, others: skills + 5 * answers + 10 * others,
    "of three, in another order": lambda skills, answers, others: 10 * others + (5 * answers + skills),
    "in place": in_place,
    "of trigrams": lambda skills, *_: (skills[:, 2:] + 5 * skills[:, 1:-1] + 25 * skills[:, :-2]) % 59,
    "of a sum, behind a mask": lambda skills, answers, others: (skills + 5 * others) * answers,
    "by a product": lambda skills, answers, others: skills * others + answers,
    "of a sum, moved": lambda skills, _, others: (skills + 5 * others).roll(1, dims=1),
}


@pytest.mark.parametrize("form", MADE)
def test_a_step_is_named_by_the_id_that_was_looked_up(form):
    model, looked_up = Tracing(MADE[form]), []
    model.embed.register_forward_pre_hook(lambda _, given: looked_up.append(given[0]))
    with torch.no_grad():
        model(SKILLS, ANSWERS, OTHERS)
    (ids,) = looked_up
    found = unrolled.explain(Tracing(MADE[form]), SKILLS, ANSWERS, OTHERS, target=1)
    assert found.tokens == tuple(map(str, ids[0].tolist()))
    assert not found.notes or "times as large" in found.notes[0]


def test_examples_of_a_batch_have_the_names_that_they_have_alone():
    model = Tracing(MADE["of three arguments"])
    given = [torch.cat([each, each.flip(1)]) for each in (SKILLS, ANSWERS, OTHERS)]
    for b, each in enumerate(unrolled.explain_batch(model, *given, target=1)):
        assert each.tokens == unrolled.explain(model, *(one[b : b + 1] for one in given), target=1).tokens


def test_words_that_were_given_stand_in_their_order_with_a_note():
    found = unrolled.explain(Tracing(MADE["of three arguments"]), SKILLS, ANSWERS, OTHERS, target=1, tokens=WORDS)
    assert found.tokens == tuple(WORDS)
    assert any("in the order in which they were given" in note for note in found.notes)


def test_an_id_of_one_token_has_the_name_of_that_token():
    model = Tracing(lambda skills: (skills + 7) * 2)
    assert unrolled.explain(model, SKILLS, target=1).tokens == tuple(map(str, SKILLS[0].tolist()))


def test_ids_that_leave_torch_name_no_step():
    model = Tracing(lambda skills, answers: torch.tensor((skills + 5 * answers).tolist()))
    assert unrolled.explain(model, SKILLS, ANSWERS, target=1).tokens == ("x0", "x1", "x2", "x3", "x4")


def test_a_text_of_unknown_words_alone_takes_no_names_from_the_other_texts():
    """The judge is each text alone; the unknown words have the id of <unk>."""
    model = Tracing(lambda ids: torch.where(ids > 9, torch.full_like(ids, 7), ids))
    texts = torch.tensor([[20, 31, 12], [4, 15, 2], [5, 6, 3]])
    found = unrolled.explain_batch(model, texts, target=1)
    for each, ids in zip(found[1:], texts[1:], strict=True):
        assert each.tokens == unrolled.explain(model, ids[None], target=1).tokens
        assert not any("could not be found" in note for note in each.notes)
    assert found[0].tokens == ("7", "7", "7")
    longer = torch.tensor([[20, 31, 12, 13], [4, 15, 2, 3]])
    words = [["a", "b", "c", "d"], ["e", "f", "g", "h"]]
    for rows in (slice(None), slice(None, None, -1)):
        ids, given = longer[[0, 1][rows]], words[rows]
        named = {each.tokens for each in unrolled.explain_batch(model, ids, target=1, tokens=given)}
        assert named == {("‹7›",) * 4, ("e", "‹7›", "g", "h")}
