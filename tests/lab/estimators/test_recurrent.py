"""The estimators with scikit-learn's own tools: checks, pipelines, searches, clones and pickles."""

from __future__ import annotations

import pickle
import re

import joblib
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from unrolled.errors import DivergedError, ShapeError, UnknownNameError, UsageError
from unrolled.sklearn import RecurrentClassifier, RecurrentRegressor

TEXTS = ["a good film", "a bad film", "good", "bad", "not bad", "not good", "it is good", "it is bad"] * 3
MOODS = ["+", "-", "+", "-", "+", "-", "+", "-"] * 3
QUICK = {"hidden": 8, "embedding": 8, "epochs": 25, "lr": 0.03, "random_state": 0}


def series(count=60, time=7, features=3):
    values = np.random.default_rng(0).normal(size=(count, time, features))
    return values, values[:, :, 0].sum(axis=1)


def test_an_estimator_by_matrix_products_starts_its_words_at_the_identity():
    sizes = {"hidden": 16, "embedding": 16, "epochs": 1, "lr": 1e-6, "random_state": 0}
    products, others = (RecurrentClassifier(name, **sizes).fit(TEXTS, MOODS).model_.reader for name in ("mm", "gru"))
    identity = torch.eye(4).flatten()
    assert (products.weight - identity).abs().max() < 0.2
    assert (others.weight - identity).abs().max() > 0.8  # control


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [RecurrentClassifier, RecurrentRegressor])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks_pass(estimator):
    """On arrays (examples, time); the array API is checked only where SciPy is set to it.

    Of weights, scikit-learn expects what repeating an example gives: another order of the batches, and so another
    network, as of its own networks.
    """
    results = check_estimator(estimator(hidden=12, epochs=12, lr=0.04, random_state=0), on_fail=None)
    states = {each["check_name"]: each["status"] for each in results}
    assert {name for name, state in states.items() if state != "passed"} <= {
        "check_array_api_input",
        "check_sample_weight_equivalence_on_dense_data",
    }
    assert len(states) > 30


def test_texts_are_learned_and_explained():
    classifier = RecurrentClassifier(**QUICK).fit(TEXTS, MOODS)
    assert classifier.score(TEXTS, MOODS) > 0.9
    assert list(classifier.classes_) == ["+", "-"]
    np.testing.assert_allclose(classifier.predict_proba(TEXTS).sum(axis=1), 1)
    found = classifier.explain("a good film")
    assert found.tokens == ("a", "good", "film")
    assert abs(found.ledger.remainder) < 1e-9
    probabilities = classifier.predict_proba(["a good film"])[0]
    difference = found.ledger.logit - classifier.explain("a good film", target="-").ledger.logit
    assert difference == pytest.approx(np.log(probabilities[0] / probabilities[1]), abs=1e-9)
    assert classifier.losses_[-1] < classifier.losses_[0]
    assert list(classifier.predict(np.array(TEXTS[:2], dtype=object))) == list(classifier.predict(TEXTS[:2]))


def test_a_loss_counts_as_many_times_as_its_weight_says():
    texts, moods, weights = ["so so", "so so"] * 4, ["+", "-"] * 4, [3.0, 1.0] * 4
    fitted = RecurrentClassifier(**QUICK | {"epochs": 100}).fit(texts, moods, sample_weight=weights)
    np.testing.assert_allclose(fitted.predict_proba(["so so"]), [[0.75, 0.25]], atol=0.01)
    equal = RecurrentClassifier(**QUICK | {"epochs": 100}).fit(texts, moods)
    np.testing.assert_allclose(equal.predict_proba(["so so"]), [[0.5, 0.5]], atol=0.01)
    series, answers = np.ones((8, 5, 2)), np.array([0.0, 4.0] * 4)
    regressor = RecurrentRegressor(**QUICK | {"epochs": 100}).fit(series, answers, sample_weight=np.array(weights))
    np.testing.assert_allclose(regressor.predict(series), 1, atol=0.05)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0] * 3, "sample_weight"),
        ([-1.0] + [1.0] * 23, "Negative values in sample_weight: the least is -1; expected 0 or more"),
        ([0.0] * 24, "expected a positive|zero"),
        ([np.nan] * 24, "NaN"),
        ([1e308] * 24, r"sample_weight has numbers up to 1e\+308, whose sum exceeds .*: divide them"),
    ],
)
def test_weights_that_are_none_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        RecurrentClassifier(**QUICK).fit(TEXTS, MOODS, sample_weight=weights)


