"""Data files that change between two commands."""

from __future__ import annotations

import random
from pathlib import Path

from cases import REVIEWS, SMALL, Part, command, faults_of, inside


def change(rows: list[str], draw: random.Random) -> tuple[str, list[str]]:
    """Change the rows of a file in one way; the name says whether the examples have changed."""
    place = draw.randrange(len(rows))
    text, _, label = rows[place].partition("\t")
    other = "pos" if label == "neg" else "neg"
    ways = {
        "label": [*rows[:place], f"{text}\t{other}", *rows[place + 1 :]],
        "word": [*rows[:place], f"{text} more\t{label}", *rows[place + 1 :]],
        "added": [*rows, f"one more\t{label}"],
        "removed": [*rows[:place], *rows[place + 1 :]],
        "order": [*rows[place:], *rows[:place]] if place else rows[::-1],
        "same": rows,
    }
    way = draw.choice(sorted(ways))
    return way, ways[way]


def run(number: int, draw: random.Random, place: Path, _) -> list[str]:
    """Train on three files, change one of them, and ask."""
    for name in ("train", "dev", "test"):
        (place / f"{name}.tsv").write_text("\n".join(draw.sample(REVIEWS, len(REVIEWS))) + "\n")
    name = ("train", "dev", "test")[number % 3]
    with inside(place):
        words = ["--data", "train.tsv", "--dev", "dev.tsv", "--test", "test.tsv", *SMALL, "--out", "run"]
        trained = command("train", "classify", *words)
        way, rows = change(Path(f"{name}.tsv").read_text().splitlines(), draw)
        Path(f"{name}.tsv").write_text("\n".join(rows) + ("\n" if way != "same" else "\r\n"))
        told = command("evaluate", "run")
        for done in ("metrics.json", "weights.safetensors", "README.md"):
            Path("run", done).unlink()
        refused = command("resume", "run")
    faults = faults_of(trained) + faults_of(told) + faults_of(refused)
    if trained.code or told.code:
        faults.append(f"train or evaluate was refused: {trained.err[-200:]} {told.err[-200:]}")
    noticed = "changed since the training" in told.err
    if noticed != (way != "same"):
        faults.append(f"evaluate {'said' if noticed else 'did not say'} that the data have changed: {told.err[-200:]}")
    if (refused.code == 65 and "accept-changed-data" in refused.err) != (way != "same"):
        faults.append(f"resume ended with {refused.code}: {refused.err[-300:]}")
    return [f"{way} in {name}: {fault}" for fault in faults]


PARTS = (Part("changed data", "evaluate says what changed, resume refuses; nothing else is refused", 60, run),)
