"""Which line is a header, and which columns hold the text and the label.

What the user says comes first, then the usual names of columns, then what the columns hold: one of free text, one of
few values (for a rating, of numbers). Where more than one answer fits, the file is refused with the columns found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from unrolled.errors import DataError, UnknownNameError, UsageError
from unrolled.lab.data.corpus import Corpus, Regression, Relations
from unrolled.lab.data.reading import Reading
from unrolled.lab.data.tables.values import is_date, is_number
from unrolled.lab.data.text_files import without_escapes

__all__ = ["Columns", "choose_columns", "choose_text", "has_header", "is_usual_name"]

_TEXTS = frozenset({"text", "sentence"})
_LABELS = frozenset({"label", "class", "rating", "relation"})
_USUAL_TEXTS = frozenset(
    "body comment comments content contents description document headline message post question review reviews "
    "reviewtext review_text review_body sms title tweet utterance verbatim feedback".split()
)
_USUAL_LABELS = frozenset(
    "airline_sentiment category emotion feeling grade intent label_text labels polarity score sentiment spam star "
    "stars tag target topic toxic type y".split()
)
_OTHERS = frozenset("author country date day id idx index language name source time timestamp uid url user".split())
_NAME_WORDS = 3  # a column's name has no more
_TEXT_WORDS = 6  # free text has more, so that a name is not taken for one
_LONGER = 2.5  # how many times longer than any other column the one of the texts is


def is_usual_name(field: str) -> bool:
    """Tell whether people usually name a column so."""
    return field.strip().lower() in _TEXTS | _LABELS | _USUAL_TEXTS | _USUAL_LABELS | _OTHERS


@dataclass(frozen=True)
class Columns:
    """The columns of the text and of the label."""

    text: int
    label: int


def has_header(path: Path, first: Sequence[str], others: Sequence[Sequence[str]], reading: Reading) -> bool:
    """Tell whether the first line names the columns; DataError if that cannot be told.

    It does if it has the name of a column that the user gave or of the training, or a usual name; or if none of its
    fields occurs again, all are as short as names, and the texts below are longer. A line with a field that occurs
    again is an example. Above the numbers of rows, as other programs write them, a name may be empty.
    """
    if not reading.header or (len(first) < 2 and not is_usual_name(first[0])):
        return False
    names = [field.strip().lower() for field in first]
    given = {name.lower() for name in (reading.text_column, reading.label_column) if name is not None}
    trained = {name.lower() for name in (reading.trained_text, reading.trained_label) if name is not None}
    if (given | trained) & set(names) or (_TEXTS | _LABELS) & set(names) or all(map(is_usual_name, names)):
        return True
    if any(not name.isdecimal() for name in given):
        return True  # a name that is not there is an error of the line that should have it
    written = [name for name in names if name]
    if len(set(written)) < len(written) or any(is_number(name) or len(name.split()) > _NAME_WORDS for name in written):
        return False
    below = list(zip(*(row for row in others if len(row) == len(first)), strict=True))
    if not below or any(field in column for field, column in zip(first, below, strict=True)):
        return False
    valued = [_share(column, _is_value) > 0.9 for column in below]
    if not all(name or of_values for name, of_values in zip(names, valued, strict=True)):
        return False
    values = any(of_values and not _is_value(field) for field, of_values in zip(first, valued, strict=True))
    if values or any(map(is_usual_name, names)) or max(map(_mean_words, below)) >= _TEXT_WORDS:
        return True
    shown = ", ".join(repr(without_escapes(field)) for field in first)
    raise DataError(
        f"{path}:1: cannot tell whether {shown} names the columns or is an example, since nothing of it occurs again; "
        "pass --no-header if it is an example, or name the column of the texts with --text-column"
    )


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
    profiles = _profiles(header, rows)
    if len(profiles) < 2:
        raise DataError(
            f"{path}:1: expected columns for a text and a label, found one{_named(header)}; "
            "texts without labels can only be predicted, by a model that is trained: unrolled predict RUN FILE"
        )
    text = _given(path, "--text-column", reading.text_column, header, len(profiles))
    label = _given(path, "--label-column", reading.label_column, header, len(profiles))
    text = _named_so(reading.trained_text, header, label) if text is None else text
    label = _named_so(reading.trained_label, header, text) if label is None else label
    if text is not None and text == label:
        raise UsageError(f"--text-column and --label-column both name column {text + 1} of {path}; name two columns")
    if text is None:
        text = _only(path, profiles, _TEXTS, header, taken=label)
    if label is None:
        label = _only(path, profiles, _LABELS, header, taken=text)
    if text is None:
        text = _find_text(profiles, label, kind)
    if label is None:
        label = _find_label(profiles, text, kind)
    if len(profiles) == 2 and (text is None) != (label is None):
        text, label = (1 - label, label) if label is not None else (text, 1 - (text or 0))
    if text is None and label is None and len(profiles) == 2 and not header:
        text, label = 0, 1
    if text is None or label is None:
        numbered = "" if header else ", by number from 1"
        hint = f"name the two with --text-column and --label-column{numbered}"
        raise _cannot_tell(path, "texts" if text is None else "labels", profiles, hint)
    return Columns(text, label)


def choose_text(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]], reading: Reading) -> int:
    """Choose the column of the texts of a file whose labels, if it has any, are not read."""
    profiles = _profiles(header, rows)
    chosen = _given(path, "--text-column", reading.text_column, header, len(profiles))
    if chosen is None and len(profiles) == 1:
        return 0
    if chosen is None:
        chosen = _named_so(reading.trained_text, header, taken=None)
    if chosen is None:
        chosen = _only(path, profiles, _TEXTS, header, taken=None)
    if chosen is None:
        chosen = _find_text(profiles, None, Corpus)
    if chosen is None:
        raise _cannot_tell(path, "texts", profiles, "name it with --text-column")
    return chosen


@dataclass(frozen=True)
class _Profile:
    """What a column holds, as far as the first rows tell."""

    name: str
    words: float
    """Mean number of words of a field."""
    values: int
    """Number of different fields."""
    rows: int
    numeric: float
    """Share of fields that are numbers."""
    dates: float
    marked: float
    """Share of fields that mark entities."""
    counts: bool
    """Whether the fields are whole numbers in a row: the numbers of the rows."""

    @property
    def is_text(self) -> bool:
        free = (self.words >= 1.5 and 2 * self.values > self.rows) or (self.words > 4 and 10 * self.values > self.rows)
        return free and self.numeric < 0.5 and self.dates < 0.5

    @property
    def is_few(self) -> bool:
        return 2 <= self.values <= max(2, self.rows // 4, min(5, self.rows // 2)) and self.words <= 4 and not self.dates

    @property
    def is_rating(self) -> bool:
        return self.numeric > 0.9 and self.values > 1 and not self.counts and not self.dates

    def __str__(self) -> str:
        if self.is_text:
            what = f"text, {self.words:.0f} words on average"
        elif self.dates >= 0.5:
            what = "dates"
        elif self.values <= 20:
            what = f"{self.values} value{'s' if self.values != 1 else ''}"
        else:
            what = "numbers" if self.numeric > 0.9 else f"{self.values:,} different values"
        return f"{self.name} ({what})"


def _profiles(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[_Profile]:
    widths = Counter(len(row) for row in rows if any(row))
    width = len(header) or (widths.most_common(1)[0][0] if widths else 0)
    columns = [[row[place].strip() for row in rows if len(row) == width] for place in range(width)]
    names = [name.strip() or f"column {place + 1}" for place, name in enumerate(header or ("",) * width)]
    return [_profile(name, [field for field in column if field]) for name, column in zip(names, columns, strict=True)]


def _profile(name: str, fields: Sequence[str]) -> _Profile:
    numbers = [int(field) for field in fields if field.isdecimal() and len(field) < 18]
    return _Profile(
        name=name,
        words=_mean_words(fields),
        values=len(set(fields)),
        rows=len(fields),
        numeric=_share(fields, is_number),
        dates=_share(fields, is_date),
        marked=_share(fields, lambda field: "<e1>" in field),
        counts=len(numbers) == len(fields) > 2 and len(set(numbers)) == len(numbers),
    )


def _find_text(profiles: Sequence[_Profile], label: int | None, kind: type[Corpus[object]]) -> int | None:
    free = [place for place, profile in enumerate(profiles) if place != label]
    if issubclass(kind, Relations):
        marked = [place for place in free if profiles[place].marked > 0.5]
        return marked[0] if len(marked) == 1 else None
    texts = [place for place in free if profiles[place].is_text]
    if len(texts) > 1 and (usual := [place for place in texts if profiles[place].name.lower() in _USUAL_TEXTS]):
        texts = usual
    texts.sort(key=lambda place: -profiles[place].words)
    if len(texts) > 1 and profiles[texts[0]].words < _LONGER * profiles[texts[1]].words:
        return None
    return texts[0] if texts else None


def _find_label(profiles: Sequence[_Profile], text: int | None, kind: type[Corpus[object]]) -> int | None:
    rating = issubclass(kind, Regression)
    fits = [
        place
        for place, profile in enumerate(profiles)
        if place != text and (profile.is_rating if rating else profile.is_few)
    ]
    if len(fits) > 1:
        fits = [place for place in fits if profiles[place].name.lower() in _USUAL_LABELS]
    return fits[0] if len(fits) == 1 else None


def _given(path: Path, flag: str, name: str | None, header: Sequence[str], width: int) -> int | None:
    """Find the column that the user names, by its name or its number."""
    if name is None:
        return None
    names = [field.strip() for field in header]
    folded = [field.lower() for field in names]
    for among, wanted in ((names, name), (folded, name.lower())):
        if among.count(wanted) == 1:
            return among.index(wanted)
        if wanted in among:
            raise UsageError(
                f"{flag} is {name!r}, but {path} has several columns of that name; give its number, from 1"
            )
    if name.isascii() and name.isdecimal() and len(name) < 9:
        if not 1 <= int(name) <= width:
            raise UsageError(f"{flag} is {name}, but {path} has {width} columns; expected 1 to {width}")
        return int(name) - 1
    if not header:
        raise UsageError(f"{flag} is {name!r}, but the first line is no header; give the column's number, from 1")
    raise UnknownNameError(f"column of {path}", name, names)


def _named_so(name: str | None, header: Sequence[str], taken: int | None) -> int | None:
    """Find the one column with the name of the training's; None if there is none, or several."""
    places = [place for place, field in enumerate(header) if field.strip() == name and place != taken]
    return places[0] if len(places) == 1 else None


