"""What a part of the campaign is, and what its cases use: children, captured output, tiny trainings."""

from __future__ import annotations

import os
import random
import sys
import traceback
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1] / "tests"
for folder in (TESTS, TESTS / "lab" / "training"):
    sys.path.insert(0, str(folder))

CODES = {0, 2, 65, 70, 74, 78, 130, 143}
"""The documented exit codes; 70 only with a message of ours."""


@dataclass(frozen=True)
class Part:
    """One kind of attack."""

    name: str
    promise: str
    """What must hold in every case, as the table says it."""
    count: int
    run: Callable[[int, random.Random, Path, Any], list[str]]
    """Run one case in a folder of its own and return what was wrong, or :class:`Skipped` as the only line."""
    prepare: Callable[[Path], Any] = lambda _: None
    """Make what all cases share, once, in the process from which they are forked."""


SKIPPED = "skipped: "


@dataclass(frozen=True)
class Said:
    """What a command line came to."""

    code: int
    out: str
    err: str


def command(*words: object) -> Said:
    """Run ``unrolled`` in this process, which is a case's own, with its output in files."""
    from unrolled.cli.main import run

    outputs = [Path(f"output.{os.getpid()}.{name}") for name in ("out", "err")]
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(number) for number in (1, 2)]
    try:
        for number, path in zip((1, 2), outputs, strict=True):
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(file, number)
            os.close(file)
        code = run([str(word) for word in words])
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        for number, descriptor in zip((1, 2), kept, strict=True):
            os.dup2(descriptor, number)
            os.close(descriptor)
    out, err = (path.read_bytes().decode(errors="replace") for path in outputs)
    for path in outputs:
        path.unlink()
    return Said(code, out, err)


def faults_of(said: Said) -> list[str]:
    """Return what no command line may ever show."""
    found = []
    if said.code not in CODES:
        found.append(f"exit code {said.code}")
    for forbidden in ("Traceback", "internal error", "Exception ignored", "\x1b"):
        if forbidden in said.err or (forbidden == "\x1b" and forbidden in said.out):
            found.append(f"{forbidden!r} in {said.err.strip()[-300:]!r}")
    last = said.err.strip().splitlines()[-1:] or [""]
    if said.code not in (0, 130, 143) and not last[0].startswith("unrolled: error: "):
        found.append(f"code {said.code} without its line: {said.err.strip()[-300:]!r}")
    return found


def fork(work: Callable[[], Any]) -> int:
    """Run something in a child, and return its number; its exit code is 0, 3 for an error of ours, 4 for another."""
    child = os.fork()
    if child:
        return child
    from unrolled.errors import UnrolledError

    try:
        work()
        os._exit(0)
    except UnrolledError as error:
        print(f"refused: {error}", file=sys.stderr)
        os._exit(3)
    except BaseException:  # whatever it is, the child ends here
        traceback.print_exc()
        os._exit(4)


def code_of(child: int) -> int:
    """Wait for a child; negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@contextmanager
def inside(folder: Path):
    """Work in a folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


REVIEWS = [f"text {i} is {('bad', 'good')[i % 2]} and so on\t{('neg', 'pos')[i % 2]}" for i in range(40)]
SMALL = "--encoder gru --hidden 5 --embedding 4 --epochs 2 --batch 8 --device cpu".split()


def write_reviews(path: Path) -> Path:
    """Write a file of labelled texts."""
    path.write_text("\n".join(REVIEWS) + "\n")
    return path
