"""Paths in commands that a person types."""

from pathlib import Path

from unrolled.lab.cli.next_command import typed_path


def test_a_path_that_begins_with_a_dash_is_no_option(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert typed_path(tmp_path / "-run") == "./-run"
    assert typed_path(Path("-run")) == "./-run"
    assert typed_path(tmp_path / "runs" / "-run") == "runs/-run"  # which is no option
    assert typed_path(tmp_path.parent) == str(tmp_path.parent)
