"""Which columns hold the text and the label.

What the user says comes first, then the usual names of columns, then what the columns hold: one of free text, one of
few values (for a rating, of numbers). Where more than one answer fits, the file is refused with the columns found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from unicodedata import normalize

from unrolled.errors import DataError, UnknownNameError, UsageError
from unrolled.lab.data.corpus import Corpus, Regression, Relations
from unrolled.lab.data.reading import Reading
from unrolled.lab.data.tables.column_profiles import ColumnProfile, column_profiles
from unrolled.lab.data.tables.names import LABELS, TEXTS, USUAL_LABELS, USUAL_TEXTS
from unrolled.lab.data.text_files import STANDARD_INPUT

__all__ = ["Columns", "choose_columns", "choose_text"]

_LONGER = 2.5  # how many times longer than any other column the one of the texts is


@dataclass(frozen=True)
class Columns:
    """The columns of the text and of the label."""

    text: int
    label: int


def choose_columns(
    path: Path, header: Sequence[str], rows: Sequence[Sequence[str]], reading: Reading, kind: type[Corpus[object]]
) -> Columns:
    """Choose the columns of the text and of the label.

    Args:
        path: The file, for errors.
        header: The names of the columns; empty if the file has none.
        rows: The first rows of the file, without a header.
        reading: What the user says about the columns.
        kind: The class of corpus: labels of Regression are numbers, texts of Relations mark two entities.

    Raises:
        UsageError: If a column that the user names is not there, or both are the same.
        DataError: If the choice is not plain; the error lists the columns.
    """
    profiles = column_profiles(header, rows)
    text, label = _that_are_said(path, header, len(profiles), reading)
    lacking = _lacking(header, reading, text, label)
    if len(profiles) < 2:
        none = lacking or (
            f", and none of labels, which is called {', '.join(sorted(LABELS))} or named with --label-column"
        )
        raise DataError(
            f"{path}:1: expected columns for a text and a label, found one{_named(header)}{none}; "
            "texts without labels can only be predicted, by a model that is trained: unrolled predict RUN FILE"
        )
    if text is None:
        text = _only(path, profiles, TEXTS, header, taken=label)
    if label is None:
        known = text is not None or _find_text(profiles, None, kind) is not None
        also = "" if known else f", and the column of the texts with --text-column: {_listed(profiles)}"
        label = _only(path, profiles, LABELS, header, taken=text, also=also)
    text, label = _by_what_they_hold(profiles, kind, text, label, lacking=bool(lacking))
    if text is None and label is None and len(profiles) == 2 and not header:
        return Columns(0, 1)
    if text is None or label is None:
        numbered = "" if header else ", by number from 1"
        flags = {"--text-column": reading.text_column, "--label-column": reading.label_column}
        left = [flag for flag, name in flags.items() if name is None]
        hint = f"name {'the two' if len(left) > 1 else 'it'} with {' and '.join(left)}{numbered}"
        raise _cannot_tell(path, "texts" if text is None else "labels", profiles, f"{hint}{lacking}")
    return Columns(text, label)


def _that_are_said(path: Path, header: Sequence[str], width: int, reading: Reading) -> tuple[int | None, int | None]:
    """Find the columns of text and label that the user names, or else those of the training."""
    text = _given(path, "--text-column", reading.text_column, header, width)
    label = _given(path, "--label-column", reading.label_column, header, width)
    text = _named_so(reading.trained_text, header, label) if text is None else text
    label = _named_so(reading.trained_label, header, text) if label is None else label
    if text is not None and text == label:
        raise UsageError(f"--text-column and --label-column both name column {text + 1} of {path}; name two columns")
    return text, label


def _lacking(header: Sequence[str], reading: Reading, text: int | None, label: int | None) -> str:
    """Name, for an error, the columns of the training that a file with a header lacks, where no others are named."""
    names = [field.strip() for field in header]
    trained = (("texts", reading.trained_text, text), ("labels", reading.trained_label, label))
    missing = [f"{what} from {name!r}" for what, name, place in trained if place is None and name not in (None, *names)]
    return f"; the training reads {' and '.join(missing)}, which this file does not have" if header and missing else ""


def _by_what_they_hold(
    profiles: Sequence[ColumnProfile], kind: type[Corpus[object]], text: int | None, label: int | None, *, lacking: bool
) -> tuple[int | None, int | None]:
    """Find the columns of text and label that are not known; of two columns, the other one.

    A file that is ``lacking`` columns of the training does not have them in a column of dates or one that counts rows.
    """
    if text is None:
        text = _find_text(profiles, label, kind)
    if label is None:
        label = _find_label(profiles, text, kind)
    known = [place for place in (text, label) if place is not None]
    if len(profiles) == 2 and len(known) == 1:
        other = profiles[1 - known[0]]
        if not lacking or not (other.dates >= 0.5 or other.counts):
            return (1 - known[0], label) if text is None else (text, 1 - known[0])
    return text, label


def choose_text(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]], reading: Reading) -> int:
    """Choose the column of the texts of a file whose labels, if it has any, are not read."""
    profiles = column_profiles(header, rows)
    chosen = _given(path, "--text-column", reading.text_column, header, len(profiles))
    if chosen is None and len(profiles) == 1:
        return 0
    if chosen is None:
        chosen = _named_so(reading.trained_text, header, taken=None)
    if chosen is None:
        chosen = _only(path, profiles, TEXTS, header, taken=None)
    if chosen is None:
        chosen = _find_text(profiles, None, Corpus)
    if chosen is None:
        of_file = "name it with --text-column"
        hint = f"give the path of a file, and {of_file}" if path == STANDARD_INPUT else of_file
        raise _cannot_tell(path, "texts", profiles, hint)
    return chosen


def _find_text(profiles: Sequence[ColumnProfile], label: int | None, kind: type[Corpus[object]]) -> int | None:
    free = [place for place, profile in enumerate(profiles) if place != label]
    if issubclass(kind, Relations):
        marked = [place for place in free if profiles[place].marked > 0.5]
        return marked[0] if len(marked) == 1 else None
    texts = [place for place in free if profiles[place].is_text]
    if len(texts) > 1 and (usual := [place for place in texts if profiles[place].name.lower() in USUAL_TEXTS]):
        texts = usual
    texts.sort(key=lambda place: -profiles[place].words)
    if len(texts) > 1 and profiles[texts[0]].words < _LONGER * profiles[texts[1]].words:
        return None
    return texts[0] if texts else None


def _find_label(profiles: Sequence[ColumnProfile], text: int | None, kind: type[Corpus[object]]) -> int | None:
    rating = issubclass(kind, Regression)
    fits = [
        place
        for place, profile in enumerate(profiles)
        if place != text and (profile.is_rating if rating else profile.is_few)
    ]
    if len(fits) > 1:
        fits = [place for place in fits if profiles[place].name.lower() in USUAL_LABELS]
    return fits[0] if len(fits) == 1 else None


def _given(path: Path, flag: str, name: str | None, header: Sequence[str], width: int) -> int | None:
    """Find the column that the user names, by its name or its number."""
    if name is None:
        return None
    names = [field.strip() for field in header]
    folded, composed = ([form(field) for field in names] for form in (str.lower, _composed))
    for among, wanted in ((names, name), (folded, name.lower()), (composed, _composed(name))):
        if among.count(wanted) == 1:
            return among.index(wanted)
        if wanted in among:
            raise UsageError(
                f"{flag} is {name!r}, but {path} has several columns of that name; give its number, from 1"
            )
    if name.isascii() and name.isdecimal() and len(name) < 9:
        if not 1 <= int(name) <= width:
            found = f"{width} columns; expected 1 to {width}" if width > 1 else "one column"
            raise UsageError(f"{flag} is {name}, but {path} has {found}")
        return int(name) - 1
    if not header:
        raise UsageError(f"{flag} is {name!r}, but the first line is no header; give the column's number, from 1")
    raise UnknownNameError(f"column of {path}", name, names)


def _composed(name: str) -> str:
    """Write accents in one way, in lower case: a keyboard and a file may write them in different ways."""
    return normalize("NFC", name.lower())


def _named_so(name: str | None, header: Sequence[str], taken: int | None) -> int | None:
    """Find the one column with the name of the training's; None if there is none, or several."""
    places = [place for place, field in enumerate(header) if field.strip() == name and place != taken]
    return places[0] if len(places) == 1 else None


