"""An engineer with reviews.csv: training, errors of the model on a page, predictions in a file."""

from __future__ import annotations

import csv
import io
import sys

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from toy_reviews import review_rows
from unrolled.lab.metrics.confusion import Confusion
from unrolled.lab.training.run_folder import load_run

pytestmark = pytest.mark.usefixtures("beside_reviews")


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_two_commands_lead_from_a_csv_with_other_columns_to_a_page_of_the_errors(unrolled, tmp_path):
    done = unrolled("evaluate", "runs/reviews", "--html", "errors.html", "--predictions", "predictions.csv")
    assert done.status == 0, done.err
    found = table((tmp_path / "predictions.csv").read_text())
    wrong = [row for row in found if row["label"] != row["predicted"]]
    assert f"the worst of {len(wrong)} errors" in done.out
    assert f"page: errors.html: {len(wrong)} errors" in done.out
    page = (tmp_path / "errors.html").read_text()
    assert "Errors of reviews" in page
    assert '"true":' in page


def test_the_predictions_are_text_label_predicted_and_probabilities_and_the_printed_scores_are_theirs(
    unrolled, tmp_path
):
    done = unrolled("evaluate", "runs/reviews", "--predictions", "predictions.csv")
    found = table((tmp_path / "predictions.csv").read_text())
    assert list(found[0]) == ["line", "text", "label", "predicted", "p(bad)", "p(good)"]
    whole = {number: (row["review"], row["sentiment"]) for number, row in enumerate(review_rows(), 2)}
    assert all(whole[int(row["line"])] == (row["text"], row["label"]) for row in found)
    run = load_run(tmp_path / "runs" / "reviews")
    shares = run.predict_proba([row["text"] for row in found])
    assert np.allclose(shares, [[float(row["p(bad)"]), float(row["p(good)"])] for row in found], atol=1e-5)
    assert [row["predicted"] for row in found] == [("bad", "good")[k] for k in shares.argmax(axis=1)]
    truths, answers = ([row[key] for row in found] for key in ("label", "predicted"))
    for name, scores in zip(
        ("bad", "good"),
        zip(*precision_recall_fscore_support(truths, answers, zero_division=0), strict=True),
        strict=True,
    ):
        line = next(line for line in done.out.splitlines() if line.startswith(name))
        assert line.split()[1:4] == [f"{value:.1%}" for value in scores[:3]]
        assert line.split()[4] == f"{scores[3]}"


