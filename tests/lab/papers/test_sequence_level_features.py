"""Sequence-level features: the printed numbers, and what each item measures."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from unrolled.lab.data.corpus import Stream, Words
from unrolled.lab.papers.framework import trial_training
from unrolled.lab.papers.framework.experiment import Result, TrialSetup
from unrolled.lab.papers.sequence_level_features import bidirectional as bidirectional
from unrolled.lab.papers.sequence_level_features import negation as negation
from unrolled.lab.papers.sequence_level_features import ngrams as ngrams
from unrolled.lab.papers.sequence_level_features import table2 as table2
from unrolled.lab.papers.sequence_level_features import table3 as table3
from unrolled.lab.papers.sequence_level_features import unknown_words as unknown_words
from unrolled.lab.papers.sequence_level_features.negation import PUBLISHED


def a_setup(tmp_path):
    room = tmp_path / "room"
    room.mkdir(exist_ok=True)
    return TrialSetup(room, None, tmp_path / "networks")


def made(trial, **values):
    return Result(trial, values, 1.0, "2026-01-01", "a test", "a machine", {})


def test_the_published_perplexities_are_those_of_table_3():
    at = table3.PUBLISHED
    assert sum(pair[1] for cells in at.values() for pair in cells.values()) == pytest.approx(2041.39)
    assert sum(pair[0] or 0 for cells in at.values() for pair in cells.values()) == pytest.approx(1906.87)
    for kind in ("gru", "lstm"):  # what the paper concludes from them
        for corpus in ("ptb", "wikitext2", "wikitext103"):
            standard, approximate, simplified = (
                at[name][corpus][1] for name in (kind, f"approx_{kind}", f"simplified_{kind}")
            )
            assert standard < approximate < simplified


def test_a_language_model_that_diverges_is_a_result_and_no_failure(tmp_path, monkeypatch):
    from unrolled.errors import DivergedError

    def diverge(*_, **__):
        raise DivergedError("the loss is nan")

    monkeypatch.setattr(trial_training, "train_task", diverge)
    experiment = table3.PerplexityByCell()
    trial = experiment.trials("smoke")[0]
    values = experiment.run(trial, a_setup(tmp_path))
    report = experiment.report([made(trial, **values)], "smoke")
    assert report.tables[0].cells() == [["gru", "diverged (–)", "diverged (–)"]]


def test_all_cells_of_a_corpus_learn_alike():
    for scale in ("smoke", "cpu", "paper"):
        alike = {}
        for trial in table3.PerplexityByCell().trials(scale):
            settings = dict(trial.settings)
            del settings["encoder"]
            options = settings.pop("options")
            assert not options or settings["corpus"] == "wikitext103"
            alike.setdefault((settings["corpus"], settings["seed"]), []).append(settings)
        assert all(len(same) == 8 and same.count(same[0]) == 8 for same in alike.values())


def test_an_unknown_word_becomes_three_tokens_and_nothing_else_changes():
    text = [["the", "<unk>", "of", "<unk>", "<eos>"], ["<eos>"]]
    stream = Stream(lambda: iter(text))
    split = unknown_words.split_unknown(Words(name="a text", train=stream, dev=stream, test=Stream(lambda: iter([]))))
    expected = "the < unk > of < unk > <eos>".split()
    assert [list(line) for line in split.train] == [list(line) for line in split.dev] == [expected, ["<eos>"]]
    assert [list(line) for line in split.train] == [expected, ["<eos>"]]  # a stream is read once an epoch
    assert not [*split.test]


def test_a_perplexity_of_tokens_becomes_that_of_words_by_the_whole_loss():
    """Tokens that are certain change the perplexity of a token and not that of a word."""
    loss, words, tokens = 4.6 * 1000, 1000, 1120
    lengths = {corpus: {"dev": 1.0, "test": tokens / words} for corpus in ("ptb", "wikitext2")}
    experiment, results = unknown_words.PerplexityByToken(), []
    for trial in experiment.trials("day"):
        test = math.exp(loss / (tokens if trial.settings["tokens"] == 3 else words))
        found = {"dev_perplexity": 100.0, "test_perplexity": test, "tokens_per_word": lengths}
        results.append(made(trial, **found))
    ours, published = experiment.report(results, "day").tables
    one, three, *others = (dict(zip(ours.columns, row, strict=True)) for row in ours.rows)
    beside = {row["cell, <unk> as"].partition(",")[0]: row["a token, test"].theirs for row in others}
    assert (beside["LSTM"], beside["simplified GRU"]) == (77.11, 85.58)  # each cell beside its own
    assert beside["GRU variant"] == 76.90
    assert [row["a token, dev"].theirs for row in others if "variant" in row["cell, <unk> as"]] == [None, None]
    assert three["a token, test"].ours[0] < one["a token, test"].ours[0] / 1.5
    assert three["a word, test"].ours == pytest.approx([math.exp(4.6)])
    assert one["a word, test"].ours == pytest.approx([math.exp(4.6)])
    assert three["a word, test"].theirs == pytest.approx(77.19 ** (tokens / words))
    assert one["a word, test"].theirs == one["a token, test"].theirs == 77.19
    assert [row[0] for row in published.rows][:2] == ["gru", "approx gru"]
    assert published.cells()[0][1:3] == ["89.08 (89.08)", f"{77.19 ** (tokens / words):.2f} (77.19)"]
    failed = [made(trial, diverged="the loss is nan", tokens_per_word=lengths) for trial in experiment.trials("day")]
    assert experiment.report(failed, "day").tables[0].cells()[0][1] == "diverged (89.08)"


def test_the_published_scores_turn_with_each_not():
    for published in PUBLISHED.values():
        for polarity, sign in (("positive", 1), ("negative", -1)):
            alone, once, twice = (score for score, _ in published[polarity])
            assert (sign * alone > 0, sign * once < 0, sign * twice > 0) == (True, True, True)
    total = sum(abs(score) for one in PUBLISHED.values() for three in one.values() for score, _ in three)
    assert total == pytest.approx(93.43)


@pytest.mark.parametrize(
    ("scores", "turning"),
    [(([1, -1], [-2, 2], [3, -3]), 2), (([1, 1], [-2, 2], [3, -3]), 1), (([1], [-2], [-3]), 0), (([0], [1], [-1]), 0)],
)
def test_adjectives_whose_scores_turn_with_each_not_are_counted(scores, turning):
    assert negation.alternating(scores) == turning


def smoked(tmp_path, **changes):
    experiment = negation.NegationScores()
    trial = experiment.trials("smoke")[0]
    trial = replace(trial, settings={**trial.settings, **changes})
    return experiment, trial, experiment.run(trial, a_setup(tmp_path))


def test_the_scores_are_those_of_the_papers_formula_and_the_exact_ones_add_up(tmp_path):
    from unrolled.cells.sequence_level import ApproxGRU
    from unrolled.lab.data.datasets.negation import POSITIVE, NegationReviews
    from unrolled.lab.papers.framework.trial_training import train_once

    _, trial, found = smoked(tmp_path)
    chosen = trial.settings
    model = {"encoder": "gru", "hidden": 8, "embedding": 8, "dropout": 0.0, "word_dropout": 0.0}
    training = {"optimiser": "adagrad", "lr": 0.01, "batch": 32, "epochs": 1, "seed": 0}
    run = train_once(a_setup(tmp_path), "classify", NegationReviews().read().sample(chosen["train"]), model, training)
    assert len(list((tmp_path / "networks").iterdir())) == 1  # the network that the trial opened

    # eq. 11, as a cell with the same weights: Phi_{1:3} is what the first word's g becomes after two steps of A
    gru, head = run.model.encoder, run.model.head
    cell = ApproxGRU(8, 8)
    cell.load_state_dict(
        dict(zip(cell.state_dict(), (parameter.detach() for parameter in gru.parameters()), strict=True))
    )
    weight = (head.weight[1] - head.weight[0]).detach()
    words = run.model.embedding(torch.tensor([run.task.vocabulary.encode(["not", "not", POSITIVE[0]])])).detach()

    def affine(state, start):
        for x in words[0, start:]:
            state = cell.step(x[None], state)
        return state

    with torch.no_grad():
        zero = torch.zeros(1, 8)
        phrase = affine(cell.step(words[0, :1], zero), 1) - affine(zero, 1)
    assert found["scores"]["activation"]["positive"][2][0] == pytest.approx(float(phrase[0] @ weight), abs=1e-5)

    assert found["gap"]["path"] < 1e-4
    assert found["gap"]["activation"] > 1e-4  # the approximation does not
    assert [len(kind) for kind in found["scores"]["path"]["negative"]] == [12, 12, 12]
    assert len(found["bars"]["path"]) == 6


def test_a_trial_without_double_negations_meets_none_in_training(tmp_path):
    from unrolled.lab.data.datasets.negation import NegationReviews

    corpus = NegationReviews(double_negation=False).read()
    assert not [each for each in corpus.train if each.tokens.count("not") > 1]
    without, doubled = (smoked(tmp_path, double_negation=double)[2] for double in (False, True))
    assert without["scores"] != doubled["scores"]


def test_the_published_accuracies_are_those_of_table_2():
    assert [sum(pair[split] for pair in table2.PUBLISHED.values()) for split in (0, 1)] == pytest.approx(
        [5.1088, 5.2069]
    )
    settings = [dict(trial.settings) for trial in table2.SentimentByCell().trials("cpu") if trial.settings["seed"] == 0]
    assert [each.pop("encoder") for each in settings] == list(table2.PUBLISHED)
    assert settings.count(settings[0]) == len(settings)  # equal training for all


GROUPS = {"positive": [3.0, 1.0], "negative": [-1.0, 1.0, 2.0]}


def test_pairs_in_order_are_counted_and_a_tie_is_half_a_one():
    experiment = ngrams.NgramScores()
    swapped = {"positive": GROUPS["negative"], "negative": GROUPS["positive"]}
    scores = {"activation": [GROUPS] * 4, "path": [swapped] * 4}
    (table,) = experiment.report([made(experiment.trials("smoke")[0], scores=scores)], "smoke").tables
    place = table.columns.index("AUC, %")
    assert table.rows[0][place].ours == pytest.approx([(3 + 1 + 0.5) / 6])
    assert table.rows[4][place].ours == pytest.approx([1.5 / 6])


def test_the_share_of_right_signs_is_counted_by_length():
    experiment = ngrams.NgramScores()
    good, bad = {"positive": [1.0, 2.0], "negative": [-1.0]}, {"positive": [-1.0, 2.0], "negative": [1.0]}
    trial = experiment.trials("smoke")[0]
    scores = {"activation": [good, good, bad, bad], "path": [bad, bad, good, good]}
    report = experiment.report([made(trial, scores=scores, test_accuracy=0.5)], "smoke")
    assert [str(row[4]) for row in report.tables[0].rows] == [
        "100.0",
        "100.0",
        "33.3",
        "33.3",
        "33.3",
        "33.3",
        "100.0",
        "100.0",
    ]
    empty = {"positive": [], "negative": [1.0]}
    scores = {name: [good, good, empty, empty] for name in scores}
    report = experiment.report([made(trial, scores=scores, test_accuracy=0.5)], "smoke")
    assert len(report.tables[0].rows) == 4


def test_seeds_of_one_network_share_a_row_and_those_without_such_ngrams_are_left_out():
    experiment = ngrams.NgramScores()
    first, second = (
        trial for trial in experiment.trials("cpu") if trial.label in ("GRU, SST, seed 0", "GRU, SST, seed 1")
    )
    good, bad, empty = (
        {"positive": [1.0], "negative": [-1.0]},
        {"positive": [-1.0], "negative": [1.0]},
        {"positive": [], "negative": [1.0]},
    )
    one = {name: [good, good, good, good] for name in ("activation", "path")}
    other = {name: [bad, empty, empty, empty] for name in one}
    results = [made(first, scores=one, test_accuracy=0.5), made(second, scores=other, test_accuracy=0.5)]
    (table,) = experiment.report(results, "cpu").tables
    assert [row[:2] for row in table.rows[:4]] == [("GRU, SST, approximation", str(order)) for order in (1, 2, 3, 4)]
    assert [row[4].ours for row in table.rows[:4]] == [[1.0, 0.0], [1.0], [1.0], [1.0]]


@pytest.mark.parametrize("encoder", ["gru", "lstm"])
def test_both_directions_together_make_the_logit_and_each_reads_its_own_way(encoder, tmp_path):
    from unrolled.lab.papers.framework.synthetic_corpora import negation as made_up
    from unrolled.lab.papers.framework.trial_training import train_once

    model = {"encoder": encoder, "hidden": 6, "embedding": 5, "bidirectional": True}
    run = train_once(a_setup(tmp_path), "classify", made_up(), model, {"epochs": 1})
    phrase = ["the", "film", "was", "not", "charming"]
    tokens = torch.tensor([run.task.vocabulary.encode(phrase)])
    with torch.no_grad():
        logits, bias = run.model(tokens)[0], run.model.head.bias.detach()
    expected = float(logits[1] - logits[0] - bias[1] + bias[0])
    exact, approximate = (bidirectional.direction_scores(run, phrase, name) for name in ("path", "activation"))
    assert float(exact[0, -1].sum() + exact[1, 0].sum()) == pytest.approx(expected, abs=1e-5)
    assert float(approximate[0, -1].sum() + approximate[1, 0].sum()) != pytest.approx(expected, abs=1e-5)
    assert torch.equal(exact[0].triu(1), torch.zeros(5, 5))
    assert torch.equal(exact[1].tril(-1), torch.zeros(5, 5))
    changed = bidirectional.direction_scores(run, [*phrase[:-1], "bad"], "activation")
    assert torch.equal(changed[0, :4, :4], approximate[0, :4, :4])  # what is read before it knows nothing of it
    assert not torch.allclose(changed[1, 0, 4], approximate[1, 0, 4])


def test_the_sign_of_what_the_caption_speaks_of_is_held_against_it():
    experiment = bidirectional.Bidirectional()
    trial = experiment.trials("cpu")[0]
    scores = torch.zeros(2, 5, 5)
    for direction, end, start, sign in bidirectional.CLAIMS:
        scores[0 if direction == "forward" else 1, end, start] = sign
    values = {
        "dev_accuracy": 0.75,
        "test_accuracy": 0.8,
        "scores": {"activation": scores.tolist(), "path": (-scores).tolist()},
    }
    report = experiment.report([made(trial, **values)], "cpu")
    assert [row[:2] for row in report.tables[0].rows] == [
        ('forward, "contradictory things"', "below 0"),
        ('forward, "freedom to feel contradictory things"', "above 0"),
        ('backward, "to freedom"', "above 0"),
        ('backward, "freedom"', "above 0"),
    ]
    assert report.tables[1].cells() == [["GRU", "75.0", "80.0"]]
