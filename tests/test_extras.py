"""What works without the extras, and what a missing extra is answered with."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import unrolled
from unrolled.errors import DataError, UsageError
from unrolled.extras import require_extra

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
def test_the_instrument_works_without_the_packages_of_any_extra(tmp_path: Path) -> None:
    words = [sys.executable, ROOT / "tests" / "without_extras.py", tmp_path]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["OK"]), done.stdout + done.stderr


def test_that_program_hides_every_package_of_the_extras() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for_users = {name: packages for name, packages in extras.items() if name not in ("dev", "docs", "release")}
    listed = {re.match(r"[\w-]+", each)[0] for packages in for_users.values() for each in packages}
    modules = {"pyyaml": "yaml", "scikit-learn": "sklearn", "pytorch-crf": "torchcrf"}
    program = ast.parse((ROOT / "tests" / "without_extras.py").read_text())
    (hidden,) = (
        ast.literal_eval(node.value)
        for node in program.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Set)
    )
    assert {modules.get(name, name) for name in listed} - hidden == {"pydantic"}  # typer needs it


def test_only_one_file_of_the_instrument_names_the_laboratory() -> None:
    source = ROOT / "src" / "unrolled"
    files = [path for path in source.rglob("*.py") if "lab" not in path.relative_to(source).parts]
    importing = re.compile(r"import_module\(.*unrolled\.lab|(?:from|import) unrolled\.lab\b")
    assert [path.name for path in files if importing.search(path.read_text())] == ["laboratory.py"]


def test_the_extra_that_is_looked_for_is_the_one_that_pyproject_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = {re.match(r"[\w-]+", each)[0] for each in project["optional-dependencies"]["lab"]}
    modules = {"pyyaml": "yaml", "scikit-learn": "sklearn"}
    for package in listed:
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, modules.get(package, package), None)
            with pytest.raises(UsageError, match=r"pip install 'unrolled\[lab\]'"):
                require_extra("lab", "this test")
    require_extra("lab", "this test")


def test_a_run_folder_is_loaded_and_explained() -> None:
    run = unrolled.load(ROOT / "tests" / "lab" / "training" / "run_before_the_move")
    assert run.metrics["epochs"] == 3
    assert not run.model.training
    with pytest.raises(DataError, match="is not a run folder"):
        unrolled.load(ROOT / "tests")
