"""A file that is malformed is answered in one line: where, what was expected, what came, and a hint."""

from __future__ import annotations

import pytest

from unrolled.errors import DataError
from unrolled.lab.data.formats import read_files


def check_answer(kind, path, line, expected):
    with pytest.raises(DataError) as caught:
        read_files(kind, [path])
    place = str(path) if line is None else f"{path}:{line}"
    said = str(caught.value)
    assert said.startswith(f"{place}: expected {expected}")
    assert "; " in said
    assert "\n" not in said
    assert len(said) < len(place) + 250
    assert caught.value.exit_code == 65
