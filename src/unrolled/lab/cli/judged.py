"""The predictions for a labelled split beside its labels: scores of classes, the worst errors, a page of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from unrolled.errors import UsageError
from unrolled.lab.cli.open_run import has_recurrent_network, open_run
from unrolled.lab.cli.prediction_file import Prediction, predicted_rows
from unrolled.lab.metrics.confusion import Confusion

if TYPE_CHECKING:
    from unrolled.explanation.explanation import Explanation
    from unrolled.lab.training.run_folder import Run

__all__ = ["Judged", "is_text_classification", "judge", "judge_ratings", "print_classes", "write_error_page"]

_SHOWN = 100  # characters of a text
_LONGEST = 400  # tokens of a text that the page explains
_NAME = 24


@dataclass(frozen=True)
class Judged:
    """Every example with its prediction."""

    rows: tuple[Prediction, ...]
    classes: tuple[str, ...]
    labels: tuple[int, ...] = ()
    answers: tuple[int, ...] = ()

    @property
    def confusion(self) -> Confusion:
        """How often an example of one class was predicted to be of another."""
        return Confusion.of(self.classes, self.labels, self.answers)

    @property
    def worst(self) -> list[int]:
        """The numbers of the errors, the surest of a wrong class first."""
        wrong = [
            place
            for place, (label, answer) in enumerate(zip(self.labels, self.answers, strict=True))
            if label != answer
        ]
        return sorted(wrong, key=lambda place: self.rows[place].probabilities[self.labels[place]])


def is_text_classification(run: Run) -> bool:
    """Tell whether a run predicts one class of a whole text."""
    from unrolled.lab.training.text_tasks import TextClassification

    return isinstance(run.task, TextClassification)


def judge(run: Run, examples: Sequence[Any]) -> Judged:
    """Predict the classes of a split."""
    classes = run.task.classes
    index = {name: number for number, name in enumerate(classes)}
    found = predicted_rows(run, [example.tokens for example in examples])
    rows = tuple(
        Prediction(_text(run, example), predicted, probabilities, classes[example.label], example.origin)
        for example, (predicted, probabilities) in zip(examples, found, strict=True)
    )
    labels = tuple(example.label for example in examples)
    return Judged(rows, classes, labels, tuple(index[row.predicted] for row in rows))


def judge_ratings(run: Run, examples: Sequence[Any]) -> Judged:
    """Predict the ratings of a split."""
    found = predicted_rows(run, [example.tokens for example in examples])
    pairs = zip(examples, found, strict=True)
    rows = (
        Prediction(_text(run, each), said, (), repr(each.rating).removesuffix(".0"), each.origin)
        for each, (said, _) in pairs
    )
    return Judged(tuple(rows), ())


def _text(run: Run, example: Any) -> str:
    """Return what the model read: the text as its file has it, or its tokens if ``--max-length`` cut it."""
    at_bound = len(example.tokens) == run.data.max_length
    if at_bound and len(run.text_task().tokenise(example.text)) > len(example.tokens):
        return " ".join(example.tokens)
    return example.text or " ".join(example.tokens)


def print_classes(judged: Judged, errors: int, most: int) -> None:
    """Print the scores of the classes, the confusion matrix and the worst errors."""
    from unrolled.report.formatting import clip, visible

    confusion, names = judged.confusion, [clip(visible(name), _NAME) for name in judged.classes]
    if len(names) <= most:
        width = max(len("class"), *map(len, names))
        typer.echo(f"\n{'class':{width}}  precision  recall      F1  examples")
        for name, score in zip(names, confusion.scores, strict=True):
            numbers = f"{score.precision:9.1%}  {score.recall:6.1%}  {score.f1:6.1%}  {score.examples:8,}"
            typer.echo(f"{name:{width}}  {numbers}")
        typer.echo(f"{'macro':{width}}  {'':9}  {'':6}  {confusion.macro_f1:6.1%}")
        columns = [
            max(len(name), len(f"{max(column):,}"))
            for name, column in zip(names, zip(*confusion.counts, strict=True), strict=True)
        ]
        title = "right class, by row; predicted, by column"
        typer.echo(
            f"\n{title}\n{'':{width}}  "
            + "  ".join(f"{name:>{size}}" for name, size in zip(names, columns, strict=True))
        )
        for name, row in zip(names, confusion.counts, strict=True):
            typer.echo(
                f"{name:{width}}  " + "  ".join(f"{count:>{size},}" for count, size in zip(row, columns, strict=True))
            )
    else:
        typer.echo(f"\nmacro F1 {confusion.macro_f1:.1%} over {len(names):,} classes")
    if confusion.only_answer is not None:
        typer.echo(
            f"\nevery text is predicted to be {visible(confusion.only_answer)}, so accuracy is the share of that class"
        )
    worst = judged.worst
    if worst and errors:
        typer.echo("\nthe error" if len(worst) == 1 else f"\nthe worst of {len(worst):,} errors")
    for place in worst[:errors]:
        wrong = judged.rows[place]
        right = f"{visible(wrong.label or '')} ({wrong.probabilities[judged.labels[place]]:.0%})"
        text = clip(visible(" ".join(wrong.text.split())), _SHOWN)
        typer.echo(f"  {visible(wrong.predicted)} ({max(wrong.probabilities):.0%}), right: {right}: {text}")


def write_error_page(path: Path, run: Run, judged: Judged, most: int) -> str:
    """Explain the worst errors on one page: the predicted class rather than the right one. Return what was written."""
    from unrolled.report.formatting import counted, visible
    from unrolled.report.page import save_pages

    if not has_recurrent_network(run.model):
        raise UsageError(f"{run.folder} has no recurrent network to explain; leave out --html")
    worst = judged.worst
    if not worst:
        return "page: not written, since there is no error"
    explained = [_explain(run, judged, place) for place in worst[:most]]
    save_pages(path, [[each] for each in explained], title=f"Errors of {run.folder.name}")
    more = f", the worst of {len(worst):,}" if len(worst) > most else ""
    return f"page: {visible(str(path))}: {counted(len(explained), 'error')}{more}"


def _explain(run: Run, judged: Judged, place: int) -> Explanation:
    row = judged.rows[place]
    words = row.text.split()
    whole = len(words) <= _LONGEST or run.task.name == "relate"
    chosen = open_run(run, row.text if whole else " ".join(words[:_LONGEST])).choose_target(row.predicted, row.label)
    found = chosen.explain("secant")
    outputs = found.outputs or chosen.outputs
    notes = () if whole else (_cut_note(row, len(words)),)
    shown = None if outputs is None else replace(outputs, true=judged.labels[place])
    return replace(found, outputs=shown, notes=(*found.notes, *notes))


def _cut_note(row: Prediction, words: int) -> str:
    return (
        f"the first {_LONGEST} of {words:,} words are explained, and the outputs are theirs; of the whole text the "
        f"model says {row.predicted} ({max(row.probabilities):.0%})"
    )
