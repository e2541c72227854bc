"""What a loaded run is used for, against its model called by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

import unrolled
from unrolled.errors import DataError, ShapeError, UnknownNameError, UsageError
from unrolled.lab.data.corpus import Classification, Example, RatedText, Regression
from unrolled.lab.models.settings import PooledSettings
from unrolled.lab.tasks.classify import Classify
from unrolled.lab.tasks.regress import Regress
from unrolled.lab.tasks.relate import Relate, RelateSettings
from unrolled.lab.tasks.tag import Tag
from unrolled.lab.training.data_settings import DataSettings
from unrolled.lab.training.engine import train
from unrolled.lab.training.settings import TrainingSettings
from unrolled.lab.training.trained_model import TrainedModel

TEXTS = ["a good film", "not a bad film .", "bad", "it is good , not bad", "Never seen words"]
SETTINGS = TrainingSettings(epochs=2, lr=0.05, device="cpu", seed=1)
SMALL = PooledSettings(hidden=6, embedding=5, pooling="mean")


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = ("a", "good", "bad", "film", "not", "it", "is", ".", ",")
    examples = tuple(Example(words[k : k + 4], k % 3) for k in range(9))
    corpus = Classification(
        name="told", labels=("negative", "neutral", "positive"), train=examples, dev=examples, test=examples
    )
    task = Classify.from_corpus(corpus, SMALL)
    folder = tmp_path_factory.mktemp("runs") / "classifier"
    return train(task, corpus, SETTINGS, folder, data=DataSettings(data=("told",))).folder


def by_hand(run, text):
    with torch.no_grad():
        return run.model(torch.tensor([run.task.vocabulary.encode(run.task.tokenise(text))]))[0]


def test_predictions_are_those_of_the_model_one_text_at_a_time(classifier):
    run = unrolled.load(classifier)
    logits = torch.stack([by_hand(run, text) for text in TEXTS])
    labels = [run.task.labels[k] for k in logits.argmax(dim=1).tolist()]
    assert run.predict(TEXTS).tolist() == labels
    np.testing.assert_allclose(run.predict_proba(TEXTS), logits.double().softmax(dim=1).numpy(), atol=1e-6)
    np.testing.assert_allclose(run.predict_proba(TEXTS).sum(axis=1), 1)
    assert run.score(TEXTS, labels) == 1
    wrong = [run.task.labels[(run.task.labels.index(label) + 1) % 3] for label in labels]
    assert run.score(TEXTS, [*labels[:2], *wrong[2:]]) == pytest.approx(0.4)
    assert not run.model.training


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("bad", r"is the string 'bad'; expected a list of {name}: \['bad'\]"),
        (dict.fromkeys(("bad", "good"), 1), "is a dict; expected a list of {name}, in the order of the texts$"),
        ({"bad", "good"}, "is a set; expected a list of {name}"),
        (frozenset({"bad"}), "is a frozenset; expected a list of {name}"),
        (map(str, ("bad", "good")), r"is a map; .*: list\(\) makes one of it"),
        (None, "is a NoneType; expected a list of {name}"),
        (3, "is an int; expected a list of {name}"),
        (
            np.array([["bad"], ["good"]]),
            r"is an ndarray of shape \(2, 1\); expected a list of {name}, such as one column",
        ),
        (np.array("bad"), r"is an ndarray of shape \(\); expected a list of {name}"),
    ],
)
def test_what_has_no_text_or_label_in_each_place_is_refused(classifier, given, message):
    run = unrolled.load(classifier)
    calls = {
        "texts": (run.predict, run.predict_proba, run.explain_batch, lambda each: run.score(each, ["negative"] * 2))
    }
    calls["labels"] = (lambda each: run.score(["bad", "good"], each),)
    for name, several in calls.items():
        for call in several:
            with pytest.raises(UsageError, match=f"^{name} {message.format(name=name)}"):
                call(given)


def test_a_text_that_cannot_be_explained_is_named_by_its_place_before_any_is_explained(classifier, monkeypatch):
    run = unrolled.load(classifier)
    monkeypatch.setattr(type(run), "explain", lambda *_, **__: pytest.fail("a text was explained"))
    with pytest.raises(UsageError, match=r"^texts\[1\], texts\[3\] are without a word; leave out such texts"):
        run.explain_batch(["bad", "", "good", " \n"])
    with pytest.raises(UsageError, match=r"^texts\[1\] is None; expected strings"):
        run.explain_batch(["bad", None])


def test_a_table_is_not_read_as_the_names_of_its_columns(classifier):
    pandas = pytest.importorskip("pandas", reason="a table needs the extra [tables]")
    run = unrolled.load(classifier)
    table = pandas.DataFrame({"text": TEXTS[:2], "label": ["positive", "negative"]}, index=[7, 7])
    for call in (run.predict, run.predict_proba, run.explain_batch, lambda each: run.score(each, ["positive"] * 2)):
        with pytest.raises(UsageError, match=r"texts is a DataFrame of shape \(2, 2\); expected .*such as one column"):
            call(table)
    with pytest.raises(UsageError, match=r"labels is a DataFrame of shape \(2, 1\)"):
        run.score(TEXTS[:2], table[["label"]])
    for each in (table["text"], table["text"].to_numpy(), tuple(TEXTS[:2]), dict(enumerate(TEXTS[:2])).values()):
        assert run.predict(each).tolist() == run.predict(TEXTS[:2]).tolist()
    assert run.score(table["text"], table["label"]) == run.score(TEXTS[:2], ["positive", "negative"])


def test_a_text_is_explained_by_its_words_and_labels(classifier):
    run = unrolled.load(classifier)
    for text in TEXTS:
        found = run.explain(text)
        assert found.target == run.predict([text])[0]
        assert found.ledger.logit == pytest.approx(float(by_hand(run, text).max()), abs=1e-6)
    named = run.explain("Never good", target="neutral", expansion="gates")
    assert (named.target, named.expansion) == ("neutral", "gates")
    assert named.tokens[0].startswith("Never")
    assert any("† not in the model's vocabulary" in note for note in named.notes)
    assert run.explain("good", target=0).target == "negative"
    with pytest.raises(UnknownNameError, match="did you mean 'neutral'"):
        run.explain("good", target="neutrale")
    with pytest.raises(UsageError, match="the sentence is empty"):
        run.explain(" ")
    with pytest.raises(UsageError, match="the text is None; expected a string"):
        run.explain(None)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("a good film", r"texts is the string 'a good film'; expected a list"),
        ([], "no texts; expected at least one"),
        (["good", " "], r"^texts\[1\] is without a word; leave out such texts"),
        (["", "good", "\t"], r"^texts\[0\], texts\[2\] are without a word"),
        ([None], r"^texts\[0\] is None; expected strings"),
        (["good", float("nan"), "", None, 3], r"^texts\[1\], texts\[3\], texts\[4\] are nan, None, of type int; "),
        ([None] * 50, r"texts\[19\] and 30 more are None;"),
    ],
)
def test_texts_that_are_none_are_refused_in_one_line(classifier, texts, message):
    run = unrolled.load(classifier)
    for use in (run.predict, run.predict_proba):
        with pytest.raises(UsageError, match=message) as caught:
            use(texts)
        assert "\n" not in str(caught.value)


def test_labels_that_do_not_fit_are_refused(classifier):
    run = unrolled.load(classifier)
    with pytest.raises(ShapeError, match="1 label for 5 texts"):
        run.score(TEXTS, ["positive"])
    with pytest.raises(UnknownNameError, match="did you mean 'positive'"):
        run.score(["good"], ["positiv"])


def test_classes_whose_names_are_numbers_may_be_given_as_numbers(tmp_path):
    stars = ("1", "10", "2")
    examples = tuple(Example((("good", "bad", "odd")[k % 3],), k % 3) for k in range(9))
    corpus = Classification(name="stars", train=examples, dev=examples, test=examples, labels=stars)
    train(Classify.from_corpus(corpus, SMALL), corpus, SETTINGS, tmp_path / "run", data=DataSettings(data=("told",)))
    run = unrolled.load(tmp_path / "run")
    texts = ["good", "bad", "odd", "good bad"]
    names = list(run.predict(texts))
    numbers = [int(name) for name in names]
    for given in (names, numbers, np.array(numbers)):
        assert run.score(texts, given) == 1
    other = {1: 10, 10: 2, 2: 1}
    assert run.score(texts, [other[numbers[0]], *numbers[1:]]) == 0.75
    with pytest.raises(UnknownNameError, match="unknown label '3'"):
        run.score(["good"], [3])


@pytest.mark.parametrize("names", [("False", "True"), ("false", "true")])
def test_classes_whose_names_are_truth_values_may_be_given_as_these(tmp_path, names):
    examples = tuple(Example((("bad", "good")[k % 2],), k % 2) for k in range(8))
    corpus = Classification(name="told", train=examples, dev=examples, test=examples, labels=names)
    train(Classify.from_corpus(corpus, SMALL), corpus, SETTINGS, tmp_path / "run", data=DataSettings(data=("told",)))
    run = unrolled.load(tmp_path / "run")
    said = np.array([name.lower() == "true" for name in run.predict(["good", "bad", "good bad"])])
    assert run.score(["good", "bad", "good bad"], said) == run.score(["good", "bad", "good bad"], said.tolist()) == 1
    assert run.score(["good", "bad", "good bad"], ~said) == 0


def test_ratings_are_numbers(tmp_path):
    examples = tuple(RatedText(("good",) * (k + 1), float(k)) for k in range(6))
    corpus = Regression(name="told", train=examples, dev=examples, test=examples)
    task = Regress.from_corpus(corpus, SMALL)
    train(task, corpus, SETTINGS, tmp_path / "run", data=DataSettings(data=("told",)))
    run = unrolled.load(tmp_path / "run")
    texts = [" ".join(example.tokens) for example in examples]
    found = run.predict(texts)
    assert found.tolist() == pytest.approx([float(by_hand(run, text)[0]) for text in texts], abs=1e-6)
    truth = np.array([example.rating for example in examples])
    expected = 1 - ((found - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum()
    assert run.score(texts, truth.tolist()) == pytest.approx(expected)
    assert run.explain("good good").target == "rating"
    with pytest.raises(UsageError, match="predicts numbers"):
        run.predict_proba(texts)
    for wrong in (math.nan, None, "four", math.inf):
        with pytest.raises(UsageError, match=r"labels\[2\] is .*; expected a finite number"):
            run.score(texts, [1, "2.5", wrong, 4, 5, 6])


def test_a_task_without_one_output_for_a_text_is_refused():
    run = TrainedModel()
    run.task = Tag.__new__(Tag)
    with pytest.raises(UsageError, match="the task tag has no one output for a whole text"):
        run.predict(["she lives in Paris"])


@pytest.mark.parametrize(("task", "model"), [(Classify, SMALL), (Relate, RelateSettings(hidden=6, embedding=5))])
def test_two_classes_of_one_name_are_refused_before_the_training(task, model):
    examples = tuple(Example((("bad", "good")[k % 2],), k % 2) for k in range(8))
    splits = {"train": examples, "dev": examples, "test": examples}
    with pytest.raises(DataError, match=r"^the labels a, a contain a name twice; expected different names$"):
        task.from_corpus(Classification(name="twice", labels=("a", "a"), **splits), model)
    once = Classification(name="once", labels=("a", "b"), **splits)
    assert task.from_corpus(once, model).outputs == ("a", "b")  # the control
