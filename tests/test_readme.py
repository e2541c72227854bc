"""The README, the page of the laboratory and two guides do what they say: their Python runs, their commands exist."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import unrolled
from unrolled.cli.main import run

ROOT = Path(__file__).parent.parent
README, LABORATORY = ROOT / "README.md", ROOT / "docs" / "laboratory.md"
PAGES = pytest.mark.parametrize("page", [README, LABORATORY], ids=lambda page: page.stem)
FENCE = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, kind: str) -> list[str]:
    found = [match["text"] for match in FENCE.finditer(page.read_text()) if match["kind"] == kind]
    assert found, f"{page} has no block of {kind}"
    return found


def command_lines() -> list[list[str]]:
    """What stands behind ``$ unrolled`` in console blocks, up to the first option, comment or pipe."""
    lines = [line for page in (README, LABORATORY) for block in blocks(page, "console") for line in block.splitlines()]
    found = [line for line in lines if line.startswith("$ unrolled ")]
    return [shlex.split(line[2:], comments=True)[1:] for line in dict.fromkeys(found)]


@PAGES
def test_the_python_blocks_run_in_order(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "readme"}
    for number, text in enumerate(blocks(page, "python"), start=1):
        exec(compile(text, f"{page.name}, Python block {number}", "exec"), names)


@pytest.mark.slow
def test_the_guide_to_a_test_set_finds_the_shortcut_and_its_ranking_is_above_a_drawn_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for package in ("pandas", "matplotlib"):
        pytest.importorskip(package, reason="needs the extras [tables] and [figures]")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for text in blocks(ROOT / "docs" / "your-model.md", "python"):
        exec(compile(text, "your-model.md", "exec"), names)
    said = capsys.readouterr().out
    scores = {name: float(value) for name, value in re.findall(r"^([a-z ]+): ([+-][\d.]+)$", said, re.MULTILINE)}
    assert scores["shares"] > scores["drawn order"] + 0.2
    assert scores["secant"] > scores["drawn order"] + 0.2
    assert "free sample" in [each.text for each in names["phrases"].highest]
    assert {path.name for path in tmp_path.iterdir()} == {"test.html", "triangle.pdf", "ngrams.csv", "accounts.json"}
    one_logit, x = torch.nn.Linear(4, 1), torch.randn(50, 4)
    above = torch.sigmoid(one_logit(x))[:, 0] > 0.7
    assert names["WithThreshold"](one_logit, 0.7)(x).argmax(dim=1).equal(above.long())
    assert 0 < int(above.sum()) < 50
    assert "\\begin{tabular}" in said


def test_the_guide_to_an_expansion_of_your_own_checks_it(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {"__name__": "extending"}
    for text in blocks(ROOT / "docs" / "api" / "extending.md", "python"):
        exec(compile(text, "extending.md", "exec"), names)
    said = "without_rest says it is exact, but its n-grams miss the states of RNN(3, 4) by "
    assert capsys.readouterr().out.startswith(said)
    assert said in (ROOT / "docs" / "api" / "extending.md").read_text()


@pytest.mark.slow
def test_the_guide_to_series_finds_the_hours_that_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("pandas", "matplotlib"):
        pytest.importorskip(package, reason="needs the extras [tables] and [figures]")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for text in blocks(ROOT / "docs" / "series-from-a-file.md", "python"):
        exec(compile(text, "series-from-a-file.md", "exec"), names)
    by_lag = names["by_lag"]
    assert by_lag["temperature"].loc[6:1].min() > 2 * by_lag["temperature"].loc[12:7].max()
    assert by_lag["wind"].max() < by_lag["temperature"].loc[6:1].min()


@pytest.mark.parametrize("seed", range(4))
def test_the_classifier_of_the_example_learns_what_the_comment_says(
    seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    (text,) = (block for block in blocks(LABORATORY, "python") if "RecurrentClassifier" in block)
    (said,) = re.findall(r"# (\[.*?\])", text)
    exec(compile(text.replace("random_state=0", f"random_state={seed}"), "laboratory.md", "exec"), {})
    assert capsys.readouterr().out.startswith(said)


@pytest.mark.slow
def test_the_python_blocks_pass_mypy_strict(tmp_path: Path) -> None:
    """Without this project's own settings, as one who installs it would run it."""
    pytest.importorskip("mypy", reason="needs the extra [dev]")
    files = ["of_the_readme.py", "of_the_laboratory.py"]  # together: mypy reads what they import once
    for name, page in zip(files, (README, LABORATORY), strict=True):
        (tmp_path / name).write_text("\n".join(blocks(page, "python")))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=", *files],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("words", command_lines(), ids=" ".join)
def test_a_command_line_parses(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """``--help`` ends a command line after its options are parsed, but before anything is done."""
    status = run([*words, "--help"])
    captured = capsys.readouterr()
    assert status == 0, captured.err
    assert "Usage: unrolled" in captured.out
    for option in (word.partition("=")[0] for word in words if word.startswith("--")):
        assert option in captured.out, f"{option} is no option of this command"


def test_the_commands_of_the_readme_write_different_files() -> None:
    """A file that exists is not written over: a reader who runs the README in one folder would be refused."""
    written = re.findall(r"(?:--(?:html|out|predictions)|save_html\(\") ?([\w./]+)", README.read_text())
    assert len(written) >= 5
    assert len(set(written)) == len(written), written


@PAGES
def test_every_picture_and_page_it_links_to_is_there(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # the library warns of its own calls
def test_a_model_in_a_folder_of_transformers_is_accounted_for_as_its_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    transformers = pytest.importorskip("transformers", reason="needs the extra [dev]")
    tokenizers = pytest.importorskip("tokenizers", reason="needs the extra [tokenizers]")
    words = ["[PAD]", "[UNK]", *"it is not a bad film".split()]
    tokens = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: k for k, word in enumerate(words)}, unk_token="[UNK]")
    )
    tokens.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    config = transformers.MambaConfig(vocab_size=len(words), hidden_size=16, num_hidden_layers=1)
    transformers.MambaForCausalLM(config).save_pretrained(tmp_path)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokens, unk_token="[UNK]", pad_token="[PAD]")
    fast.save_pretrained(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    page = ROOT / "docs" / "mamba-and-rwkv.md"
    (text,) = (text for text in blocks(page, "python") if "from_pretrained" in text)
    capsys.readouterr()
    exec(compile(text.replace("FOLDER", str(tmp_path)), page.name, "exec"), {"unrolled": unrolled})
    said = capsys.readouterr().out
    assert said.split("tokens\n")[1].split("\n")[0].split() == "it is not a bad film".split()
    assert "closes: the remainder is rounding" in said
