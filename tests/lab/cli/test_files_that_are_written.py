"""The files that a command writes: each has its own path, and none replaces another's."""

from __future__ import annotations

import os

import pytest

from unrolled.lab.training.run_folder import load_run

pytestmark = pytest.mark.usefixtures("beside_reviews")


def test_predictions_and_page_are_two_files(unrolled, tmp_path):
    (tmp_path / "folder").mkdir()
    words = ("evaluate", "runs/reviews", "--predictions", "a.csv", "--html")
    unrolled(*words, "a.csv").assert_refused(2, "--predictions and --html both name a.csv; name two files")
    unrolled(*words, "folder/../a.csv").assert_refused(2, "--predictions and --html both name a.csv")
    words = ("explain", "runs/reviews", "a dull film", "--json", "a.html", "--html")
    unrolled(*words, "folder/../a.html").assert_refused(2, "--html and --json both name a.html; name two files")


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("explain", "runs/reviews", "a dull film"), "--html=new.html"),
        (("explain", "runs/reviews", "a dull film"), "--json=new.json"),
        (("explain", "runs/reviews", "a dull film"), "--png=new.svg"),
        (("explain", "runs/reviews", "--file", "a.txt"), "--html=new.html"),
        (("explain", "runs/reviews", "--file", "a.txt"), "--json=new.json"),
        (("explain", "runs/reviews", "--file", "a.txt", "--target", "good"), "--phrases=new.csv"),
        (("evaluate", "runs/reviews"), "--html=new.html"),
        (("evaluate", "runs/reviews"), "--predictions=new.csv"),
        (("predict", "runs/reviews", "a.txt"), "--out=new.csv"),
    ],
)
def test_what_another_process_writes_meanwhile_is_not_replaced(unrolled, tmp_path, monkeypatch, words, option):
    (tmp_path / "a.txt").write_text("a dull film\na great film\n")
    path = tmp_path / option.partition("=")[2]

    def load_slowly(folder):
        path.write_text("another's")
        return load_run(folder)

    monkeypatch.setattr("unrolled.lab.training.run_folder.load_run", load_slowly)
    refused = unrolled(*words, option)
    assert refused.status == 74
    assert f"cannot write '{path.name}': it has been written meanwhile" in refused.err
    assert path.read_text() == "another's"
    assert unrolled(*words, option, "--force").status == 0  # the control: replacing it was asked for
    assert path.read_text() != "another's"


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("predict", "runs/reviews", "a.csv"), "--out"),
        (("evaluate", "runs/reviews", "--data", "a.csv"), "--predictions"),
        (("explain", "runs/reviews", "--file", "a.csv", "--target", "good"), "--phrases"),
    ],
)
def test_a_file_that_is_read_is_not_replaced_even_by_force(unrolled, tmp_path, words, option):
    content = "review,stars\na dull film,bad\na great film,good\n"
    (tmp_path / "a.csv").write_text(content)
    (tmp_path / "link.csv").symlink_to("a.csv")
    for name in ("a.csv", "link.csv"):
        unrolled(*words, option, name, "--force").assert_refused(2, f"{name} is a file that the command reads")
    assert (tmp_path / "a.csv").read_text() == content


@pytest.mark.parametrize(
    ("words", "option", "name"),
    [
        (("predict", "runs/reviews", "a.txt"), "--out", "log.csv"),
        (("evaluate", "runs/reviews"), "--predictions", "log.csv"),
        (("evaluate", "runs/reviews", "--data", "reviews.csv"), "--predictions", "log.csv"),
        (("evaluate", "runs/reviews"), "--html", "README.md"),
        (("explain", "runs/reviews", "a dull film"), "--json", "config.json"),
        (("explain", "runs/reviews", "a dull film"), "--json", "checkpoints/../task.json"),
        (("explain", "runs/reviews", "--file", "a.txt", "--target", "good"), "--phrases", "log.csv"),
    ],
)
def test_no_command_writes_over_a_file_of_the_run_that_it_reads(unrolled, tmp_path, words, option, name):
    (tmp_path / "a.txt").write_text("a dull film\na great film\n")
    path = tmp_path / "runs" / "reviews" / name
    before = path.read_bytes()
    refused = unrolled(*words, option, f"runs/reviews/{name}", "--force")
    refused.assert_refused(2, f"runs/reviews/{name} is a file that the command reads; choose another path")
    assert path.read_bytes() == before


