from __future__ import annotations

import pytest

from unrolled.errors import FileError, UsageError
from unrolled.lab.data.data_folder import find_file


def test_the_folder_comes_from_the_caller_or_else_from_the_environment(tmp_path, monkeypatch):
    (tmp_path / "a.txt").touch()
    monkeypatch.setenv("UNROLLED_DATA", str(tmp_path))
    assert find_file("a.txt") == tmp_path / "a.txt"
    with pytest.raises(FileError, match=r"no a\.txt in .*elsewhere; expected a\.txt, a\.txt\.xz or a\.txt\.gz"):
        find_file("a.txt", tmp_path / "elsewhere")
    monkeypatch.delenv("UNROLLED_DATA")
    with pytest.raises(UsageError, match="no data folder; pass --data-dir, or set the variable UNROLLED_DATA"):
        find_file("a.txt")
