"""The README does what it says: its Python runs, in order, and its command lines exist."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from unrolled.cli.main import run

README = Path(__file__).parent.parent / "README.md"
FENCE = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(kind: str) -> list[str]:
    return [match["text"] for match in FENCE.finditer(README.read_text()) if match["kind"] == kind]


def command_lines() -> list[list[str]]:
    """What stands behind ``$ unrolled`` in console blocks, up to the first option, comment or pipe."""
    lines = [line for block in blocks("console") for line in block.splitlines()]
    return [shlex.split(line[2:], comments=True)[1:] for line in lines if line.startswith("$ unrolled ")]


def test_the_python_blocks_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = blocks("python")
    assert found
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "readme"}
    for number, text in enumerate(found, start=1):
        exec(compile(text, f"README.md, Python block {number}", "exec"), names)


@pytest.mark.parametrize("seed", range(4))
def test_the_classifier_of_the_example_learns_what_the_comment_says(
    seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    (text,) = (block for block in blocks("python") if "RecurrentClassifier" in block)
    (said,) = re.findall(r"# (\[.*?\])", text)
    exec(compile(text.replace("random_state=0", f"random_state={seed}"), "README.md", "exec"), {})
    assert capsys.readouterr().out.startswith(said)


@pytest.mark.slow
def test_the_python_blocks_pass_mypy_strict(tmp_path: Path) -> None:
    """Without this project's own settings, as one who installs it would run it."""
    pytest.importorskip("mypy")
    path = tmp_path / "quick_start.py"
    path.write_text("\n".join(blocks("python")))
    sources = str(README.parent / "src")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=", path.name],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": sources},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout


def test_the_command_lines_exist() -> None:
    assert command_lines()


@pytest.mark.parametrize("words", command_lines(), ids=" ".join)
def test_a_command_line_parses(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """``--help`` ends a command line after its options are parsed, but before anything is done."""
    status = run([*words, "--help"])
    captured = capsys.readouterr()
    assert status == 0, captured.err
    assert "Usage: unrolled" in captured.out
    for option in (word.partition("=")[0] for word in words if word.startswith("--")):
        assert option in captured.out, f"{option} is no option of this command"


def test_every_picture_and_page_it_links_to_is_there() -> None:
    for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", README.read_text()):
        assert (README.parent / target).exists(), target
