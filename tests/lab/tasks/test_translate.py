"""Translation as a task: a made-up language is learned, and every switch does what it says."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

import unrolled
from toy_translation import BASE, WORDS, backwards, built, task_of
from unrolled.errors import DataError, UsageError
from unrolled.lab.data.corpus import SentencePair, Translation
from unrolled.lab.data.vocabulary import UNKNOWN, Vocabulary
from unrolled.lab.tasks.translate import END, Translate


@pytest.fixture(scope="module")
def corpus() -> Translation:
    return Translation(name="told", train=backwards(600, 0), dev=backwards(50, 1), test=backwards(50, 2))


def learned(task: Translate, corpus: Translation, epochs: int):
    model, split = built(task), task.encode(corpus.train)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    # a falling rate: at a constant one the last loss is chance, and rounding decides it
    rate = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.1, epochs)
    order = torch.Generator().manual_seed(0)
    for _ in range(epochs):
        for which in split.plan(32, order):
            loss = task.loss(model, split.select(which), ())
            optimiser.zero_grad()
            (loss.total / loss.count).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
        rate.step()
    return model.eval()


@torch.no_grad()
def judged(task: Translate, model, pairs, size=16):
    split = task.encode(pairs)
    return task.compute_metrics(model.eval(), [split.select(which) for which in split.plan(size)])


@pytest.fixture(scope="module")
def translator(corpus):
    """One that has learned the language."""
    task = task_of(corpus)
    return task, learned(task, corpus, 12)


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_language_without_a_frequent_word_is_refused(side):
    same = SentencePair(("same",), ("gleich",))
    pairs = tuple(replace(same, **{side: (f"word{number}",)}) for number in range(20))
    corpus = Translation(name="told", train=pairs, dev=pairs, test=pairs)
    with pytest.raises(DataError, match=f"no {side} word occurs 2 times in the training sentences"):
        Translate.from_corpus(corpus, Translate.Architecture())
    assert len(Translate.from_corpus(corpus, Translate.Architecture(min_count=1)).target) > END


# Learning


@pytest.mark.slow
@pytest.mark.parametrize(
    "switches", [{"attention": False, "bidirectional": False, "layers": 2}, {"encoder": "mlstm"}], ids=str
)
def test_other_networks_learn_it_too(corpus, switches):
    task = task_of(corpus, **switches)
    assert judged(task, built(task), corpus.dev)["bleu"] < 5
    assert judged(task, learned(task, corpus, 6), corpus.dev)["bleu"] > 30


@pytest.mark.slow
def test_a_language_that_is_spoken_backwards_is_learned_and_without_training_it_is_not(corpus, translator):
    task, model = translator
    before, after = judged(task, built(task), corpus.dev), judged(task, model, corpus.dev)
    assert before["bleu"] < 5 < 80 < after["bleu"]
    assert after["perplexity"] == pytest.approx(math.exp(after["loss"]))
    assert after["loss"] < 0.2 < math.log(len(WORDS)) < before["loss"]


def test_the_base_model_learns_how_a_sentence_begins(corpus):
    """One network, which hears nothing while it speaks: the first word is certain, the others are hard."""
    task = task_of(corpus, separate=False, fed=False, bidirectional=False, attention=False)
    model = learned(task, corpus, 6)
    said = task.translate(model, *_sources(task, corpus.dev))
    right = [task.target.encode(pair.target[:1]) for pair in corpus.dev]
    assert sum(words[:1] == first for words, first in zip(said, right, strict=True)) > 40


def _sources(task: Translate, pairs):
    rows = [task.encode_source(pair.source) for pair in pairs]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True), torch.tensor([len(row) for row in rows])


@pytest.mark.slow
def test_the_best_of_five_beams_is_no_worse_and_it_says_the_right_words(corpus, translator):
    task, model = translator
    source, lengths = _sources(task, corpus.test)
    right = [list(pair.target) for pair in corpus.test]
    shares = {}
    for beam in (1, 5):
        said = [task.target.decode(words) for words in task.translate(model, source, lengths, beam)]
        shares[beam] = sum(words == truth for words, truth in zip(said, right, strict=True)) / len(right)
    assert 0.8 < shares[1] <= shares[5]


# Measures


def test_the_loss_is_that_of_every_word_one_at_a_time(corpus):
    task = task_of(corpus, encoder="lstm", layers=2)
    model = built(task).double().eval()
    split = task.encode(corpus.dev[:7])
    batch = split.select(torch.arange(7))
    loss = task.loss(model, batch, ())
    total, count = 0.0, 0
    for pair in corpus.dev[:7]:
        decoding, previous = model.begin(task.encode_source(pair.source)[None]), END
        for word in [*task.target.encode(pair.target), END]:
            logits, decoding = model.step(torch.tensor([previous]), decoding)
            total -= logits[0].log_softmax(-1)[word].item()
            count, previous = count + 1, word
    assert loss.count == count == sum(len(pair.target) + 1 for pair in corpus.dev[:7])
    assert loss.total.item() == pytest.approx(total, abs=1e-9)
    assert loss.state == ()


def test_nothing_hangs_on_how_batches_are_cut(corpus, translator):
    task, model = translator
    one, other = (judged(task, model, corpus.dev, size) for size in (1, 50))
    assert one == pytest.approx(other, abs=1e-5)


def test_the_parts_of_a_batch_cost_together_what_it_costs(corpus):
    task = task_of(corpus)
    model = built(task).double()
    split = task.encode(corpus.dev)
    batch = split.select(torch.arange(9))
    whole, parts = task.loss(model, batch, ()), [task.loss(model, batch.share(rank, 2), ()) for rank in range(2)]
    assert whole.count == sum(part.count for part in parts)
    assert whole.total.item() == pytest.approx(sum(part.total.item() for part in parts), abs=1e-9)


def test_a_word_nobody_knows_is_unknown_to_the_model_and_itself_to_the_measure(corpus):
    task = task_of(corpus)
    pairs = (
        SentencePair(("ask",), ("ASK", "strange", "odd", "strange")),
        SentencePair(("eat",), ("strange", "<unk>", "<eos>", "<pad>")),
    )
    known = len(task.target)
    rows = [row.tolist() for row in task.encode(pairs).targets]
    assert rows[0][1:] == [known, known + 1, known, END]
    assert rows[1] == [known, known + 2, known + 3, known + 4, END]
    model = built(task).eval()
    batch = task.encode(pairs).select(torch.arange(2))
    with torch.no_grad():
        logits = model(batch.source, torch.tensor([[END, rows[0][0], UNKNOWN, UNKNOWN, UNKNOWN]]).expand(2, -1))[0]
    right = torch.tensor([rows[0][0], UNKNOWN, UNKNOWN, UNKNOWN, END])
    alone = task.loss(model, batch.share(0, 2), ())
    assert alone.total.item() == pytest.approx(F.cross_entropy(logits, right, reduction="sum").item(), abs=1e-5)


def test_the_signature_of_bleu_is_told():
    (about,) = (measure.description for measure in Translate.metrics if measure.name == "bleu")
    assert "tok:none" in about
    assert "smooth:exp" in about
    assert Translate.metrics[0].name == "bleu"


# Words


def test_the_source_is_lower_cased_the_target_is_not_and_rare_words_are_left_out():
    pairs = (SentencePair(("Das", "Haus"), ("The", "house")), SentencePair(("das", "Boot"), ("the", "house")))
    corpus = Translation(name="told", train=pairs, dev=pairs, test=pairs)
    task = task_of(corpus, min_count=2)
    assert task.source.words == ("<pad>", "<unk>", "das")
    assert task.target.words == ("<pad>", "<unk>", "<eos>", "house")
    assert task.encode_source(("DAS", "Haus")).tolist() == [2, UNKNOWN]


def test_a_word_that_is_called_like_the_sentences_end_does_not_end_it():
    pairs = (SentencePair(("a",), ("b", "<eos>", "c")),) * 2
    task = task_of(Translation(name="told", train=pairs, dev=pairs, test=pairs))
    assert task.target.words.count("<eos>") == 1
    assert task.encode(pairs).targets[0].tolist().count(END) == 1


def test_fields_make_the_same_task_again(corpus):
    task = task_of(corpus)
    again = Translate.from_record(json.loads(json.dumps(task.to_record())), task.architecture)
    assert (again.source, again.target) == (task.source, task.target)
    model, other = built(task), built(again)
    other.load_state_dict(model.state_dict())
    assert judged(task, model, corpus.dev[:5]) == judged(again, other, corpus.dev[:5])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source": None}, "not a vocabulary;"),
        ({"target": Vocabulary(("<pad>", "<unk>", "a")).to_record()}, "lacks '<eos>' at index 2"),
        ({"target": Vocabulary(("<pad>", "<unk>")).to_record()}, "lacks '<eos>' at index 2"),
    ],
)
def test_fields_that_were_touched_are_refused(corpus, change, message):
    task = task_of(corpus)
    with pytest.raises(DataError, match=message):
        Translate.from_record({**task.to_record(), **change}, task.architecture)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "a split has no sentence pairs; at least one"),
        ([SentencePair(("a",), ("b",)), SentencePair((), ("b",))], "pair 2 of 2 has an empty source"),
        ([SentencePair(("a",), ())], "pair 1 of 1 has an empty target; give at least one word"),
    ],
)
def test_splits_that_teach_nothing_are_refused(corpus, pairs, message):
    with pytest.raises(DataError, match=message):
        task_of(corpus).encode(pairs)


def test_every_pair_is_in_one_batch_and_lengths_are_alike(corpus):
    split = task_of(corpus).encode(corpus.train)
    for generator in (None, torch.Generator().manual_seed(0)):
        plan = split.plan(32, generator)
        assert sorted(torch.cat(plan).tolist()) == list(range(600))
        batches = [split.select(which) for which in plan]
        assert max(map(len, batches)) <= 32
        padding = sum(int((batch.source == 0).sum() + (batch.target == 0).sum()) for batch in batches)
        everything = sum(batch.source.numel() + batch.target.numel() for batch in batches)
        assert padding < 0.05 * everything


def test_both_languages_may_begin_with_vectors_and_a_deaf_decoder_has_but_one(corpus):
    task = task_of(corpus)
    found = task.embeddings(built(task))
    assert [(words, each.num_embeddings) for words, each in found] == [(w, len(w)) for w in (task.source, task.target)]
    deaf = task_of(corpus, fed=False)
    assert [words for words, _ in deaf.embeddings(built(deaf))] == [deaf.source]


# Opened


@pytest.mark.parametrize("switches", [{}, BASE, {"reverse": True, "encoder": "lstm"}], ids=str)
def test_a_word_of_the_translation_opens(corpus, switches):
    task = task_of(corpus, **switches)
    model = learned(task, corpus, 2)
    (said,) = task.translate(model, task.encode_source(("dig", "fly", "ask"))[None], torch.tensor([3]))
    reading = task.prepare(model, "dig FLY ask", at=1)
    word = ([*said, END])[1]
    logits = reading.model(*reading.inputs)
    assert int(logits[0].argmax()) == word
    assert len(reading.outputs) == logits.shape[1]
    assert reading.tokens == (("ask", "FLY", "dig") if switches.get("reverse") else ("dig", "FLY", "ask"))
    found = unrolled.explain(reading.model, *reading.inputs, target=word, tokens=reading.tokens, rnn=reading.rnn)
    assert found.ledger.logit == pytest.approx(logits[0, word].item(), abs=1e-5)
    assert abs(found.ledger.remainder) < 1e-3 < 0.01 < abs(found.ledger.ngrams)


def test_a_beginning_of_the_translation_can_be_given(translator):
    task, model = translator
    reading = task.prepare(model, "dig fly nobody ||| ASK ASK odd")
    assert reading.inputs[1].tolist() == [[END, *task.target.encode(("ASK", "ASK")), UNKNOWN]]
    assert reading.unknown == ("nobody", "odd")
    assert task.prepare(model, "dig fly nobody ||| ASK dig").unknown == ("nobody",)  # the dig of the source is known
    expected = model(task.encode_source(("dig", "fly", "nobody"))[None], reading.inputs[1])[:, 3]
    assert torch.equal(reading.model(*reading.inputs), expected)


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("", None, "the text does not have the form: sentence, or"),
        ("a ||| b ||| c", None, r"form: sentence, or: sentence \|\|\| translation so far"),
        ("dig ||| ASK", 2, "at is 2; expected 0 to 1, a token of: ASK <eos>"),
        ("dig", 99, "at is 99; expected 0 to"),
    ],
)
def test_a_text_that_cannot_be_opened_is_refused(corpus, text, at, message):
    task = task_of(corpus)
    with pytest.raises(UsageError, match=message):
        task.prepare(built(task).eval(), text, at)
