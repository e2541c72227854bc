"""What is made of many explanations: phrases with the mean of their scores, pages, JSON."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import fmean, pstdev

import pytest
import torch
from torch import Tensor, nn

import unrolled
from unrolled import Explanations, UsageError
from unrolled.report.formatting import minus, signed

TEXTS = [
    "not a bad film".split(),
    "a bad film a bad film".split(),
    "it is not not good".split(),
    "good".split(),
    "not good not bad".split(),
]
WORDS = sorted({word for text in TEXTS for word in text})


class Reader(nn.Module):
    """Reads the last states, or the mean of all."""

    def __init__(self, *, bidirectional: bool = False, mean: bool = False) -> None:
        super().__init__()
        self.embed = nn.Embedding(len(WORDS), 5)
        self.rnn = nn.GRU(5, 6, batch_first=True, bidirectional=bidirectional)
        self.head = nn.Linear(12 if bidirectional else 6, 3)
        self.mean = mean

    def forward(self, tokens: Tensor) -> Tensor:
        states, last = self.rnn(self.embed(tokens))
        logits: Tensor = self.head(states.mean(1) if self.mean else torch.cat([*last], dim=-1))
        return logits


@cache  # most tests read the same explanations of the same three models
def explained(model: nn.Module, **options) -> Explanations:
    rows = [torch.tensor([[WORDS.index(word) for word in text]]) for text in TEXTS]
    return Explanations(
        tuple(
            unrolled.explain(model, row, tokens=text, **{"target": 1} | options)
            for row, text in zip(rows, TEXTS, strict=True)
        )
    )


@pytest.fixture(scope="module", params=[{}, {"bidirectional": True}, {"mean": True}], ids=["last", "both ends", "mean"])
def model(request: pytest.FixtureRequest) -> Reader:
    torch.manual_seed(0)
    return Reader(**request.param)


@pytest.mark.parametrize("longest", [1, 2, 3, 50])
def test_a_phrase_has_the_mean_and_the_deviation_of_its_scores(model: Reader, longest: int) -> None:
    found = explained(model)
    scores: dict[str, list[float]] = defaultdict(list)
    texts: dict[str, set[int]] = defaultdict(set)
    for number, each in enumerate(found):
        for start in range(len(each)):
            for stop in range(start + 1, min(start + longest, len(each)) + 1):
                phrase = " ".join(each.tokens[start:stop])
                scores[phrase].append(each.phrase_score(start, stop))
                texts[phrase].add(number)
    phrases = found.phrases(longest=longest, least=1)
    assert {each.text for each in phrases} == scores.keys()
    for each in phrases:
        assert each.phrase_score == pytest.approx(fmean(scores[each.text]), abs=1e-12)
        assert each.deviation == pytest.approx(pstdev(scores[each.text]), abs=1e-12)
        assert (each.texts, each.count) == (len(texts[each.text]), len(scores[each.text]))
        assert each.order == len(each.text.split())
    means = [each.phrase_score for each in phrases]
    assert means == sorted(means, reverse=True)


@pytest.mark.parametrize("least", [1, 2, 3])
def test_least_counts_texts_not_occurrences(model: Reader, least: int) -> None:
    found = explained(model).phrases(least=least)
    assert {each.text for each in found if each.order == 1} == {
        word for word in WORDS if sum(word in text for text in TEXTS) >= least
    }
    counts = {each.text: each.count for each in found}
    assert counts["not"] == 5  # in three texts


def test_a_word_says_the_same_in_every_text_by_secant_and_not_by_operating() -> None:
    torch.manual_seed(0)
    model = Reader()
    words = {each.text: each.deviation for each in explained(model).phrases(longest=1, least=2)}
    assert words
    assert max(words.values()) < 1e-6
    other = {each.text: each.deviation for each in explained(model, expansion="operating").phrases(longest=1, least=2)}
    assert max(other.values()) > 1e-4


def test_the_score_of_a_word_is_what_the_network_says_of_the_word_alone() -> None:
    torch.manual_seed(0)
    model = Reader().double()
    found = explained(model).phrases(longest=1, least=1)
    for each in found:
        with torch.no_grad():
            alone = model(torch.tensor([[WORDS.index(each.text)]]))[0, 1] - model.head.bias[1]
        assert each.phrase_score == pytest.approx(float(alone), abs=1e-12)
    longer = next(each for each in explained(model).phrases(longest=2, least=1) if each.text == "not bad")
    with torch.no_grad():  # the control: it occurs behind other words, and its score is not that of the pair alone
        pair = model(torch.tensor([[WORDS.index("not"), WORDS.index("bad")]]))[0, 1] - model.head.bias[1]
    assert abs(longer.phrase_score - float(pair)) > 1e-4


def test_texts_of_several_outputs_or_expansions_are_not_added_up(model: Reader) -> None:
    found, other = explained(model), explained(model, target=2)
    with pytest.raises(UsageError, match=r"'output 1' and 'output 2'.*one target"):
        Explanations((found[0], other[1])).phrases()
    with pytest.raises(UsageError, match=r"'secant' and 'operating'.*one expansion"):
        Explanations((found[0], *explained(model, expansion="operating"))).phrases()
    with pytest.raises(UsageError, match="no explanations"):
        Explanations(()).phrases()
    for wrong in ({"longest": 0}, {"least": 0}):
        with pytest.raises(UsageError, match="expected 1 or more"):
            found.phrases(**wrong)


def test_the_printed_table_shows_both_ends_once(model: Reader) -> None:
    phrases = explained(model).phrases(least=1)
    lines = str(phrases).splitlines()
    assert lines[0] == f"output 1 by secant: {len(phrases)} phrases in at least 1 text of 5"
    highest, lowest = lines.index(next(line for line in lines if line.startswith("highest"))), len(lines)
    lowest = lines.index(next(line for line in lines if line.startswith("lowest")))
    shown = [line.split() for line in lines[highest + 1 : lowest] if line.strip()]
    assert [float(line[0]) > 0 for line in shown] == [True] * len(shown)
    assert [" ".join(line[3:]) for line in shown] == [each.text for each in phrases[:10] if each.phrase_score > 0]
    below = [" ".join(line.split()[3:]) for line in lines[lowest + 1 :]]
    assert below == [each.text for each in phrases[:-11:-1] if each.phrase_score < 0]
    assert str(explained(model).phrases(least=6)).count("\n") == 0


def test_records_hold_every_phrase(model: Reader) -> None:
    phrases = explained(model).phrases(least=1)
    assert [each["text"] for each in phrases.to_records()] == [each.text for each in phrases]
    pandas = pytest.importorskip("pandas", reason="needs the extra [tables]")
    frame = phrases.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["phrase_score"].tolist() == [each.phrase_score for each in phrases]


def test_the_page_shows_both_ends_where_phrases_are_given(model: Reader, tmp_path: Path) -> None:
    found = explained(model)
    phrases = found.phrases(least=1)
    shown = found.save_html(tmp_path / "with.html", phrases=phrases).read_text()
    section = shown.partition("Phrases of all texts")[2].partition("</section>")[0]
    assert phrases.scope in section
    for each in (*phrases.highest, *phrases.lowest):
        row = f'<bdi>{each.text}</bdi></th><td class="number">{minus(signed(each.phrase_score))}</td>'
        assert row in section
    assert section.count("<bdi>") == 1 + len(phrases.highest) + len(phrases.lowest)
    assert "Phrases of all texts" not in found.save_html(tmp_path / "without.html").read_text()
    nothing = found.phrases(least=6)
    assert "Phrases of all texts" not in found.save_html(tmp_path / "none.html", phrases=nothing).read_text()


def test_phrases_are_only_text_on_the_page(tmp_path: Path) -> None:
    torch.manual_seed(0)
    hostile = "<script>alert(1)</script>"
    text = [hostile, "a", hostile]
    one = unrolled.explain(Reader(), torch.tensor([[0, 1, 0]]), tokens=text, target=1)
    found = Explanations((one, one))
    page = found.save_html(tmp_path / "page.html", phrases=found.phrases(least=1)).read_text()
    assert hostile not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_explanations_are_saved_as_their_numbers(model: Reader, tmp_path: Path) -> None:
    found = explained(model)
    saved = json.loads(found.save_json(tmp_path / "all.json").read_text())["accounts"]
    assert [each["ngrams"] for each in saved] == [each.to_records() for each in found]
    (one,) = json.loads(found[2].save_json(tmp_path / "one.json").read_text())["accounts"]
    assert one == saved[2]
    assert one["ledger"] == dict(found[2].ledger)


def test_an_end_of_the_phrases_that_is_empty_says_so(model: Reader, tmp_path: Path) -> None:
    found = explained(model)
    phrases = found.phrases(least=1)
    below = replace(phrases, members=tuple(each for each in phrases if each.phrase_score < 0))
    assert 0 < len(below) < len(phrases)
    none = '<td colspan="4" class="quiet">none</td>'
    assert found.save_html(tmp_path / "below.html", phrases=below).read_text().count(none) == 1
    assert none not in found.save_html(tmp_path / "both.html", phrases=phrases).read_text()


def test_a_printed_batch_has_a_line_for_each_example_and_says_what_shows_more(model: Reader) -> None:
    found = explained(model)
    lines = str(found).splitlines()
    assert len(lines) == len(found) + 1
    for line, each in zip(lines, found, strict=False):
        assert line.startswith(f"{each.target} {signed(each.ledger.logit)}  (")
        assert each.top(1)[0].text in line
    assert lines[-1].startswith(f"{len(found)} examples; ")
    assert ".phrases()" in lines[-1]
    many = Explanations(tuple(found) * 10)
    assert len(str(many).splitlines()) == 12
    assert "40 more" in str(many)
    assert repr(found).startswith("Explanations(5: ")


def test_the_explanations_of_batches_are_joined(model: Reader) -> None:
    found = explained(model)
    joined = found[:2] + found[2:3] + found[3:]
    assert list(joined) == list(found)
    assert joined.phrases(least=1).to_records() == found.phrases(least=1).to_records()
    assert found[:2].phrases(least=1).to_records() != found.phrases(least=1).to_records()  # control: a part of them
    with pytest.raises(TypeError, match="unsupported operand"):
        found + list(found)


class Ensemble(nn.Module):
    """Two networks that read one text, or each its own text."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = Reader(), Reader()

    def forward(self, tokens: Tensor, others: Tensor | None = None) -> Tensor:
        logits: Tensor = self.one(tokens) + self.other(tokens if others is None else others)
        return logits


