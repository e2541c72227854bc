"""What must hold for the whole code base: layers of imports, sizes of files, docstrings, examples."""

from __future__ import annotations

import ast
import doctest
import importlib.util
import inspect
import pkgutil
import pydoc
import re
import rlcompleter
import subprocess
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import ModuleType

import grimp
import pytest
import torch

import unrolled.cells
import unrolled.held_forward
import unrolled.sklearn
import unrolled.testing
from unrolled import errors
from unrolled.held_forward.mode import RULES

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
MODULES = sorted(
    info.name for info in pkgutil.walk_packages(unrolled.__path__, "unrolled.") if not info.name.endswith("__main__")
)
LONGEST = 320
PICKLES, EVALUATIONS = {"pickle", "dill", "marshal", "shelve"}, {"eval", "exec"}
NAMES_WITHOUT_A_SUBJECT = {"utils", "util", "common", "misc", "helpers"}


def test_the_import_contracts_are_kept() -> None:
    words = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Contracts: [1-9]\d* kept, 0 broken", done.stdout)


def test_every_package_is_in_a_layer() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    layers = set(re.findall(r"unrolled\.(\w+)", text[text.index("[tool.importlinter]") :]))
    packages = {path.stem for path in (ROOT / "src" / "unrolled").iterdir() if path.suffix in {"", ".py"}}
    assert packages - layers <= {"__init__", "__main__", "__pycache__"}


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Within functions neither; what only annotations name is imported by no module."""
    found = grimp.build_graph("unrolled", exclude_type_checking_imports=True, cache_dir=None)
    graph = {module: found.find_modules_directly_imported_by(module) for module in found.modules}
    assert sum(map(len, graph.values())) > 2000
    TopologicalSorter(graph).prepare()
    low = "unrolled.linalg.operators"
    with pytest.raises(CycleError):
        TopologicalSorter({**graph, low: {*graph[low], "unrolled.cells.gru"}}).prepare()


def test_files_are_short_and_named_after_their_subjects() -> None:
    assert len(SOURCES) > 600
    assert not [path for path in SOURCES if path.stem in NAMES_WITHOUT_A_SUBJECT]
    assert not [path for path in SOURCES if len(path.read_text().splitlines()) > LONGEST]


def folders_that_are_no_package(files: Iterable[Path]) -> set[Path]:
    """Folders of modules without an ``__init__.py``: nothing in them is found by listing."""
    return {path.parent for path in files if not (path.parent / "__init__.py").is_file()}


def test_every_folder_of_modules_is_a_package(tmp_path: Path) -> None:
    without = folders_that_are_no_package(SOURCES)
    assert not without, f"write an __init__.py with a docstring into {', '.join(map(str, without))}"
    assert folders_that_are_no_package([*SOURCES, tmp_path / "item.py"]) == {tmp_path}


def test_no_two_classes_share_a_name() -> None:
    classes = [
        node.name
        for path in SOURCES
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert len(classes) > 400
    assert not {name for name, count in Counter(classes).items() if count > 1}


def forbidden(text: str) -> set[str]:
    """What a file imports that reads pickles, and calls that evaluates text."""
    found: set[str] = set()
    written = unicodedata.normalize("NFKC", text)  # as Python reads names
    if not any(word in written for word in (*PICKLES, *EVALUATIONS)):
        return found  # what is not written is neither imported nor called
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= PICKLES & {*(alias.name for alias in node.names), getattr(node, "module", None) or ""}
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found |= EVALUATIONS & {node.func.id}
    return found


def test_no_pickle_and_no_evaluation_of_text() -> None:
    assert not {path: found for path in SOURCES if (found := forbidden(path.read_text()))}
    assert forbidden("from pickle import loads\neval('1')") == {"pickle", "eval"}


def public(module: ModuleType) -> list[tuple[str, object]]:
    return [(f"{module.__name__}.{name}", getattr(module, name)) for name in getattr(module, "__all__", ())]


def test_what_is_public_has_a_docstring() -> None:
    for module in map(importlib.import_module, MODULES):
        assert module.__doc__, f"{module.__name__} has no docstring"
        for label, value in public(module):
            if not (inspect.isclass(value) or inspect.isfunction(value)):
                continue
            assert inspect.getdoc(value), f"{label} has no docstring"
            if inspect.isclass(value) and value.__module__ == module.__name__:
                for attribute, member in vars(value).items():
                    if inspect.isfunction(member) and not attribute.startswith("_"):
                        assert inspect.getdoc(getattr(value, attribute)), f"{label}.{attribute} has no docstring"


def source(name: str) -> str:
    """The text of a module's file."""
    found = importlib.util.find_spec(name)
    assert found
    assert found.origin
    return Path(found.origin).read_text()


def test_the_package_lists_what_it_offers_and_nothing_else() -> None:
    mistakes = {name for name, value in vars(errors).items() if inspect.isclass(value) and name in errors.__all__}
    offered = {
        "__version__",
        "cells",
        "account",
        "as_cell",
        "check",
        "decompose",
        "explain",
        "explain_batch",
        "load",
        "progress",
    }
    offered |= {"Account", "Check", "Decomposition", "Explanation", "Explanations", "Ledger"}
    assert set(dir(unrolled)) == set(unrolled.__all__) == offered | mistakes
    completed = rlcompleter.Completer({"unrolled": unrolled})
    assert {name for k in range(99) if (name := completed.complete("unrolled.l", k))} == {"unrolled.load("}
    text = pydoc.render_doc(unrolled, renderer=pydoc.plaintext)
    for name in offered - {"__version__", "cells"} | mistakes:
        assert re.search(rf"^    (class )?{name}\(", text, re.MULTILINE), name
    for name in ("TYPE_CHECKING", "annotations", "importlib"):
        assert not hasattr(unrolled, name)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = unrolled.nonsense


@pytest.mark.parametrize("name", [name for name in MODULES if ">>>" in source(name)])
def test_the_examples_of_a_module_run(name: str) -> None:
    rules = dict(RULES)
    for found in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name), name):
        if not found.examples:
            continue
        torch.manual_seed(0)
        said: list[str] = []
        assert doctest.DocTestRunner().run(found, out=said.append).failed == 0, "".join(said)
    assert rules.items() <= RULES.items()  # an example replaces no rule
    for added in RULES.keys() - rules:  # later tests of this process would follow it
        del RULES[added]


PUBLIC = [
    *(
        value
        for name in sorted(set(unrolled.__all__) - set(errors.__all__))
        if callable(value := getattr(unrolled, name))
    ),
    *(getattr(unrolled.cells, name) for name in unrolled.cells.__all__ if name != "CELLS"),
    *(getattr(unrolled.sklearn, name) for name in unrolled.sklearn.__all__),
    unrolled.held_forward.rule,
    unrolled.testing.check_cell,
]


@pytest.mark.parametrize("value", PUBLIC, ids=lambda value: value.__name__)
def test_what_a_user_calls_has_an_example(value: Callable[..., object]) -> None:
    (found,) = doctest.DocTestFinder(recurse=False).find(value, value.__name__)
    assert found.examples


def test_the_package_alone_loads_no_torch() -> None:
    program = "import sys, unrolled; print(sorted({'torch', 'numpy', 'typer'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
