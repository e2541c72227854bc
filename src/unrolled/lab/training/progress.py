"""Show the progress of a training: a progress bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from unrolled.lab.minute_lines import MinuteLines
from unrolled.lab.training.callbacks import Callback, Epoch, Step
from unrolled.lab.training.settings import TrainingSettings
from unrolled.lab.training.task import Metric
from unrolled.report.formatting import harmless

__all__ = ["TrainingProgress"]


class _Rate(ProgressColumn):
    """Predictions a second: texts or tokens, as the task predicts."""

    def render(self, task: Task) -> Text:
        """Render the speed, once it is known."""
        batch = task.fields.get("predictions", 0)
        return Text(f"{task.speed * batch:,.0f}/s" if task.speed and batch else "")


class TrainingProgress(Callback):
    """A callback that draws the epoch under way and writes one line for each that is over.

    Use it as a context manager. ``sizes`` is the line that a training starts with, ``loss`` what its loss is called.
    """

    def __init__(self, console: Console, sizes: str = "", loss: str = "train loss") -> None:
        self._sizes = sizes
        self._loss = loss
        self._metrics: Sequence[Metric] = ()
        self._settings = TrainingSettings()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            _Rate(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("", total=None)
        self._lines = MinuteLines(self._print)

    def __enter__(self) -> TrainingProgress:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def on_start(self, metrics: Sequence[Metric], settings: TrainingSettings, step: int) -> None:
        """Say how large the splits are, and where a training goes on that was interrupted."""
        self._metrics, self._settings = metrics, settings
        if self._sizes:
            self.on_message(self._sizes)
        if step:
            self.on_message(f"resuming after step {step:,}")

    def on_step(self, step: Step) -> None:
        """Move the bar."""
        if step.number == 1:
            self._note_warmup(step.total)
        description = f"epoch {step.epoch}/{self._settings.epochs}  loss {step.loss:.4f}"
        self._progress.update(
            self._task,
            description=description,
            completed=step.done,
            total=step.total,
            predictions=step.predictions,
        )
        if not self._progress.console.is_terminal:  # a terminal shows the bar
            self._lines.say_if_due(f"{description}  batch {step.done:,}/{step.total:,}")

    def _note_warmup(self, batches: int) -> None:
        """Say so where the training ends before the learning rate has risen: little data, and the warmup of a task."""
        chosen, steps = self._settings, self._settings.most_steps(batches)
        if chosen.warmup > steps:
            self.on_message(
                f"the learning rate rises for {chosen.warmup:,} steps, but there are only {steps:,}: it stays below "
                f"{chosen.lr:g}; choose a smaller --warmup"
            )

    def on_epoch(self, epoch: Epoch, best: Epoch, seconds: float) -> None:
        """Write the epoch's line."""
        width = len(str(self._settings.epochs))
        dev = "".join(f"  dev {each.name} {each.format(epoch.dev[each.name])}" for each in self._metrics)
        line = (
            f"epoch {epoch.number:{width}}/{self._settings.epochs}  {self._loss} {epoch.loss:.4f}{dev}  {seconds:.1f} s"
        )
        self.on_message(f"{line}  best so far" if epoch is best else line)
        self._progress.reset(self._task)

    def on_message(self, text: str) -> None:
        """Write a line."""
        self._lines.say(text)

    def _print(self, text: str) -> None:
        self._progress.console.print(harmless(text), highlight=False, soft_wrap=True, markup=False)