def test_a_file_that_a_training_has_yet_to_write_is_not_written_by_another_command(unrolled, tmp_path):
    (tmp_path / "copy").mkdir()
    for each in (tmp_path / "runs" / "reviews").iterdir():
        if each.is_file() and each.name != "metrics.json":
            (tmp_path / "copy" / each.name).write_bytes(each.read_bytes())
    words = ("explain", "copy", "a dull film", "--json")
    unrolled(*words, "copy/metrics.json").assert_refused(2, "copy/metrics.json is a file that the command reads")
    assert not (tmp_path / "copy" / "metrics.json").exists()


def test_a_file_of_ones_own_may_lie_in_a_run_folder(unrolled, tmp_path):
    (tmp_path / "a.txt").write_text("a dull film\na great film\n")
    for _ in range(2):
        assert unrolled("predict", "runs/reviews", "a.txt", "--out", "runs/reviews/said.csv", "--force").status == 0
    (tmp_path / "runs" / "reviews" / "said.csv").unlink()


@pytest.mark.parametrize(
    "words", [("explain", "runs/reviews"), ("score", "runs/reviews"), ("translate", "runs/reviews")]
)
def test_a_text_in_another_encoding_is_refused_as_standard_input_is(unrolled, words):
    unrolled(*words, "caf\udce9 film").assert_refused(2, "the text has the byte 0xe9, which is not UTF-8")


@pytest.mark.parametrize(
    ("words", "option", "wrong", "usual"),
    [
        (("explain", "runs/reviews", "a dull film"), "--html", "page.pdf", ".html"),
        (("explain", "runs/reviews", "a dull film"), "--json", "page.html", ".json"),
        (("explain", "runs/reviews", "--file", "a.txt", "--target", "good"), "--phrases", "phrases.tsv", ".csv"),
        (("evaluate", "runs/reviews"), "--html", "page.json", ".html"),
        (("evaluate", "runs/reviews"), "--predictions", "said.jsonl", ".csv"),
        (("explain", "runs/reviews", "a dull film"), "--html", "page.txt", ".html"),
        (("predict", "runs/reviews", "a.txt"), "--out", "said.XLSX", ".csv"),
    ],
)
def test_a_suffix_of_another_format_is_refused(unrolled, tmp_path, words, option, wrong, usual):
    (tmp_path / "a.txt").write_text("a dull film\na great film\n")
    refused = unrolled(*words, option, wrong)
    suffix = wrong[wrong.index(".") :].lower()
    refused.assert_refused(2, f"{wrong} would hold the format of {usual}, not of {suffix}; choose a name that ends in")
    assert not (tmp_path / wrong).exists()
    assert unrolled(*words, option, "of_no_program.v2").status == 0  # the control: nobody chooses by such a name
    assert (tmp_path / "of_no_program.v2").exists()


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("explain", "runs/reviews", "a dull film"), "--html"),
        (("evaluate", "runs/reviews"), "--html"),
        (("predict", "runs/reviews", "a.txt"), "--out"),
    ],
)
def test_a_folder_in_which_nothing_can_be_written_is_told_before_the_work(unrolled, tmp_path, words, option):
    (tmp_path / "a.txt").write_text("a dull film\na great film\n")
    refused = unrolled(*words, option, "/proc/written")  # where root cannot write either
    refused.assert_refused(74, "/proc/written cannot be written: ", "; choose another folder")
    (tmp_path / "link").symlink_to("/proc/written")
    unrolled(*words, option, "link").assert_refused(74, "link cannot be written: ", "; choose another folder")


@pytest.mark.parametrize("options", [(), ("--force",)])
def test_predictions_for_standard_output_by_its_name_are_printed(unrolled, tmp_path, options):
    (tmp_path / "a.txt").write_text("a dull film\na great film\n")
    printed = unrolled("predict", "runs/reviews", "a.txt")
    named = unrolled("predict", "runs/reviews", "a.txt", "--out", "/dev/stdout", *options)
    assert (named.status, named.out) == (0, printed.out)
    assert printed.out.startswith("line,text,predicted")


@pytest.mark.parametrize("path", ["/dev/null", "/dev/stdout", "/dev/fd/1", "/dev/stderr", "/proc/self/fd/1", "pipe"])
def test_what_is_no_regular_file_is_refused_before_anything_is_computed(unrolled, tmp_path, path):
    os.mkfifo(tmp_path / "pipe")  # writing into it would wait for a reader for ever
    refused = unrolled("explain", "runs/reviews", "a dull film", "--json", path, "--force")
    refused.assert_refused(74, f"{path} is no regular file; give the path of one, e.g. written.json")
    assert not refused.out
    assert unrolled("explain", "runs/reviews", "a dull film", "--json", "new").status == 0  # the control
