"""``unrolled data table``: make a table of texts that are files of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unrolled.errors import DataError, UsageError
from unrolled.report.formatting import counted, harmless, visible

if TYPE_CHECKING:
    from unrolled.lab.data.text_folders import FileText

__all__ = ["write_table"]

_SHOWN = 5
"""Names of files that were left out."""


def write_table(
    folder: Annotated[
        Path, typer.Argument(help="A folder of text files, or one with a folder of them for each label.")
    ],
    out: Annotated[Path, typer.Option(help="The CSV file to write.")],
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Make a table of texts that are files of their own, such as reviews in folders pos and neg.

    The name of a text's folder becomes its label; files at other depths and empty files are left out and named.
    `unrolled train` and `unrolled predict` read the table.

        unrolled data table reviews --out reviews.csv
        unrolled train classify --data reviews.csv
    """
    from unrolled.atomic_write import atomic_write
    from unrolled.cli.output_file import check_new, check_not_read
    from unrolled.lab.data.text_folders import files_left_out, read_text_folder

    check_new(out, force, ".csv")
    found = list(read_text_folder(folder))
    check_not_read(out, [folder / each.name for each in found])
    _check_not_among(out, folder, found)
    texts = [each for each in found if each.text]
    if not texts:
        raise DataError(f"{folder}: every file in it is empty; expected texts, one a file")
    labels = Counter(each.label for each in texts if each.label is not None)
    atomic_write(out, _as_csv(texts, labelled=bool(labels)), new=not force)
    _note_left_out([each.name for each in found if not each.text], "empty")
    others = [name for name in files_left_out(folder) if not out.samefile(folder / name)]
    _note_left_out(others, "not in the folder of a label" if labels else "in a folder below")
    said = "; labels " + ", ".join(f"{label} ({count:,})" for label, count in labels.items()) if labels else ""
    typer.echo(f"{counted(len(texts), 'text')}: {visible(f'{out}{said}')}")


def _check_not_among(out: Path, folder: Path, found: Sequence[FileText]) -> None:
    """Refuse a place where the table would be one of the texts."""
    lies_in = out.resolve().parent
    if lies_in.parent == folder.resolve() or lies_in in {(folder / each.name).resolve().parent for each in found}:
        raise UsageError(f"{out} would lie among the texts, and be read as one the next time; choose another folder")


def _as_csv(texts: Sequence[FileText], *, labelled: bool) -> bytes:
    import csv
    import io

    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["text", *(["label"] if labelled else []), "file"])
    writer.writerows([each.text, *([each.label] if labelled else []), each.name] for each in texts)
    return file.getvalue().encode(errors="backslashreplace")


def _note_left_out(names: Sequence[str], why: str) -> None:
    """Say which files are not in the table."""
    if names:
        shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else "")
        typer.echo(harmless(f"left out, {why}: {counted(len(names), 'file')} ({shown})"), err=True)