def test_phrases_of_an_ensemble_that_reads_one_text_are_those_of_its_networks_together():
    torch.manual_seed(0)
    model = Ensemble()
    together, one, other = (
        {each.text: each for each in explained(each).phrases(least=1)} for each in (model, model.one, model.other)
    )
    assert set(together) == set(one)
    for text, each in together.items():
        assert (each.texts, each.count) == (one[text].texts, one[text].count)
        assert each.phrase_score == pytest.approx(one[text].phrase_score + other[text].phrase_score, abs=1e-5)


class FromBothEnds(Ensemble):
    """Its second network reads the text from the end."""

    def forward(self, tokens: Tensor, others: Tensor | None = None) -> Tensor:
        logits: Tensor = super().forward(tokens, tokens.flip(1) if others is None else others.flip(1))
        return logits


def test_phrases_of_an_ensemble_in_which_one_network_reads_from_the_end_are_those_of_the_text():
    torch.manual_seed(0)
    model, ids = FromBothEnds(), torch.tensor([[0, 1, 2, 2]])
    words = "never at all all".split()
    together = {
        each.text: each
        for each in Explanations((unrolled.explain(model, ids, target=1, tokens=words),)).phrases(least=1)
    }
    one = unrolled.explain(model.one, ids, target=1, tokens=words)
    other = unrolled.explain(model.other, ids.flip(1), target=1, tokens=words[::-1])
    assert {text: each.count for text, each in together.items()} == {
        "never": 1, "at": 1, "all": 2, "never at": 1, "at all": 1, "all all": 1, "never at all": 1, "at all all": 1
    }  # fmt: skip
    for start, stop in ((0, 1), (0, 2), (1, 3), (2, 4), (0, 3), (1, 4)):
        both = one.phrase_score(start, stop) + other.phrase_score(4 - stop, 4 - start)
        assert together[" ".join(words[start:stop])].phrase_score == pytest.approx(both, abs=1e-5)