def _only(
    path: Path, profiles: Sequence[_Profile], known: frozenset[str], header: Sequence[str], taken: int | None
) -> int | None:
    """Find the one column with a name that this library documents."""
    named = [place for place, field in enumerate(header) if field.strip().lower() in known and place != taken]
    if len(named) > 1:
        both = ", ".join(profiles[place].name for place in named)
        flag, what = ("--text-column", "texts") if known is _TEXTS else ("--label-column", "labels")
        by = "name one" if len({profiles[place].name for place in named}) > 1 else "give the number of one, from 1,"
        raise DataError(f"{path}:1: expected one column of {what}, found {both}; {by} with {flag}")
    return named[0] if named else None


def _listed(profiles: Sequence[_Profile]) -> str:
    return ", ".join(map(str, profiles[:30])) + (f" and {len(profiles) - 30:,} more" if len(profiles) > 30 else "")


def _cannot_tell(path: Path, what: str, profiles: Sequence[_Profile], hint: str) -> DataError:
    if not any(profile.rows for profile in profiles):
        return DataError(f"{path}: expected examples below the header, found none")
    found = f"{path}: cannot tell which column holds the {what}; found {_listed(profiles)}"
    return DataError(f"{found}; {hint}{_of_series(profiles)}")


def _of_series(profiles: Sequence[_Profile]) -> str:
    """Say what learns series of numbers, if the file has columns of numbers and none of texts."""
    numbers = any(profile.is_rating for profile in profiles)
    if not numbers or any(profile.is_text for profile in profiles):
        return ""
    return "; series of numbers are learned in Python, by unrolled.sklearn's RecurrentRegressor and RecurrentClassifier"


def _named(header: Sequence[str]) -> str:
    return f" ({', '.join(header)})" if header else ""


def _share(fields: Sequence[str], test: Callable[[str], bool]) -> float:
    return sum(map(test, fields)) / len(fields) if fields else 0.0


def _mean_words(fields: Sequence[str]) -> float:
    return fmean(len(field.split()) for field in fields) if fields else 0.0


def _is_value(field: str) -> bool:
    return is_number(field) or is_date(field)
