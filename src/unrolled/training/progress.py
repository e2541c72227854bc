"""Showing a training while it runs: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

from types import TracebackType

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

from unrolled.training.loop import Epoch

__all__ = ["TrainingProgress"]


class _Rate(ProgressColumn):
    """Texts a second."""

    def render(self, task: Task) -> Text:
        """Write the speed, once it is known."""
        return Text("" if task.speed is None else f"{task.speed:,.0f} texts/s")


class TrainingProgress:
    """A watcher that draws the epoch under way and writes one line for each that is over.

    Use it as a context manager.

    Args:
        console: where to; a bar is drawn only if it is a terminal.
        epochs: how many there will be at most.
    """

    def __init__(self, console: Console, epochs: int) -> None:
        self.epochs = epochs
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

    def __enter__(self) -> TrainingProgress:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def step(self, epoch: int, done: int, total: int) -> None:
        """Move the bar.

        Args:
            epoch: which epoch is under way.
            done: how many texts it has seen.
            total: how many there are.
        """
        self._progress.update(self._task, description=f"epoch {epoch}/{self.epochs}", completed=done, total=total)

    def epoch(self, epoch: Epoch, best: Epoch) -> None:
        """Write the epoch's line.

        Args:
            epoch: the one that is over.
            best: the best so far.
        """
        width = len(str(self.epochs))
        line = (
            f"epoch {epoch.number:{width}}/{self.epochs}  train loss {epoch.loss:.4f}  "
            f"dev loss {epoch.dev_loss:.4f}  dev accuracy {epoch.dev_accuracy:6.2%}  {epoch.seconds:5.1f} s"
        )
        self._progress.console.print(f"{line}  best so far" if epoch is best else line, highlight=False, soft_wrap=True)
        self._progress.reset(self._task)