def test_sequences_of_numbers_of_any_lengths():
    values, totals = series()
    regressor = RecurrentRegressor(**QUICK).fit(values, totals)
    assert regressor.score(values, totals) > 0.8
    ragged = [each[: 3 + k % 5] for k, each in enumerate(values)]
    sums = np.array([each[:, 0].sum() for each in ragged])
    other = clone(regressor).fit(ragged, sums)
    assert other.score(ragged, sums) > 0.6
    alone = [other.predict([each])[0] for each in ragged]
    np.testing.assert_allclose(other.predict(ragged), alone, atol=1e-12)
    found = other.explain(ragged[1])
    assert found.ledger.logit == pytest.approx(alone[1])
    assert abs(found.ledger.remainder) < 1e-9


def test_rows_of_numbers_are_series_of_one_feature():
    values, _ = series()
    rows = values[:, :, 0]
    signs = np.where(rows.mean(axis=1) > 0, "up", "down")
    flat = RecurrentClassifier(**QUICK).fit(rows, signs)
    nested = RecurrentClassifier(**QUICK).fit(rows[:, :, None], signs)
    np.testing.assert_allclose(flat.predict_proba(rows), nested.predict_proba(rows[:, :, None]), atol=1e-12)
    assert (flat.n_features_in_, nested.n_features_in_) == (7, 1)


def test_it_works_in_a_pipeline_a_search_and_a_cross_validation():
    search = GridSearchCV(RecurrentClassifier(**QUICK | {"epochs": 10}), {"encoder": ["rnn", "lstm"]}, cv=2)
    search.fit(TEXTS, MOODS)
    assert search.best_params_["encoder"] in ("rnn", "lstm")
    pipeline = make_pipeline(
        FunctionTransformer(lambda texts: [text.upper() for text in texts]), clone(search.estimator)
    )
    assert cross_val_score(pipeline, TEXTS, MOODS, cv=2).shape == (2,)
    values, totals = series()
    assert cross_val_score(RecurrentRegressor(**QUICK | {"epochs": 3}), values, totals, cv=3).shape == (3,)


def test_a_seed_decides_everything_and_the_callers_generator_goes_on():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    one = RecurrentClassifier(**QUICK, dropout=0.3).fit(TEXTS, MOODS)
    assert torch.equal(torch.rand(3), expected)
    two = clone(one).fit(TEXTS, MOODS)
    np.testing.assert_array_equal(one.predict_proba(TEXTS), two.predict_proba(TEXTS))
    other = clone(one).set_params(random_state=1).fit(TEXTS, MOODS)
    assert not np.array_equal(one.predict_proba(TEXTS), other.predict_proba(TEXTS))
    assert clone(one).get_params() == one.get_params()
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(one.predict_proba(TEXTS), again.predict_proba(TEXTS))


def test_a_tokenizer_of_ones_own_splits_texts():
    classifier = RecurrentClassifier(**QUICK, tokenizer=list).fit(TEXTS, MOODS)
    assert classifier.explain("bad").tokens == ("b", "a", "d")
    with pytest.raises(UsageError, match=r"tokenizer is an int; expected None, a function, the path"):
        RecurrentClassifier(tokenizer=3).fit(TEXTS, MOODS)


