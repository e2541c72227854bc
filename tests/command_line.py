"""Running the command line inside the test's own process, which is quick; a few tests start a real one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from unrolled.cli.main import run


@dataclass(frozen=True)
class Outcome:
    """What a command line came to."""

    status: int
    out: str
    err: str

    def assert_refused(self, status: int, *expected: str) -> None:
        """One line on stderr, nothing of a traceback, the status, and the words that help."""
        assert (self.status, self.err.count("\n")) == (status, 1), self.err
        assert self.err.startswith("unrolled: error: ")
        for words in expected:
            assert words in self.err


@pytest.fixture
def unrolled(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run ``unrolled`` with these words."""

    def call(*words: object) -> Outcome:
        capsys.readouterr()
        status = run([str(word) for word in words])
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    return call
