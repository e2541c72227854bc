"""The demo: it trains, it opens, it shows what its documentation says, and it leaves what it names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from unrolled.lab.cli.polarity_table import flips, ngram_terms
from unrolled.lab.data.datasets.negation import NEGATIVE, POSITIVE, NegationReviews
from unrolled.lab.models.settings import PooledSettings
from unrolled.lab.papers.analyses.polarity import open_phrases
from unrolled.lab.tasks.classify import Classify
from unrolled.lab.training.data_settings import DataSettings
from unrolled.lab.training.engine import train
from unrolled.lab.training.run_folder import Run, load_run
from unrolled.lab.training.settings import TrainingSettings

Command = Callable[..., Any]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder that one run of the demo left, and what it printed."""
    import contextlib
    import io

    from unrolled.cli.main import run

    out = tmp_path_factory.mktemp("demo")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert run(["demo", "--out", str(out)]) == 0
    return out, printed.getvalue()


def test_it_leaves_the_page_the_figure_and_two_runs(outcome: tuple[Path, str]) -> None:
    out, printed = outcome
    for name in ("report.html", "triangle.png", "gru", "lstm"):
        assert str(out / name) in printed
    assert (out / "report.html").read_text().startswith("<!DOCTYPE html>")
    assert (out / "triangle.png").read_bytes().startswith(b"\x89PNG")
    for name in ("gru", "lstm"):
        assert load_run(out / name).metrics["test_accuracy"] > 0.99


def test_negation_flips_the_sign_and_double_negation_flips_it_back(outcome: tuple[Path, str]) -> None:
    for name in ("gru", "lstm"):
        run = load_run(outcome[0] / name)
        for expansion in ("activation", "zero", "secant"):
            counts = [flips(ngram_terms(run, words, expansion)) for words in (POSITIVE, NEGATIVE)]
            once, twice = (sum(pair) for pair in zip(*counts, strict=True))
            assert min(once, twice) >= 18, (name, expansion, once, twice)


def test_the_table_shows_what_was_measured(outcome: tuple[Path, str]) -> None:
    out, printed = outcome
    for name in ("gru", "lstm"):
        scores = ngram_terms(load_run(out / name), POSITIVE, "secant")
        assert f"{scores[:, 2].mean():.2f} ± {scores[:, 2].std():.2f}" in printed


def test_only_the_exact_expansion_accounts_for_the_whole_state(outcome: tuple[Path, str]) -> None:
    run = load_run(outcome[0] / "gru")

    def error(expansion: str) -> float:
        return float(open_phrases(run, [f"not not {word}" for word in POSITIVE], expansion).residual()[:, -1].mean())

    assert error("secant") < 1e-5
    assert error("zero") > 0.1
    assert error("activation") > 0.1


def test_what_it_suggests_works(outcome: tuple[Path, str], unrolled: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    import shlex

    out, printed = outcome
    monkeypatch.chdir(out)
    lines = [line.strip() for line in printed.splitlines() if line.startswith("  unrolled ")]
    assert len(lines) == 3
    for line in lines:
        assert unrolled(*shlex.split(line)[1:]).status == 0, line


@pytest.fixture
def untrained(tmp_path: Path) -> Run:
    corpus = NegationReviews().read().sample(64, 0)
    task = Classify.from_corpus(corpus, PooledSettings(encoder="gru", hidden=8, embedding=8, dropout=0.0))
    settings = TrainingSettings(epochs=1, lr=1e-6, device="cpu")
    return train(task, corpus, settings, tmp_path / "run", data=DataSettings(data=("negation",)))


def test_a_term_is_that_of_the_n_gram_which_is_the_whole_phrase(untrained: Run) -> None:
    run = untrained
    found = ngram_terms(run, POSITIVE, "zero")
    weight = run.model.head.weight.detach()
    for before in (0, 1, 2):
        opened = open_phrases(run, ["not " * before + word for word in POSITIVE], "zero")
        expected = opened.vectors()[:, before, 0] @ (weight[1] - weight[0])
        torch.testing.assert_close(found[:, before], expected)


def test_flips_are_counted_from_the_signs() -> None:
    scores = torch.tensor([[1.0, -1.0, 1.0], [-1.0, 1.0, 1.0], [1.0, 2.0, -1.0], [1.0, -1.0, 0.5]])
    assert flips(scores) == (3, 2)


def test_a_network_that_learned_nothing_does_not_flip(untrained: Run) -> None:
    run = untrained
    counts = [flips(ngram_terms(run, words, "path")) for words in (POSITIVE, NEGATIVE)]
    assert sum(twice for _, twice in counts) < 18


def test_a_place_that_cannot_be_written_is_refused_before_training(unrolled: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    unrolled("demo", "--out", tmp_path / "file").assert_refused(74, "file")
