from __future__ import annotations

import io
import re
import subprocess
import sys

import pytest
from rich.cells import cell_len
from rich.console import Console

from unrolled.report.formatting import signed, visible
from unrolled.report.page_data import PageExample, examples_data
from unrolled.report.spans import largest_phrases
from unrolled.report.terminal import render, to_text

SGR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("coloured", [False, True])
def test_a_token_can_neither_colour_nor_move(build, hostile, coloured):
    attribution = build(["a", hostile, "c"], target=hostile, notes=(hostile,), expansion=hostile)
    text = to_text(attribution, width=400, colour=coloured)
    assert bool(SGR.search(text)) == coloured
    bare = SGR.sub("", text)
    assert not [c for c in bare if (ord(c) < 32 and c != "\n") or 0x7F <= ord(c) < 0xA0 or c in "\u2028\u202e"]
    assert visible(hostile)[:40].strip() in bare


@pytest.mark.parametrize("token", ["[red]", "[/]", "[link=x]y", "\\[b]", ":smile:"])
def test_markup_is_printed_literally(build, token):
    assert token in to_text(build([token, "b"]))
    assert token in SGR.sub("", to_text(build([token, "b"]), colour=True))


def test_colour_changes_nothing_but_colour(build):
    attribution = build(bidirectional=True)
    lines = SGR.sub("", to_text(attribution, colour=True)).splitlines()
    assert [line.rstrip() for line in lines] == to_text(attribution).splitlines()


def test_the_ledger_is_a_sum_and_the_errors_are_told(build):
    attribution = build(exact=False)
    text = to_text(attribution)
    for name, value in attribution.ledger.items():
        word = {"ngrams": "n-grams", "initial": "initial state"}.get(name, name)
        assert re.search(rf"{word} +{re.escape(signed(value))}\n", text)
    assert "residual" not in text
    assert "parity" not in text
    assert "path is not exact: its n-grams miss the state by 1.8 times its size" in text
    assert "exact, but rounding is 0.5 of the state" in to_text(build(residual=0.5))
    assert "path is exact: its n-grams sum to the state" in to_text(build())
    assert re.search(r"remainder \S+ of the logit", text)


def test_the_ledger_of_one_of_several_sequences_is_named(build):
    assert re.search(r"^  n-grams of a␉b +[+-]", to_text(build(name="a\tb")), re.MULTILINE)
    assert "n-grams of" not in to_text(build())  # the control


def test_the_triangle_stands_on_its_sentence(build):
    lines = to_text(build()).splitlines()
    foot = max(k for k, line in enumerate(lines) if line.split() == ["not", "a", "bad", "film"])
    assert lines[foot - 1].split() == ["-1.50", "+0.25", "+0.75", "-0.50"]
    assert lines[foot - 4].split() == [f"{build().phrase_score(0, 4):+.2f}"]


def test_both_directions_are_named(build):
    text = to_text(build(bidirectional=True))
    assert "phrases, forward" in text
    assert "phrases, backward" in text
    assert "forward" not in to_text(build())


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_no_line_is_wider_than_the_terminal(build, width):
    text = to_text(build(["日本語", "👩\u200d👩\u200d👧", "incomprehensibilities"] * 5), width=width)
    assert max(cell_len(line) for line in text.splitlines()) <= width


def test_a_triangle_that_does_not_fit_is_left_out_and_said_so(build):
    assert "omitted, the triangle needs 160 columns" in to_text(build(["w"] * 20), width=100)
    assert "omitted" not in to_text(build(["w"] * 20), width=160)


def test_top_lists_as_many_as_asked_and_none_that_is_not_read(build):
    spans = re.compile(r"\[\d+, \d+\)")
    assert len(spans.findall(to_text(build(), top=2))) == 2
    for attribution in (build(), build(mean=True)):
        rows = largest_phrases(attribution, 99)
        assert len(spans.findall(to_text(attribution, top=99))) == len(rows)
        assert sum(1 + row.copies for row in rows) == int(attribution.triangle.contributions.ne(0).sum())


