"""The sub-commands of ``unrolled``, each imported when it is called.

``unrolled --help`` shows the summaries below and imports no command: torch takes long to load, and the packages that
the laboratory needs may be missing.
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

import typer
import typer.core

from unrolled.extras import require_extra

__all__ = ["COMMANDS", "Commands"]


class Command(NamedTuple):
    """Where a command is defined, and its one-line help."""

    module: str
    """The module below ``unrolled``. It has a Typer ``app``, or a function of the command's name."""
    summary: str

    @property
    def in_laboratory(self) -> bool:
        """Whether the command needs the extra ``lab``."""
        return self.module.startswith("lab.")


COMMANDS = {
    "demo": Command(
        "lab.cli.demo",
        "Train a GRU and an LSTM on sentences with negations, and open them: half a minute, no data needed.",
    ),
    "train": Command(
        "lab.cli.train",
        "Train a network for a task and keep it in a run folder; `unrolled train TASK --help` lists its settings.",
    ),
    "data": Command("lab.cli.data", "List, describe, check and fetch datasets."),
    "resume": Command(
        "lab.cli.resume", "Go on from the last checkpoint; on the same machine the end is the same to the last bit."
    ),
    "evaluate": Command("lab.cli.evaluate", "Judge a trained model by all measures of its task."),
    "explain": Command(
        "cli.explain", "Show which n-grams made a network say what it said, and account for the whole logit."
    ),
    "generate": Command(
        "lab.cli.generate",
        "Write a text, word by word or character by character, as a trained language model would go on.",
    ),
    "translate": Command(
        "lab.cli.translate", "Translate a sentence, or a file a line at a time, as a trained translator would."
    ),
    "convert": Command(
        "cli.convert",
        "Turn a checkpoint of torch.save into safetensors, without running the code a pickle may hold.",
    ),
    "parameters": Command("cli.parameters", "Find the hidden size that comes nearest to a number of parameters."),
    "reproduce": Command("lab.cli.reproduce", "Run tables and figures of the papers, and print ours beside theirs."),
}


class Commands(typer.core.TyperGroup):
    """The group of all sub-commands."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, command in COMMANDS.items():
            self.add_command(_Deferred(name, command))


class _Deferred(typer.core.TyperCommand):
    """A command that shows its summary, and is imported when it is called."""

    def __init__(self, name: str, command: Command) -> None:
        panel = "Laboratory (pip install 'unrolled\\[lab]')" if command.in_laboratory else None
        super().__init__(name, help=command.summary, rich_help_panel=panel, add_help_option=False)
        self._command = command

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Leave all words, ``--help`` among them, to the command itself."""
        ctx.args = args
        return args

    def invoke(self, ctx: Any) -> Any:
        """Import the command and run it."""
        name = str(self.name)
        if self._command.in_laboratory:
            require_extra("lab", f"`unrolled {name}`")
        command = typer.main.get_command(self._app(name))
        with command.make_context(name, ctx.args, parent=ctx.parent) as own:
            return command.invoke(own)

    def _app(self, name: str) -> typer.Typer:
        module = importlib.import_module(f"unrolled.{self._command.module}")
        if hasattr(module, "app"):
            app: typer.Typer = module.app
            return app
        app = typer.Typer(add_completion=False)
        app.command(name)(getattr(module, name))
        return app
