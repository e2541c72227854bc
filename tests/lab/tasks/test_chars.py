"""Characters in running text: bits a character, and the names that some corpora have for two of them."""

from __future__ import annotations

import math
import random

import pytest
import torch

from unrolled.lab.data.corpus import Characters, Stream
from unrolled.lab.tasks.chars import CharacterModelling, CharacterModelSettings


def pairs(count, seed):
    """Two lines, tossed: one bit in three characters."""
    lines = random.Random(seed).choices(("ab\n", "cd\n"), k=count)
    return Stream(lambda: iter(lines))


@pytest.fixture(scope="module")
def corpus():
    return Characters(name="pairs", train=pairs(300, 0), dev=pairs(60, 1), test=pairs(60, 2))


def task_for(corpus, **architecture):
    settings = {"hidden": 10, "embedding": 6, "dropout": 0.0, "bptt": 10, **architecture}
    return CharacterModelling.from_corpus(corpus, CharacterModelSettings(**settings))


def test_a_text_is_learned_to_its_entropy(corpus):
    task = task_for(corpus)
    torch.manual_seed(0)
    model, text = task.build(), task.encode(corpus.train)
    dev = task.encode(corpus.dev)

    def judged():
        with torch.no_grad():
            return task.compute_metrics(model.eval(), map(dev.select, dev.plan(4)))

    untrained = judged()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.03)
    for _ in range(6):
        state = ()
        for which in text.plan(5):
            loss = task.loss(model.train(), text.select(which), state)
            state = loss.state
            optimiser.zero_grad()
            (loss.total / loss.count).backward()
            optimiser.step()
    found = judged()
    assert found["bpc"] == pytest.approx(1 / 3, abs=0.02)
    assert found["bpc"] == pytest.approx(found["loss"] / math.log(2))
    assert untrained["bpc"] == pytest.approx(math.log2(len(task.vocabulary)), rel=0.1)
    assert set(found) == {measure.name for measure in task.metrics}


def test_every_character_counts_line_ends_too(corpus):
    task = task_for(corpus)
    text = task.encode(Stream(lambda: iter(["ab\n", "\n"])))
    assert len(text) == 4
    assert task.vocabulary.words[task.line_end] == "\n"
    assert set(task.vocabulary.words[2:]) == set("abcd\n")


def test_fields_bring_the_task_back(corpus):
    task = task_for(corpus)
    other = CharacterModelling.from_record(task.to_record(), task.architecture)
    assert other.vocabulary == task.vocabulary
    other.build().load_state_dict(task.build().state_dict())


def test_characters_are_cut_and_spelt_as_they_are(corpus):
    task = task_for(corpus)
    assert task.tokenise("ab\nd") == ("a", "b", "\n", "d")
    assert "".join(task.detokenise(task.tokenise("ab\nd"))) == "ab\nd"


def test_names_of_spaces_and_line_ends_are_those_of_the_text():
    lines = Stream(lambda: iter([["a", "_", "b", "<eos>"]]))
    task = task_for(Characters(name="named", train=lines, dev=lines, test=lines))
    assert task.tokenise("a b\n") == ("a", "_", "b", "<eos>")
    assert "".join(task.detokenise(["a", "_", "<eos>"])) == "a_\n"
    assert task.vocabulary.words[task.line_end] == "<eos>"


def test_the_default_model_of_fifty_characters_has_less_than_half_a_million_parameters():
    letters = "".join(map(chr, range(0x61, 0x61 + 50)))
    text = Stream(lambda: iter([letters]))
    corpus = Characters(name="letters", train=text, dev=text, test=text)
    model = CharacterModelling.from_corpus(corpus, CharacterModelSettings()).build()
    assert 400_000 < sum(parameter.numel() for parameter in model.parameters()) < 500_000
