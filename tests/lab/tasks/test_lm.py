"""Words in running text: what is counted, that a memory is learned where one is needed, and what comes next."""

from __future__ import annotations

import math
import random

import pytest
import torch

from unrolled.errors import DataError, UsageError
from unrolled.lab.data.corpus import Stream, Words
from unrolled.lab.tasks.lm import LanguageModelling, WordModelSettings
from unrolled.lab.training.task import Task


def stream(lines):
    return Stream(lambda: iter(lines))


def echoes(count, seed):
    """A colour, tossed; a word; the same colour again: one bit in four words, and in every word for who forgets."""
    coin = random.Random(seed)
    return stream([[colour, "is", colour, "<eos>"] for colour in coin.choices(("red", "blue"), k=count)])


@pytest.fixture(scope="module")
def corpus():
    return Words(name="echoes", train=echoes(300, 0), dev=echoes(50, 1), test=echoes(50, 2))


def task_for(corpus, **architecture):
    settings = {"hidden": 12, "embedding": 12, "dropout": 0.0, "bptt": 10, **architecture}
    return LanguageModelling.from_corpus(corpus, WordModelSettings(**settings))


def learned(task, corpus, epochs=25, batch=5):
    torch.manual_seed(0)
    model, text, generator = task.build(), task.encode(corpus.train), torch.Generator().manual_seed(0)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.03)
    for _ in range(epochs):
        state = ()
        for which in text.plan(batch, generator):
            loss = task.loss(model, text.select(which), state)
            state = loss.state
            optimiser.zero_grad()
            (loss.total / loss.count).backward()
            optimiser.step()
    return model.eval()


def judged(task, model, lines, size=3):
    text = task.encode(lines)
    with torch.no_grad():
        return task.compute_metrics(model, map(text.select, text.plan(size)))


@pytest.mark.slow
def test_a_text_is_learned_to_its_entropy_by_what_remembers_and_not_by_what_does_not(corpus):
    task = task_for(corpus)
    found = judged(task, learned(task, corpus), corpus.dev)
    assert found["perplexity"] == pytest.approx(2 ** (1 / 4), rel=0.03)
    forgetful = task_for(corpus, encoder="window", options={"window": 1})
    assert judged(forgetful, learned(forgetful, corpus), corpus.dev)["perplexity"] == pytest.approx(2, rel=0.03)


def test_perplexity_is_exp_of_nats_and_two_to_the_bits(corpus):
    task = task_for(corpus)
    torch.manual_seed(0)
    found = judged(task, task.build().eval(), corpus.dev)
    assert set(found) == {measure.name for measure in task.metrics}
    assert found["perplexity"] == pytest.approx(math.exp(found["loss"])) == pytest.approx(2 ** found["bits"])
    assert found["perplexity"] == pytest.approx(len(task.vocabulary), rel=0.1)
    assert task.metrics_from_loss(1000.0)["perplexity"] == math.inf
    assert not task.metrics[0].higher_is_better


def test_every_word_counts_line_ends_and_unknown_ones_too(corpus):
    task = task_for(corpus)
    model = task.build().eval()
    text = task.encode(stream([["red", "is", "green", "<eos>"], ["<eos>"]]))
    assert len(text) == 5
    losses = [task.loss(model, text.select(which), ()) for which in text.plan(2)]
    assert sum(loss.count for loss in losses) == 5
    assert text.indices.tolist()[2] == 1


@pytest.mark.parametrize("encoder", ["lstm", "gru", "mlstm", "mvma_g"])
def test_evaluation_does_not_depend_on_how_wide_windows_are(corpus, encoder):
    found = []
    for bptt in (1, 7, 1000):
        task = task_for(corpus, encoder=encoder, bptt=bptt)
        torch.manual_seed(0)
        model = task.build().double().eval()
        for parameter in model.parameters():
            parameter.data.mul_(3)
        found.append(judged(task, model, corpus.dev)["loss"])
    assert found[1] == pytest.approx(found[0], abs=1e-12)
    assert found[2] == pytest.approx(found[0], abs=1e-12)


