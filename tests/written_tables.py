"""Tables that tests write: made-up reviews, by number."""

from __future__ import annotations

import csv
import io
import random

WORDS = "the film was not a bad one but its plot is thin and we left early".split()


def review(number):
    drawn = random.Random(number)
    return f"{' '.join(drawn.choices(WORDS, k=9))}, number {number}"


def table(header, row, count=40, delimiter=",", **options):
    """Write a table; ``row`` makes the fields of a number."""
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n", **options)
    if header:
        writer.writerow(header)
    writer.writerows(row(number) for number in range(count))
    return file.getvalue()


def save(folder, name, content):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def texts(corpus):
    return {example.text for split in (corpus.train, corpus.dev, corpus.test) for example in split}
