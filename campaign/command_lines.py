"""Odd command lines: values, places, names and surroundings that nobody would type, and some that people do."""

from __future__ import annotations

import os
import random
from pathlib import Path

from cases import SMALL, Part, command, faults_of, inside, write_reviews

ODD = [
    *("", " ", "-1", "0", "1e400", "nan", "\x1b[31m", "a\nb", "ä" * 300, "x" * 5000, "--", "-", "/", ".", ".."),
    *("/dev/null", "/proc/self/mem", "/dev/zero", "null", "none", "999999999999999999999", "0x10", "1_000"),
    *("\u202e", "\udc80", "~", "*", "reviews.tsv", "run", "True", "[1]", "{}", "file://x", "%s%n", "$(touch canary)"),
]
COMMANDS = {
    "train": [
        *("classify", "--data", "--dev", "--test", "--out", "--lr", "--batch", "--hidden", "--layers", "--epochs"),
        *("--config", "--seed", "--option", "--format", "--limit", "--vectors", "--device", "--dropout", "--encoder"),
    ],
    "explain": ["run", "--expansion", "--target", "--json", "--html", "--at", "--against", "--weights", "--words"],
    "evaluate": ["run", "--data", "--split", "--format", "--data-dir", "--predictions", "--html", "--force"],
    "predict": ["run", "reviews.tsv", "--out", "--text-column", "--no-header", "--force"],
    "score": ["run", "reviews.tsv", "--out"],
    "resume": ["run", "--data-dir", "--accept-changed-data"],
    "generate": ["run", "--length", "--temperature", "--seed"],
    "translate": ["run", "--beam"],
    "convert": ["reviews.tsv", "out.safetensors"],
    "parameters": ["gru", "--match", "--input", "--layers", "--vocabulary"],
    "data": ["list", "describe", "check", "--data-dir", "negation"],
    "reproduce": ["--list", "--scale", "--results", "--write", "--hours"],
    "nonsense": ["--help"],
}


def prepare(place: Path):
    """One small run."""
    place.mkdir(parents=True, exist_ok=True)
    write_reviews(place / "reviews.tsv")
    with inside(place):
        assert command("train", "classify", "--data", "reviews.tsv", *SMALL, "--out", "run").code == 0
    return place


def run(number: int, draw: random.Random, place: Path, home: Path) -> list[str]:
    """Type something odd."""
    os.environ.pop("UNROLLED_DATA", None)
    if draw.random() < 0.2:
        os.environ["HOME"] = "/nonexistent"
    write_reviews(place / "reviews.tsv")
    os.symlink(home / "run", place / "run")
    name = sorted(COMMANDS)[number % len(COMMANDS)]
    words = [name]
    for option in draw.sample(COMMANDS[name], draw.randrange(1, len(COMMANDS[name]) + 1))[:5]:
        words.append(option)
        if option.startswith("--") and option not in ("--list", "--no-header", "--force") and draw.random() < 0.9:
            words.append(draw.choice(ODD))
    if draw.random() < 0.5:
        words.append(draw.choice(ODD))
    if name == "train":
        words += ["--steps", "1"]
    if name == "reproduce":
        words += ["--list"]
    with inside(place):
        if any("/dev/zero" in word or "/proc/self/mem" in word for word in words):
            words = [word for word in words if word not in ("/dev/zero", "/proc/self/mem")]
        said = command(*words)
    faults = faults_of(said)
    if list(place.rglob("canary")):
        faults.append("a word was run as a command")
    return [f"{words}: {fault}" for fault in faults]


PARTS = (Part("odd command lines", "one line and a documented exit code, never a traceback", 100, run, prepare),)