def _only(
    path: Path,
    profiles: Sequence[ColumnProfile],
    known: frozenset[str],
    header: Sequence[str],
    taken: int | None,
    also: str = "",
) -> int | None:
    """Find the one column with a name that this library documents; where there are several, ``also`` ends the error."""
    named = [place for place, field in enumerate(header) if field.strip().lower() in known and place != taken]
    if len(named) > 1:
        both = ", ".join(profiles[place].name for place in named)
        flag, what = ("--text-column", "texts") if known is TEXTS else ("--label-column", "labels")
        by = "name one" if len({profiles[place].name for place in named}) > 1 else "give the number of one, from 1,"
        raise DataError(f"{path}:1: expected one column of {what}, found {both}; {by} with {flag}{also}")
    return named[0] if named else None


def _listed(profiles: Sequence[ColumnProfile]) -> str:
    return ", ".join(map(str, profiles[:30])) + (f" and {len(profiles) - 30:,} more" if len(profiles) > 30 else "")


def _cannot_tell(path: Path, what: str, profiles: Sequence[ColumnProfile], hint: str) -> DataError:
    if not any(profile.rows for profile in profiles):
        return DataError(f"{path}: expected examples below the header, found none")
    found = f"{path}: cannot tell which column holds the {what}; found {_listed(profiles)}"
    return DataError(f"{found}; {hint}{_of_series(profiles)}")


def _of_series(profiles: Sequence[ColumnProfile]) -> str:
    """Say what learns series of numbers, if the file has columns of numbers and none of texts."""
    numbers = any(profile.is_rating for profile in profiles)
    if not numbers or any(profile.is_text for profile in profiles):
        return ""
    return "; series of numbers are learned in Python, by unrolled.sklearn's RecurrentRegressor and RecurrentClassifier"


def _named(header: Sequence[str]) -> str:
    return f" ({', '.join(header)})" if header else ""