def test_a_file_is_compared_with_the_examples_of_the_training(unrolled, tmp_path):
    done = unrolled("evaluate", "runs/reviews", "--data", "reviews.csv")
    assert done.status == 0, done.err
    assert "warning: 240 of the 300 examples (80.0%) are ones that the model was trained on, and 30 more" in done.err
    with (tmp_path / "new.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "review", "sentiment", "date"])
        writer.writeheader()
        writer.writerows(row | {"review": f"again {row['review']}"} for row in review_rows())
    new = unrolled("evaluate", "runs/reviews", "--data", "new.csv")
    assert (new.status, "trained on" in new.err) == (0, False), new.err


def test_confusion_is_that_of_scikit_learn():
    drawn = np.random.default_rng(0)
    for classes in (2, 5):
        truths, answers = drawn.integers(0, classes, (2, 60)).tolist()
        found = Confusion.of([str(k) for k in range(classes)], truths, answers)
        assert np.array_equal(found.counts, confusion_matrix(truths, answers, labels=range(classes)))
        scores = precision_recall_fscore_support(truths, answers, labels=range(classes), zero_division=0)
        mine = [(s.precision, s.recall, s.f1, s.examples) for s in found.scores]
        assert np.allclose(np.array(mine).T, scores)
        assert np.isclose(found.macro_f1, np.mean(scores[2]))
    assert (
        Confusion.of(("a", "b"), [0, 0], [0, 0]).macro_f1 == 1.0
    )  # a class without examples or predictions counts not


def test_a_network_that_says_one_class_of_every_text_is_told(unrolled, tmp_path):
    lines = [f"text {number} of a day,{'rare' if number % 5 == 0 else 'usual'}" for number in range(100)]
    (tmp_path / "odd.csv").write_text("text,label\n" + "\n".join(lines) + "\n")
    small = ("--hidden", 4, "--embedding", 4, "--epochs", 1, "--lr", 1e-6)
    done = unrolled("train", "classify", "--data", "odd.csv", *small, "--out", "odd")
    run = load_run(tmp_path / "odd")
    said = unrolled("evaluate", "odd", "--data", "odd.csv", "--predictions", "odd-predictions.csv").out
    answers = {row["predicted"] for row in table((tmp_path / "odd-predictions.csv").read_text())}
    assert len(answers) == 1
    assert f"every text is predicted to be {answers.pop()}, so accuracy" in said
    unrolled("evaluate", "odd", "--predictions", "test.csv")
    test = table((tmp_path / "test.csv").read_text())
    shares = [sum(row["label"] == name for row in test) / len(test) for name in ("rare", "usual")]
    assert max(shares) >= run.metrics["test_accuracy"]
    usual = ("rare", "usual")[shares.index(max(shares))]
    assert f"the same class for every text, {usual}, has an accuracy of {max(shares):.2%}" in done.err


def test_a_network_that_tells_the_classes_apart_is_not_told_so(unrolled, tmp_path):
    lines = [f"a text that is {('dull', 'great')[number % 2]},{('bad', 'good')[number % 2]}" for number in range(100)]
    (tmp_path / "two.csv").write_text("text,label\n" + "\n".join(lines) + "\n")
    small = ("--hidden", 8, "--embedding", 8, "--epochs", 8, "--lr", 0.05)
    done = unrolled("train", "classify", "--data", "two.csv", *small, "--out", "two")
    assert load_run(tmp_path / "two").metrics["test_accuracy"] == 1.0
    assert "for every text" not in done.err
    assert "every text is predicted" not in unrolled("evaluate", "two").out


def test_the_only_answer_is_told_of_several_classes_only():
    assert Confusion.of(("a", "b", "c"), [0, 1, 1], [1, 1, 1]).only_answer == "b"
    assert Confusion.of(("a", "b", "c"), [0, 1, 1], [2, 2, 2]).only_answer == "c"
    assert Confusion.of(("a", "b"), [1, 1], [1, 1]).only_answer is None
    assert Confusion.of(("a", "b"), [0, 1, 1], [1, 1, 0]).only_answer is None
    assert Confusion.of(("a", "b"), [], []).only_answer is None


def test_predict_reads_tables_lines_and_standard_input(unrolled, tmp_path, monkeypatch):
    texts = [row["review"] for row in review_rows(20, seed=3)]
    (tmp_path / "a.txt").write_text("".join(f"{text}\n" for text in texts))
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file, delimiter=";").writerows([("nr", "comment"), *((n, text) for n, text in enumerate(texts))])
    (tmp_path / "a.jsonl").write_text("".join(f'{{"comment": "{text}", "nr": 1}}\n' for text in texts))
    run = load_run(tmp_path / "runs" / "reviews")
    expected = [(text, label) for text, label in zip(texts, run.predict(texts), strict=True)]
    for name in ("a.txt", "a.csv", "a.jsonl"):
        done = unrolled("predict", "runs/reviews", name)
        assert done.status == 0, done.err
        assert [(row["text"], row["predicted"]) for row in table(done.out)] == expected
        first = 2 if name == "a.csv" else 1
        assert [int(row["line"]) for row in table(done.out)] == list(range(first, first + len(texts)))
    two = table(unrolled("predict", "runs/reviews", "a.csv", "a.txt").out)
    assert [(row["file"], row["line"]) for row in two[19:21]] == [("a.csv", "21"), ("a.txt", "1")]
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{text}\n" for text in texts)))
    assert [(row["text"], row["predicted"]) for row in table(unrolled("predict", "runs/reviews").out)] == expected


def test_a_file_that_is_named_twice_is_noted(unrolled, tmp_path, monkeypatch):
    for name in ("a.txt", "same.txt"):
        (tmp_path / name).write_text("a great film\n")
    (tmp_path / "linked.txt").symlink_to(tmp_path / "a.txt")
    for again in ("a.txt", "./a.txt", "linked.txt"):
        twice = unrolled("predict", "runs/reviews", "a.txt", again)
        assert len(table(twice.out)) == 2
        assert "a.txt is given 2 times; each of its texts is predicted 2 times" in twice.err
    assert "given" not in unrolled("predict", "runs/reviews", "a.txt", "same.txt").err
    monkeypatch.setattr("sys.stdin", io.StringIO("a great film\n"))
    unrolled("predict", "runs/reviews", "-", "-").assert_refused(2, "standard input is named twice", "name it once")
    assert unrolled("predict", "runs/reviews", "-").status == 0