def test_a_tokenizer_of_hugging_face_splits_texts(tmp_path):
    tokenizers = pytest.importorskip("tokenizers", reason="needs the extra [tokenizers]")
    words = {word: k for k, word in enumerate(["[UNK]", "a", "good", "bad", "film", "not", "it", "is"])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    for given in (made, tmp_path / "tokenizer.json", str(tmp_path / "tokenizer.json")):
        classifier = RecurrentClassifier(**QUICK, tokenizer=given).fit(TEXTS, MOODS)
        assert classifier.score(TEXTS, MOODS) > 0.9
        assert classifier.explain("a new film").tokens == ("a", "[UNK]", "film")


@pytest.mark.parametrize(
    ("fit", "error", "message"),
    [
        (lambda: RecurrentClassifier().fit("a text", ["+"]), UsageError, "the examples are the string 'a text'"),
        (lambda: RecurrentClassifier(**QUICK).fit(["a", " "], ["+", "-"]), UsageError, "has no words"),
        (
            lambda: RecurrentClassifier().fit(["a", None], ["+", "-"]),
            UsageError,
            r"texts\[1\] is None; expected strings",
        ),
        (lambda: RecurrentClassifier().fit(["a", np.nan], ["+", "-"]), UsageError, r"texts\[1\] is nan"),
        (
            lambda: RecurrentClassifier(**QUICK).fit(TEXTS, MOODS).predict(["a", None]),
            UsageError,
            r"texts\[1\] is None",
        ),
        (lambda: RecurrentClassifier(**QUICK).fit(TEXTS, MOODS).explain(None), UsageError, "the text is None"),
        (lambda: RecurrentClassifier().fit(TEXTS, MOODS[:3]), ValueError, "inconsistent numbers of samples"),
        (lambda: RecurrentClassifier(encoder="gruu").fit(TEXTS, MOODS), UsageError, "gruu"),
        (lambda: RecurrentClassifier().predict(TEXTS), NotFittedError, "not fitted"),
        (
            lambda: RecurrentRegressor().fit([np.ones((2, 3)), np.ones((2, 4))], [1, 2]),
            ShapeError,
            r"\[3, 4\] features",
        ),
        (lambda: RecurrentRegressor().fit([np.ones((2, 3)), np.full((2, 3), np.nan)], [1, 2]), ValueError, "NaN"),
        (lambda: RecurrentRegressor().fit(np.ones((2, 3)), [1, np.inf]), ValueError, "y contains NaN or infinity"),
        (
            lambda: RecurrentClassifier(**QUICK).fit(TEXTS, MOODS).predict(np.ones((2, 3))),
            UsageError,
            "fitted on texts",
        ),
        (lambda: RecurrentClassifier(**QUICK).fit(TEXTS, MOODS).explain("bad", "x"), UsageError, r"one of: '\+', '-'"),
    ],
)
def test_bad_input_is_refused_in_one_line(fit, error, message):
    with pytest.raises(error, match=message):
        fit()


def test_the_errors_of_the_library_are_value_errors_for_scikit_learn():
    for kind in (UsageError, ShapeError, UnknownNameError):
        assert issubclass(kind, ValueError), kind
    with pytest.raises(DivergedError, match="choose a smaller lr"):
        RecurrentRegressor(**QUICK | {"lr": 1e20, "clip": 0}).fit(*series())


def test_the_features_of_an_explanation_are_numbers_as_they_were_given():
    series = np.random.default_rng(0).normal(5.0, 2.0, size=(30, 6, 2))
    regressor = RecurrentRegressor(**QUICK).fit(series, series[:, :, 0].sum(axis=1))
    found = regressor.explain(series[0], features=["load", "wind"], tokens=["a", "b", "c", "d", "e", "f"])
    assert found.features is not None
    assert found.features.names == ("load", "wind")
    assert found.tokens == ("a", "b", "c", "d", "e", "f")
    np.testing.assert_allclose(found.features.values.numpy(), series[0])
    assert abs(found.ledger.logit - regressor.predict(series[:1])[0]) < 1e-9
    torch.testing.assert_close(found.feature_scores.sum(dim=1) + found.features.rest, found.token_scores)
    # a number that is the mean of training contributes nothing
    mean = np.broadcast_to(series.reshape(-1, 2).mean(axis=0), (6, 2))
    assert float(regressor.explain(mean).feature_scores.abs().max()) < 1e-6
    classifier = RecurrentClassifier(**QUICK).fit(series, series[:, 0, 0] > 5)
    by_class = classifier.explain(series[0]).by_class
    assert all(each.features is not None for each in by_class)
    np.testing.assert_allclose(by_class[1].features.values.numpy(), series[0])


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_fits_in_several_threads_are_those_of_one(dropout):
    texts, moods = ["a good film", "a bad film", "good", "bad", "not bad", "not good"] * 4, ["+", "-"] * 12

    def fitted(seed):
        made = RecurrentClassifier(epochs=2, hidden=3, embedding=3, dropout=dropout, random_state=seed)
        return made.fit(texts, moods).predict_proba(texts)

    alone = [fitted(seed) for seed in range(3)]
    together = joblib.Parallel(n_jobs=3, backend="threading")(joblib.delayed(fitted)(seed) for seed in range(3))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_explain_cannot_read_is_refused_in_the_words_of_predict():
    rng = np.random.default_rng(0)
    sequences = rng.normal(size=(12, 5, 2))
    by_sequence = RecurrentRegressor(**QUICK).fit(sequences, sequences[:, 0, 0])
    by_row = RecurrentRegressor(**QUICK).fit(sequences[:, :, 0], sequences[:, 0, 0])
    by_text = RecurrentRegressor(**QUICK).fit(["a b", "b a"] * 4, [0.0, 1.0] * 4)
    with pytest.raises(ValueError, match="3 features, but RecurrentRegressor is expecting 2") as of_predict:
        by_sequence.predict(np.ones((1, 5, 3)))
    for call, said in (
        (lambda: by_sequence.explain(np.ones((5, 3))), re.escape(str(of_predict.value))),
        (lambda: by_sequence.explain("a b"), "the example is a text, but the estimator was fitted on numbers"),
        (lambda: by_row.explain(np.ones((1, 5))), r"shape \(1, 5\); expected one example, of shape \(time,\)"),
        (lambda: by_text.explain(np.ones((5, 3))), "the example is an ndarray, but the estimator was fitted on texts"),
        (lambda: by_text.explain(["a b"]), "the example is a list, but the estimator was fitted on texts"),
    ):
        with pytest.raises(ValueError, match=said) as caught:
            call()
        assert "\n" not in str(caught.value)
    assert by_row.explain(np.ones(5)).closes
    assert by_text.explain("a b").closes


def test_target_and_against_are_classes_of_the_training():
    classifier = RecurrentClassifier(**QUICK | {"epochs": 2}).fit(["a film", "a plot", "a play"] * 2, [1, 2, 3] * 2)
    found = classifier.explain("a film", target=3, against=1)
    logits = np.log(classifier.predict_proba(["a film"])[0])
    assert found.target == "3 rather than 1"
    assert found.ledger.logit == pytest.approx(logits[2] - logits[0])
    assert found.ledger.logit != pytest.approx(logits[2] - logits[1])  # 1 is the index of class 2
    assert classifier.explain("a film", target=3, classes=["x", "y", "z"]).target == "z"
    with pytest.raises(UsageError, match="unknown class 0; expected one of: 1, 2, 3"):
        classifier.explain("a film", against=0)
    with pytest.raises(UsageError, match="the class 0 was given, but a regressor has one output; leave it out"):
        RecurrentRegressor(**QUICK | {"epochs": 1}).fit(["a", "b"], [0.0, 1.0]).explain("a", against=0)


def test_a_training_that_fails_leaves_no_model_of_other_words():
    classifier = RecurrentClassifier(**QUICK | {"epochs": 2}).fit(TEXTS, MOODS)
    classifier.set_params(lr=-1)
    with pytest.raises(UsageError, match="lr is -1"):
        classifier.fit(["other words"] * 2, [0, 1])
    with pytest.raises(NotFittedError):
        classifier.predict(TEXTS)


@pytest.mark.slow
@pytest.mark.fuzz
def test_pooling_decides_which_steps_of_a_long_series_are_learned():
    values = np.random.default_rng(0).normal(size=(150, 100))
    early, late = values[:, :50].mean(axis=1), values[:, 50:].mean(axis=1)

    def score(pooling, wanted):
        regressor = RecurrentRegressor(pooling=pooling, random_state=0).fit(values[:100], wanted[:100])
        return regressor.score(values[100:], wanted[100:])

    assert score("last", late) > 0.8 > score("mean", late)
    assert score("last", early) < 0
    assert min(score("mean", early), score("attention", early)) > 0.7


def test_a_word_that_no_training_text_holds_is_marked_and_noted():
    classifier = RecurrentClassifier(**QUICK).fit(TEXTS, MOODS)
    found = classifier.explain("A zorgle film")
    assert found.tokens == ("A", "zorgle†", "film")
    assert any("† not in the model's vocabulary" in note and "zorgle" in note for note in found.notes)
    assert not any("†" in note for note in classifier.explain("a good film").notes)
