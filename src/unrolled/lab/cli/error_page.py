"""A page that explains the worst errors of a model: the predicted class rather than the right one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from unrolled.atomic_write import atomic_write
from unrolled.errors import UsageError
from unrolled.lab.cli.labelled_predictions import LabelledPredictions
from unrolled.lab.cli.prediction_file import Prediction
from unrolled.lab.cli.runs import has_recurrent_network, prepare_sentence

if TYPE_CHECKING:
    from unrolled.explanation.explanation import Explanation
    from unrolled.lab.training.run_folder import Run

__all__ = ["write_error_page"]

_LONGEST = 400
"""Tokens of a text that the page explains."""


def write_error_page(path: Path, run: Run, predictions: LabelledPredictions, most: int, new: bool) -> str:
    """Explain the worst errors on one page: the predicted class rather than the right one. Return what was written.

    If the page is to be ``new``, one that another process has written since is an error.
    """
    from unrolled.report.formatting import counted, visible
    from unrolled.report.page import render_pages

    if not has_recurrent_network(run.model):
        raise UsageError(f"{run.folder} has no recurrent network to explain; leave out --html")
    worst = predictions.worst
    if not worst:
        return "page: not written, since there is no error"
    explained = [_explain(run, predictions, place) for place in worst[:most]]
    page = render_pages([[each] for each in explained], title=f"Errors of {run.folder.name}")
    atomic_write(path, page.encode(), new=new)
    more = f", the worst of {len(worst):,}" if len(worst) > most else ""
    return f"page: {visible(str(path))}: {counted(len(explained), 'error')}{more}"


def _explain(run: Run, predictions: LabelledPredictions, place: int) -> Explanation:
    row = predictions.rows[place]
    words = row.text.split()
    whole = len(words) <= _LONGEST or run.task.name == "relate"
    text = row.text if whole else " ".join(words[:_LONGEST])
    chosen = prepare_sentence(run, text).choose_target(row.predicted, row.label)
    explanation = chosen.explain("secant")
    outputs = explanation.outputs or chosen.outputs
    notes = () if whole else (_cut_note(row, len(words)),)
    shown = None if outputs is None else replace(outputs, true=predictions.labels[place])
    return replace(explanation, outputs=shown, notes=(*explanation.notes, *notes))


def _cut_note(row: Prediction, words: int) -> str:
    return (
        f"the first {_LONGEST} of {words:,} words are explained, and the outputs are theirs; of the whole text the "
        f"model says {row.predicted} ({max(row.probabilities):.0%})"
    )