def test_a_byte_order_mark_on_standard_input_is_no_word(unrolled, tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfa dull film\na dull film\n")
    expected = unrolled("predict", "runs/reviews", "a.txt").out
    first, second = (list(row.values())[1:] for row in table(expected))
    assert first == second
    monkeypatch.setattr("sys.stdin", io.StringIO("\ufeffa dull film\r\na dull film\n"))
    assert unrolled("predict", "runs/reviews").out == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a film\ncaf\xe9\n", "2: expected UTF-8 text, found the byte 0xe9 at column 4; save"),
        ("a film\n".encode("utf-16"), "1: expected UTF-8 text, found UTF-16; save"),
        (b"a\0film\n", "1: expected text, found a NUL at column 2;"),
        (b"a film\ra dull film\r", "1: expected lines that end in a line feed, found carriage returns alone; save"),
    ],
)
def test_standard_input_is_refused_as_the_same_file_is(unrolled, tmp_path, monkeypatch, content, expected):
    (tmp_path / "a.txt").write_bytes(content)
    unrolled("predict", "runs/reviews", "a.txt").assert_refused(65, f"a.txt:{expected}")
    foreign = io.StringIO(content.decode(errors="surrogateescape"), newline="\n")  # as Python reads it in C.UTF-8
    monkeypatch.setattr("sys.stdin", foreign)
    refused = unrolled("predict", "runs/reviews")
    refused.assert_refused(65, f"standard input:{expected}")
    assert "convert it" not in refused.err  # no command converts it by a name
    monkeypatch.setattr("sys.stdin", io.StringIO("café\n"))
    assert unrolled("predict", "runs/reviews").status == 0


def test_a_text_of_which_the_model_knows_no_word_is_noted(unrolled, tmp_path):
    (tmp_path / "a.txt").write_text("a dull film\nzorgle wumpus\nzorgle zorgle\nzorgle film\n")
    note = "2 texts have no word that the model knows, so the prediction says little (a.txt: lines 2-3)"
    done = unrolled("predict", "runs/reviews", "a.txt", "--out", "p.csv")
    assert done.out == f"4 predictions: p.csv; {note}\n"
    assert unrolled("predict", "runs/reviews", "a.txt").err == f"{note}\n"
    assert [row["predicted"] in ("good", "bad") for row in table((tmp_path / "p.csv").read_text())] == [True] * 4
    (tmp_path / "b.txt").write_text("a dull film\nzorgle film\n")  # the control
    assert unrolled("predict", "runs/reviews", "b.txt").err == ""


def test_a_text_without_a_word_keeps_its_row_and_has_no_prediction(unrolled, tmp_path):
    (tmp_path / "a.txt").write_text("a dull film\n\n   \na great film\n")
    done = unrolled("predict", "runs/reviews", "a.txt", "--out", "p.csv")
    assert done.out == "2 predictions: p.csv; 2 texts without a word have no prediction (a.txt: lines 2-3)\n"
    assert (
        unrolled("predict", "runs/reviews", "a.txt").err
        == "2 texts without a word have no prediction (a.txt: lines 2-3)\n"
    )
    assert [bool(row["predicted"]) for row in table((tmp_path / "p.csv").read_text())] == [True, False, False, True]


def test_bad_input_is_one_line_with_the_way_out(unrolled, tmp_path):
    (tmp_path / "p.csv").write_text("mine")
    (tmp_path / "two.csv").write_text("a,b\n" + "x y z,u v w\n" * 3 + "r s t,o p q\n" * 3)
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9\n")
    evaluated = ("evaluate", "runs/reviews")
    unrolled(*evaluated, "--predictions", "p.csv").assert_refused(2, "p.csv already exists", "--force")
    unrolled("predict", "runs/reviews", "reviews.csv", "--out", "p.csv").assert_refused(2, "p.csv already exists")
    assert (tmp_path / "p.csv").read_text() == "mine"
    unrolled(*evaluated, "--predictions", "gone/p.csv").assert_refused(74, "the folder gone does not exist")
    unrolled(*evaluated, "--html", "runs").assert_refused(74, "runs is a folder")
    unrolled("train", "classify", "--data", ".").assert_refused(74, ". is a folder; give a file")
    unrolled(*evaluated, "--data", ".").assert_refused(74, ". is a folder; give a file")
    unrolled(*evaluated, "--data", "gone.csv").assert_refused(74, "gone.csv: cannot be read: No such file")
    unrolled(*evaluated, "--no-header").assert_refused(2, "are for --data FILE")
    unrolled(*evaluated, "--data", "reviews.csv", "--label-column", "sentimen").assert_refused(
        2, "did you mean 'sentim"
    )
    swapped = unrolled("predict", "reviews.csv", "runs/reviews")
    swapped.assert_refused(65, "reviews.csv is a file, not a run folder, which `unrolled train` writes")
    unrolled("predict", "runs/reviews", "gone.csv").assert_refused(74, "gone.csv: cannot be read: No such file")
    unrolled("predict", "runs/reviews", "two.csv").assert_refused(65, "--no-header if it is an example")
    unrolled("predict", "runs/reviews", "latin.txt").assert_refused(65, "latin.txt:1: expected UTF-8 text")
    unrolled("predict", "runs/reviews", "reviews.csv", "--text-column", "revue").assert_refused(
        2, "did you mean 'review'"
    )


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("tags.conll", 2, "the format conll, which is read for a training or an evaluation only; give .csv"),
        ("latin.txt", 65, "expected UTF-8 text"),
    ],
)
def test_of_a_file_that_is_refused_no_header_is_printed(unrolled, tmp_path, name, status, reason):
    (tmp_path / name).write_bytes(b"caf\xe9 O\n")
    done = unrolled("predict", "runs/reviews", name)
    done.assert_refused(status, reason)
    assert done.out == ""
    (tmp_path / "good.txt").write_text("coffee O\n")
    assert unrolled("predict", "runs/reviews", "good.txt").out.startswith("line,text,predicted,")