def test_it_prints_through_any_console(build):
    stream = io.StringIO()
    Console(file=stream, width=80).print(render(build()))
    assert "= logit" in stream.getvalue()


def test_numbers_are_never_cut_to_make_room_for_words(build):
    attribution = build([f"a-rather-long-word-{n}" for n in range(12)])
    text = to_text(attribution, width=80, top=5)
    for row in largest_phrases(attribution, 5):
        assert re.search(rf"{re.escape(signed(row.contribution))}\s+{re.escape(signed(row.score))}", text)


def test_ngrams_that_were_not_told_apart_are_left_out_and_summed_up(build):
    whole = build(mean=True)
    rest = sum(ngram.contribution for ngram in whole.ngrams() if ngram.order > 2)
    part = build(mean=True, max_order=2, by_token=whole.token_scores)
    for band in (part.triangle.score_band, part.triangle.contribution_band):
        band[:, :, 2:] = 0
    text = to_text(part)
    assert f"n-grams of more than 2 tokens contribute {signed(rest)}" in text
    (data,) = examples_data([PageExample((part,))])
    assert len(data["panels"][0]["classes"][0]["score"][0]) == 2
    assert data["panels"][0]["options"][0]["longer"] == pytest.approx(rest)
    assert "n-grams of more than" not in to_text(whole)


@pytest.mark.parametrize("width", [60, 100])
def test_the_places_of_long_ngrams_are_shown_and_only_their_words_are_cut(build, width):
    text = to_text(build([f"word{k}" for k in range(40)]), width=width)
    lines = text.splitlines()
    (head,) = [k for k, line in enumerate(lines) if line.split()[1:3] == ["phrase", "score"]]
    assert lines[head].split() == ["contribution", "phrase", "score", "tokens", "n-gram"]
    rows = lines[head + 1 : head + 4]
    assert all(re.search(r"\[\d+, \d+\) +word", row) for row in rows)
    assert max(map(len, lines)) <= width


def test_a_narrow_terminal_shows_words_and_no_scores(build):
    lines = to_text(build([f"word{k}" for k in range(40)]), width=40).splitlines()
    (head,) = [k for k, line in enumerate(lines) if line.split() == ["contribution", "tokens", "n-gram"]]
    assert all(re.search(r"\[\d+, \d+\) +word\d+", row) for row in lines[head + 1 : head + 4])
    assert max(map(len, lines)) <= 40


def test_the_numbers_under_the_words_are_named(build):
    text = to_text(build(["not", "bad"]))
    assert text.index("contribution of each token: the sum of all n-grams that enter there") < text.index("not")


FIRST = """
import random
import sys

import torch

import unrolled

model, x = torch.nn.GRU(3, 4, batch_first=True), torch.zeros(1, 2, 3)
before = random.getstate()
assert "rich" not in sys.modules
{what}
assert "rich" in sys.modules
sys.exit("drew" if random.getstate() != before else 0)
"""
FIRST_SHOWN = {
    "check": "unrolled.check(model, x, target=lambda out: out[0][:, -1, 0])",
    "print": "print(unrolled.account(model, x, target=lambda out: out[0][:, -1, 0]))",
    "rich by itself": "import rich.style",
}


@pytest.mark.slow
@pytest.mark.parametrize("what", FIRST_SHOWN)
def test_the_first_table_of_a_process_draws_no_random_numbers(what):
    program = FIRST.format(what=FIRST_SHOWN[what])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ("drew" if what == "rich by itself" else "")


def test_a_blank_within_an_ngram_is_shown_as_it_is_alone(build):
    for middle, shown in ((" ", "␣"), ("not", "not")):
        text = to_text(build(["a", middle, "b"], mean=True), top=99)
        spans = re.findall(r"\[(\d), (\d)\) +(.+?)(?: and \d near-cop.*)?\n", text)
        assert any(int(stop) - int(start) > 1 for start, stop, _ in spans)
        for start, stop, ngram in spans:
            assert ngram == " ".join(["a", shown, "b"][int(start) : int(stop)])
