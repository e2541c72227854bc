"""The pages name what exists. `make docs` runs the notebooks and checks every link between pages."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

import unrolled
from unrolled.cells import CELLS
from unrolled.cli.main import run
from unrolled.composition import ENCODERS
from unrolled.lab.papers import EXPERIMENTS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))


def test_every_model_that_the_page_lists_exists() -> None:
    page = (DOCS / "models.md").read_text()
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert len(listed) > 30
    assert listed <= {*CELLS.names(), *ENCODERS.names()}


def test_every_public_name_stands_in_the_reference() -> None:
    text = "".join(path.read_text() for path in (DOCS / "api").glob("*.md"))
    errors = {name for name in unrolled.__all__ if name.endswith("Error")}  # documented by their module
    missing = {name for name in unrolled.__all__ if not re.search(rf":: (unrolled\.)?{name}\b", text)}
    assert missing - errors <= {"__version__", "cells"}


def test_the_courses_name_items_that_exist() -> None:
    named = set(re.findall(r"unrolled reproduce ([\w/-]+)", (DOCS / "courses.md").read_text()))
    assert len(named) >= 9
    assert named <= set(EXPERIMENTS.names())


def test_the_places_of_new_members_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rows = [line.split("|")[1:-1] for line in text[: text.index("<!-- a new cell -->")].splitlines() if "|" in line]
    assert len(rows) > 8
    package = ROOT / "src" / "unrolled"
    named = [place for row in rows for place in re.findall(r"`([\w/.]+(?:/|\.toml|\.py))`", "".join(row))]
    places = [place.removeprefix("src/unrolled/").removesuffix("PAPER/") for place in named]
    starts = (ROOT, package, package / "lab" / "papers" / "ours")
    missing = {each for each in places if not any((start / each).exists() for start in starts)}
    assert len(places) > 8
    assert not missing
    sources = "".join(path.read_text() for path in package.rglob("*.py"))
    classes = [name for row in rows for name in re.findall(r"`([A-Z]\w+)`", row[2])]
    assert len(classes) > 8
    assert not {name for name in classes if not re.search(rf"^class {name}\(", sources, re.MULTILINE)}


def commands(page: str) -> list[list[str]]:
    codes = re.findall(r"`unrolled ([^`]+)`", (DOCS / page).read_text())
    return [shlex.split(code) for code in codes]


@pytest.mark.parametrize("words", commands("courses.md"), ids=" ".join)
def test_the_commands_of_the_courses_have_their_options(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """``--help`` ends a command line after its options are parsed, but before anything is done."""
    status = run([*words, "--help"])
    captured = capsys.readouterr()
    assert status == 0, captured.err
    for option in (word for word in words if word.startswith("--")):
        assert option in captured.out, f"{option} is no option of this command"
    if words[0] == "train":
        assert "--data" in words


def test_the_citation_names_this_version() -> None:
    entry = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert entry["cff-version"] == "1.2.0"
    assert {"title", "authors", "message", "license"} <= set(entry)
    assert entry["version"] == unrolled.__version__.partition(".dev")[0]
    assert f"{{{entry['version']}}}" in (DOCS / "cite.md").read_text()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_its_outputs(path: Path) -> None:
    cells = json.loads(path.read_text())["cells"]
    assert sum(cell["cell_type"] == "code" for cell in cells) >= 4
    assert not [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")]


def test_there_are_five_notebooks_and_the_index_lists_them() -> None:
    index = (DOCS / "index.md").read_text()
    assert len(NOTEBOOKS) == 5
    assert all(f"notebooks/{path.stem}" in index for path in NOTEBOOKS)
