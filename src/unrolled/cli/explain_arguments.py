"""Which arguments of ``unrolled explain`` go together: refused before torch is loaded where they do not."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from unrolled.cli.output_file import check_new
from unrolled.errors import UsageError
from unrolled.extras import require_extra
from unrolled.named_sources import check_source

__all__ = ["check_files", "check_written", "refuse_without_files", "split_words"]

_SUFFIXES = {"--html": (".html", ".htm"), "--json": (".json",), "--phrases": (".csv",)}


def split_words(words: Sequence[str], weights: Path | None, many: bool) -> tuple[Path | None, str]:
    """Split the arguments into a run folder and a sentence, one of which an option may stand for."""
    needed = ["a run folder"] * (weights is None) + ["a sentence"] * (not many)
    if many and len(words) > len(needed):
        raise UsageError(
            f"unexpected {words[len(needed)]!r}: with --file the sentences stand in the file; leave it out"
        )
    if len(words) < len(needed):
        found = f"found only {words[0]!r}, " if words else ""
        raise UsageError(f"missing argument: {found}expected {' and '.join(needed)}")
    run = Path(words[0]) if weights is None else None
    sentence = words[weights is None :]
    if sum(len(word.split()) > 1 for word in sentence) > 1:
        raise UsageError(
            f"several sentences, the second is {next(each for each in sentence[1:] if len(each.split()) > 1)!r}; give "
            "one, or write a sentence a line into a file: --file"
        )
    return run, " ".join(sentence)


def check_written(paths: Mapping[str, Path | None], force: bool) -> None:
    """Refuse, before torch is loaded, files that cannot be written, that exist, or that two options name."""
    given: dict[str, str] = {}
    for option, path in paths.items():
        if path is None:
            continue
        if (other := given.setdefault(os.path.realpath(path), option)) != option:
            raise UsageError(f"{other} and {option} both name {path}; name two files")
        suffixes = _SUFFIXES.get(option, ())
        if option == "--png":
            from unrolled.report.figure import check_format

            suffixes = (check_format(path),)
            require_extra("figures", "a figure")
        check_new(path, force, *suffixes)


def check_files(
    files: Sequence[Path], png: Path | None, top: int | None, page_texts: int | None, written: bool
) -> None:
    """Refuse what does not go with files, and a missing file before torch is loaded."""
    if png is not None:
        raise UsageError("--png draws one sentence; with --file write a page: --html")
    for path in files:
        if str(path) != "-":
            check_source(str(path))
    if top is not None:
        raise UsageError("--top lists n-grams of one sentence; with --file each text has one line: leave it out")
    if page_texts is not None and not written:
        raise UsageError("--page-texts is for --html and --json; give one of them as well, or leave it out")


def refuse_without_files(options: Mapping[str, object]) -> None:
    """Refuse options of files that are given with a sentence."""
    if given := [option for option, value in options.items() if value is not None]:
        raise UsageError(f"{given[0]} is for --file; give --file as well, or leave it out")