def test_a_prediction_of_no_texts_is_a_table_without_rows(unrolled, tmp_path):
    (tmp_path / "none.txt").write_text("")
    (tmp_path / "header.csv").write_text("review,stars\n")
    for name in ("none.txt", "header.csv"):
        done = unrolled("predict", "runs/reviews", name)
        assert (done.status, done.out) == (0, "line,text,predicted,p(bad),p(good)\n")
        assert done.err.splitlines()[-1] == f"no text to predict in {name}"
    assert "no text" not in unrolled("predict", "runs/reviews", "reviews.csv").err


def test_a_terminal_gets_symbols_for_escape_bytes_and_a_pipe_the_text(unrolled, tmp_path, monkeypatch):
    text = "a \x1b]0;title\x07dull \x1b[31mfilm"
    (tmp_path / "a.csv").write_text(f'line,text\n1,"{text}"\n')
    piped = unrolled("predict", "runs/reviews", "a.csv")
    assert table(piped.out)[0]["text"] == text
    assert unrolled("predict", "runs/reviews", "a.csv", "--out", "p.csv").status == 0
    assert (tmp_path / "p.csv").read_text() == piped.out
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda _: True)
    shown = unrolled("predict", "runs/reviews", "a.csv")
    assert shown.out == piped.out.replace("\x1b", "␛").replace("\x07", "␇")
    assert "\x1b" not in shown.out + shown.err


def test_explain_reads_standard_input_as_a_file_of_a_text_a_line(unrolled, tmp_path, monkeypatch):
    content = "a dull film\n\na great film\n"
    (tmp_path / "a.txt").write_text(content)
    of_file = unrolled("explain", "runs/reviews", "--file", "a.txt")
    monkeypatch.setattr("sys.stdin", io.StringIO(content))
    piped = unrolled("explain", "runs/reviews", "--file", "-", "--html", "a.html")
    assert piped.out == f"{of_file.out}page: a.html\n"
    assert "Explanations of standard input" in (tmp_path / "a.html").read_text()
    monkeypatch.setattr("sys.stdin", io.StringIO("a dull film\ncaf\udce9\n"))
    refused = unrolled("explain", "runs/reviews", "--file", "-")
    assert refused.status == 65
    assert "standard input:2: expected UTF-8 text" in refused.err
    monkeypatch.setattr("sys.stdin", io.StringIO(content))
    message = "--text-column is given, but standard input is read as a text a line"
    unrolled("explain", "runs/reviews", "--file", "-", "--text-column", "1").assert_refused(2, message)


def test_a_split_of_a_file_and_a_column_of_standard_input_are_refused(unrolled, tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("review,stars\na dull film,1\n")
    message = "--split is dev, but a.csv is a file without splits; leave it out"
    for words in (("evaluate", "--data", "a.csv"), ("predict", "a.csv"), ("explain", "--file", "a.csv")):
        command, *rest = words
        unrolled(command, "runs/reviews", *rest, "--split", "dev").assert_refused(2, message)
    assert unrolled("predict", "runs/reviews", "a.csv", "--text-column", "review").status == 0
    monkeypatch.setattr("sys.stdin", io.StringIO("review,stars\na dull film,1\n"))
    for option in (("--text-column", "review"), ("--no-header",), ("--split", "dev")):
        refused = unrolled("predict", "runs/reviews", *option)
        refused.assert_refused(
            2,
            f"{option[0]} is given, but standard input is read as a text a line, as JSON lines, or as a table whose "
            "first line names the texts; give the path of a file",
        )
    assert unrolled("predict", "runs/reviews").status == 0