def test_without_a_state_to_carry_it_does(corpus):
    losses = []
    for bptt in (2, 50):
        task = task_for(corpus, encoder="window", bptt=bptt)
        torch.manual_seed(0)
        model = task.build().double().eval()
        for parameter in model.parameters():
            parameter.data.mul_(3)
        losses.append(judged(task, model, corpus.dev)["loss"])
    assert abs(losses[0] - losses[1]) > 1e-6


def test_a_text_begins_as_though_a_line_had_ended(corpus):
    task = task_for(corpus)
    assert task.vocabulary.words[task.line_end] == "<eos>"
    text = task.encode(corpus.dev)
    first = text.select(text.plan(1)[0])
    assert first.tokens[0, 0] == task.line_end
    without = Words(name="x", train=stream([["a", "b"]]), dev=stream([["a"]]), test=stream([["a"]]))
    assert task_for(without).line_end == 1


def test_fields_bring_the_task_back(corpus):
    task = task_for(corpus, tied=False)
    other = LanguageModelling.from_record(task.to_record(), task.architecture)
    assert other.vocabulary == task.vocabulary
    other.build().load_state_dict(task.build().state_dict())
    with pytest.raises(DataError, match="not a vocabulary;"):
        LanguageModelling.from_record({}, task.architecture)


def test_the_vocabulary_may_be_capped():
    text = stream([["a", "a", "a", "b", "b", "c", "<eos>"]])
    corpus = Words(name="letters", train=text, dev=text, test=text)
    words = [task_for(corpus, **cap).vocabulary.words[2:] for cap in ({}, {"most": 2}, {"min_count": 2})]
    assert words == [("a", "b", "<eos>", "c"), ("a", "b"), ("a", "b")]


def test_a_count_that_no_word_reaches_is_refused():
    """Of unknown words alone a model would have a low perplexity that says nothing."""
    text = stream([["rare", "<eos>"], ["often", "<eos>"], ["often", "<eos>"]])
    corpus = Words(name="words", train=text, dev=text, test=text)
    with pytest.raises(DataError, match="no word occurs 3 times in the training text; give more text, or a smaller"):
        task_for(corpus, min_count=3)
    assert task_for(corpus, min_count=2).vocabulary.words[2:] == ("<eos>", "often")


def test_a_text_of_nothing_is_refused(corpus):
    with pytest.raises(DataError, match="no tokens; expected at least one"):
        task_for(corpus).encode(stream([]))


def test_what_is_typed_is_cut_as_the_text_was(corpus):
    task = task_for(corpus)
    assert task.tokenise("red is\nblue") == ("red", "is", "<eos>", "blue")
    assert task.tokenise("<eos> that isn't red") == ("<eos>", "that", "is", "n't", "red")
    assert task.tokenise(" ") == ()


def test_words_are_spelt_with_spaces_between_and_a_line_each(corpus):
    assert "".join(task_for(corpus).detokenise(["red", "is", "<eos>", "<eos>", "blue"])) == "red is\n\nblue"


def test_a_reading_ends_where_the_next_word_is_asked_for(corpus):
    task = task_for(corpus)
    model = task.build().double().eval()
    reading = task.prepare(model, "red is green", at=1)
    assert reading.tokens == ("red", "is")
    assert reading.outputs == task.vocabulary.words
    expected = model(torch.tensor([task.vocabulary.encode(["red", "is", "green"])]))[:, 1]
    torch.testing.assert_close(reading.model(*reading.inputs), expected)
    assert task.prepare(model, "red is green").unknown == ("green",)
    with pytest.raises(UsageError, match="at is 3; expected 0 to 2"):
        task.prepare(model, "red is green", at=3)


def test_it_is_a_task_of_the_zoo():
    from unrolled.lab.tasks import TASKS

    assert TASKS.get("lm") is LanguageModelling
    assert issubclass(LanguageModelling, Task)
