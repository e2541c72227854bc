"""Ctrl-C and SIGTERM into real processes, at random moments from their first import to their last line."""

from __future__ import annotations

import random
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

from cases import SMALL, Part, write_reviews


def prepare(place: Path):
    """One whole run, and how long each command takes."""
    place.mkdir(parents=True, exist_ok=True)
    write_reviews(place / "reviews.tsv")
    program = [sys.executable, "-m", "unrolled"]
    began = time.monotonic()
    subprocess.run(
        [*program, "train", "classify", "--data", "reviews.tsv", *SMALL, "--out", "whole"],
        cwd=place,
        check=True,
        capture_output=True,
    )
    return place, time.monotonic() - began


def run(number: int, draw: random.Random, place: Path, shared) -> list[str]:
    """Interrupt one command at a random moment; then type what its last line says."""
    home, seconds = shared
    write_reviews(place / "reviews.tsv")
    lines = [
        ["train", "classify", "--data", "reviews.tsv", *SMALL, "--out", "run"],
        ["evaluate", str(home / "whole")],
        ["explain", str(home / "whole"), "text 3 is good"],
        ["train", "classify", "--data", "reviews.tsv", *SMALL, "--out", "run"],
        ["data", "check", "negation"],
        ["reproduce", "cs577-lecture-5/memorising", "--scale", "smoke", "--results", "results"],
    ]
    words, sent = lines[number % len(lines)], (signal.SIGINT, signal.SIGTERM)[number // 6 % 2]
    program = [sys.executable, "-c", "import unrolled.__main__ as m; m.install(); print(flush=True); m.main()", *words]
    with subprocess.Popen(program, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        child.stdout.readline()
        time.sleep(draw.uniform(0, seconds))
        child.send_signal(sent)
        _, error = child.communicate(timeout=100)
    label = f"{sent.name} into {' '.join(words[:2])}"
    if "Traceback" in error or "Exception ignored" in error or "internal error" in error:
        return [f"{label}: {error[-400:]}"]
    if child.returncode == 0:
        return []
    if child.returncode != 128 + sent:
        return [f"{label}: ended with {child.returncode}: {error[-200:]}"]
    found = re.search(r"unrolled: error: .*: unrolled (.*)", error)
    if not found:
        return [f"{label}: names no command: {error[-200:]}"]
    if number % 2:
        return []
    done = subprocess.run(
        [sys.executable, "-m", "unrolled", *shlex.split(found[1])], cwd=place, capture_output=True, text=True
    )
    return [] if done.returncode == 0 else [f"{label}: {found[1]}: ended with {done.returncode}: {done.stderr[-200:]}"]


PARTS = (
    Part("Ctrl-C and SIGTERM", "one line names the command that goes on, and it does; 130 or 143", 36, run, prepare),
)
