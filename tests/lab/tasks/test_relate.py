from __future__ import annotations

import json
import random

import pytest
import torch
from torch.nn.functional import cross_entropy

import unrolled
from unrolled.errors import DataError, UsageError
from unrolled.lab.data.corpus import Classification, Example, Relations
from unrolled.lab.data.tokenise import tokenise_marked
from unrolled.lab.metrics.relation_f1 import relation_f1
from unrolled.lab.models.settings import PooledSettings
from unrolled.lab.tasks.classify import Classify
from unrolled.lab.tasks.relate import Relate, RelateSettings

LABELS = ("Cause-Effect(e1,e2)", "Cause-Effect(e2,e1)", "Other")
SMALL = {"embedding": 6, "hidden": 8, "dropout": 0.0, "word_dropout": 0.0}


def texts(count, seed):
    """Who makes whom: told by the verb, and by which of the two is marked first."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        one, other = draw.sample(("fire", "smoke", "rain", "mud"), 2)
        first, second = ("e1", "e2") if draw.random() < 0.5 else ("e2", "e1")
        verb, label = ("makes", int(first == "e2")) if draw.random() < 0.7 else ("knows", 2)
        text = f"the <{first}>{one}</{first}> {verb} <{second}>{other}</{second}>"
        found.append(Example(tokenise_marked(text), label))
    return tuple(found)


CORPUS = Relations(name="told", labels=LABELS, train=texts(80, 0), dev=texts(30, 1), test=texts(30, 2))
PLAIN = Classification(name="plain", labels=LABELS, train=CORPUS.train, dev=CORPUS.dev, test=CORPUS.test)


def made(**parts):
    return Relate.from_corpus(CORPUS, RelateSettings(**SMALL | parts))


def without_markers(examples):
    return tuple(
        Example(tuple(token for token in each.tokens if not token.startswith("<")), each.label) for each in examples
    )


def test_it_learns_the_relation_and_its_direction(learn, judge):
    task = made()
    scores = judge(task, learn(task, CORPUS.train), CORPUS.test)
    assert scores["f1"] == scores["accuracy"] == 1.0
    # the control: without the markers nothing tells the direction
    blind = judge(task, learn(task, without_markers(CORPUS.train)), without_markers(CORPUS.test))
    assert blind["f1"] < 0.8


def test_a_split_without_a_relation_is_refused_before_the_training():
    task, others = made(), [each for each in CORPUS.dev if each.label == LABELS.index("Other")]
    with pytest.raises(DataError, match=f"none of {len(others)} texts has a relation other than Other"):
        task.encode(others)
    assert len(task.encode([*others, Example(CORPUS.dev[0].tokens, 0)])) == len(others) + 1


def test_its_first_measure_is_the_official_score_of_what_it_says(learn, judge):
    task = made()
    model = learn(task, CORPUS.train, steps=6)
    batch = task.encode(CORPUS.dev).select(torch.arange(30))
    with torch.no_grad():
        logits = model(batch.tokens, batch.lengths)
    said = [LABELS[label] for label in logits.argmax(-1).tolist()]
    true = [LABELS[each.label] for each in CORPUS.dev]
    scores = judge(task, model, CORPUS.dev, 4)
    assert task.metrics[0].name == "f1"
    assert scores["f1"] == pytest.approx(relation_f1(true, said))
    assert scores["loss"] == pytest.approx(cross_entropy(logits, batch.labels).item(), rel=1e-5)
    assert 0 < scores["f1"] < 1
    assert scores["f1"] != pytest.approx(scores["accuracy"])


@pytest.mark.parametrize(
    "task", [made(), Classify.from_corpus(PLAIN, PooledSettings(**SMALL))], ids=["relate", "classify"]
)
def test_whole_texts(task, learn, judge, cost):
    model = learn(task, CORPUS.train, steps=3).double()
    total, count = cost(task, model, CORPUS.dev, 30)
    assert count == 30
    assert (total, count) == pytest.approx(cost(task, model, CORPUS.dev[::-1], 1))
    assert judge(task, model, CORPUS.dev) == pytest.approx(judge(task, model, CORPUS.dev[::-1], 7))
    alone = 0.0
    for each in CORPUS.dev:
        tokens = torch.tensor([task.vocabulary.encode(each.tokens)])
        alone -= model(tokens)[0].log_softmax(-1)[each.label].item()
    assert total == pytest.approx(alone)
    again = type(task).from_record(json.loads(json.dumps(task.to_record())), task.architecture)
    assert (again.vocabulary, again.labels) == (task.vocabulary, task.labels)
    again.build().load_state_dict(model.state_dict())
    ((vocabulary, embedding),) = task.embeddings(model)
    assert embedding.weight.shape == (len(vocabulary), 6)


@pytest.mark.parametrize("pooling", ["last", "mean", "max", "attention"])
def test_gradient_reaches_every_parameter(pooling):
    task = made(pooling=pooling)
    model, split = task.build(), task.encode(CORPUS.train)
    task.loss(model, split.select(torch.arange(80)), ()).total.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"labels": ["a", "b"]}, "not a vocabulary"),
        ({"vocabulary": made().vocabulary.to_record()}, "labels is None; expected a list of names"),
        ({"vocabulary": made().vocabulary.to_record(), "labels": ["a", "a"]}, "labels contains a name twice"),
    ],
)
def test_fields_that_were_touched_are_refused(fields, message):
    with pytest.raises(DataError, match=message):
        Relate.from_record(fields, RelateSettings(**SMALL))


def test_labels_that_training_did_not_know_are_refused():
    with pytest.raises(DataError, match="text 2 has label 3; expected 0 to 2, for: Cause-Effect"):
        made().encode([CORPUS.dev[0], Example(("a",), 3)])
    with pytest.raises(DataError, match="no examples"):
        made().encode([])


def test_what_it_says_of_a_typed_text_is_accounted_for(learn):
    task = made()
    model = learn(task, CORPUS.train).double()
    reading = task.prepare(model, "the <e1>fire</e1> makes <e2>ash</e2>")
    assert reading.tokens == ("the", "<e1>", "fire", "</e1>", "makes", "<e2>", "ash", "</e2>")
    assert (reading.unknown, reading.outputs) == (("ash",), LABELS)
    found = unrolled.explain(reading.model, *reading.inputs, target=0, tokens=reading.tokens)
    assert abs(found.ledger.remainder) < 1e-6
    assert found.ledger.logit == pytest.approx(reading.model(*reading.inputs)[0, 0].item())
    with pytest.raises(DataError, match="expected <e1>"):
        task.prepare(model, "the fire makes ash")
    with pytest.raises(UsageError, match=r"at is 0, but the task .* has one output"):
        task.prepare(model, "the <e1>fire</e1> makes <e2>ash</e2>", at=0)
    with pytest.raises(UsageError, match="the sentence is empty"):
        Classify.from_corpus(PLAIN, PooledSettings(**SMALL)).prepare(model, " ")
