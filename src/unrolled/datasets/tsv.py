"""A user's own labelled texts: one a line, ``text<TAB>label``."""

from __future__ import annotations

from pathlib import Path

import torch

from unrolled.errors import DataError
from unrolled.text.corpus import Classification, Example
from unrolled.text.reading import read_lines
from unrolled.text.tokenise import tokenise

__all__ = ["read_tsv"]

_SPLIT_SEED = 0
_SHARE = 0.1  # of dev and of test, each


def read_tsv(path: Path) -> Classification:
    """Read labelled texts and split them at random: 80% to train on, 10% each for dev and test.

    A line is cut at its last tab, its text into tokens as treebanks do. Labels are any words; in alphabetical
    order they are the classes. The split is the same every time.

    Args:
        path: the file, without a header.

    Returns:
        The dataset, named after the file.

    Raises:
        DataError: when a line has no tab, text or label, or when there are too few lines or classes.
    """
    texts: list[tuple[tuple[str, ...], str]] = []
    for number, line in enumerate(read_lines(path), start=1):
        text, tab, label = line.rstrip("\r").rpartition("\t")
        if not (tab and label.strip()):
            raise DataError(f"{path}:{number}: expected text<TAB>label, found {line[:40]!r}")
        tokens = tuple(tokenise(text))
        if not tokens:
            raise DataError(f"{path}:{number}: expected text before the tab, found none")
        texts.append((tokens, label.strip()))
    labels = tuple(sorted({label for _, label in texts}))
    if len(texts) < 10 or len(labels) < 2:
        raise DataError(f"{path}: {len(texts)} texts of {len(labels)} classes; expected at least 10 texts of 2 classes")
    held_out = round(_SHARE * len(texts))
    order = torch.randperm(len(texts), generator=torch.Generator().manual_seed(_SPLIT_SEED)).tolist()
    examples = [Example(texts[i][0], labels.index(texts[i][1])) for i in order]
    return Classification(
        name=path.stem,
        labels=labels,
        train=tuple(examples[2 * held_out :]),
        dev=tuple(examples[:held_out]),
        test=tuple(examples[held_out : 2 * held_out]),
    )