def test_phrases_of_two_texts_of_which_one_is_read_from_its_end_are_as_each_is_read():
    found = unrolled.explain(FromBothEnds(), torch.tensor([[0, 1]]), torch.tensor([[1, 0]]), target=1)
    assert {each.count for each in Explanations((found,)).phrases(least=1)} == {2}


def test_phrases_of_two_texts_are_occurrences_of_their_own():
    ids = torch.tensor([[0, 1]])
    found = unrolled.explain(Ensemble(), ids, ids.clone(), target=1)
    assert {each.count for each in Explanations((found,)).phrases(least=1)} == {2}


class TwoSeries(nn.Module):
    """Reads two series of numbers."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.load, self.wind = (nn.GRU(2, 3, batch_first=True) for _ in range(2))
        self.head = nn.Linear(3, 2)

    def forward(self, load: Tensor, wind: Tensor) -> Tensor:
        logits: Tensor = self.head(self.load(load)[1][0] + self.wind(wind)[1][0])
        return logits


def test_the_steps_of_two_series_that_an_example_reads_are_different_phrases():
    load, wind = torch.linspace(-1, 1, 24).reshape(3, 4, 2), torch.linspace(2, 1, 24).reshape(3, 4, 2)
    found = unrolled.explain_batch(TwoSeries(), load, wind, target=1)
    phrases = {each.text: each for each in found.phrases(longest=2, least=1)}
    assert sorted(phrases) == sorted(
        f"{name}: {steps}" for name in ("load", "wind") for steps in ("x0", "x1", "x2", "x3", "x0 x1", "x1 x2", "x2 x3")
    )
    for name in ("load", "wind"):
        scores = [each.sequence(name).phrase_score(1, 3) for each in found]
        assert phrases[f"{name}: x1 x2"].phrase_score == pytest.approx(fmean(scores), abs=1e-6)
        assert (phrases[f"{name}: x1 x2"].order, phrases[f"{name}: x1 x2"].count) == (2, 3)
    words = {"load": [list("abcd")] * 3, "wind": [list("efgb")] * 3}  # the control: words are phrases of all sequences
    named = unrolled.explain_batch(TwoSeries(), load, wind, target=1, tokens=words)
    assert {each.text: each.count for each in named.phrases(longest=1, least=1)}["b"] == 6
    alone = [unrolled.explain(TwoSeries(), load[:1], wind[:1], target=1, rnn="load")]  # and so are those of one series
    assert {each.text for each in Explanations(tuple(alone)).phrases(longest=1, least=1)} == {"x0", "x1", "x2", "x3"}
