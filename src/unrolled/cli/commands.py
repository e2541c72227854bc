"""The sub-commands of ``unrolled``, each imported when it is called.

``unrolled --help`` shows the summaries below and imports no command: torch takes long to load, and the packages that
the laboratory needs may be missing.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any, NamedTuple

import typer
import typer.core

from unrolled.cli.interruption import CommandInterrupted
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
        "Train a GRU and an LSTM on sentences with negations, and explain them: about a minute, no data needed.",
    ),
    "train": Command(
        "lab.cli.train",
        "Train a network for a task and save it in a run folder; `unrolled train TASK --help` lists the settings.",
    ),
    "data": Command("lab.cli.data", "List, describe, check and fetch datasets, and make tables of text files."),
    "resume": Command(
        "lab.cli.resume",
        "Resume a stopped training from its last checkpoint; on the same machine the result is the same, bit by bit.",
    ),
    "evaluate": Command("lab.cli.evaluate", "Evaluate a trained model by all metrics of its task."),
    "predict": Command(
        "lab.cli.predict",
        "Predict the class or the rating of every text of a file, as CSV with the probabilities of all classes.",
    ),
    "explain": Command(
        "cli.explain", "Explain which n-grams made a network produce its output; the parts add up to the logit."
    ),
    "generate": Command(
        "lab.cli.generate",
        "Generate text with a trained language model, word by word or character by character.",
    ),
    "score": Command("lab.cli.score", "Score texts by a trained language model, and rank them: the likeliest first."),
    "translate": Command(
        "lab.cli.translate", "Translate a sentence, or each line of standard input, with a trained model."
    ),
    "tag": Command(
        "lab.cli.tag", "Tag each token of a sentence, or of each line of standard input, with a trained model."
    ),
    "convert": Command(
        "cli.convert",
        "Convert a checkpoint of torch.save to safetensors, without running code that a pickle may contain.",
    ),
    "parameters": Command(
        "cli.parameters", "Find the hidden size with the number of parameters nearest to a given one."
    ),
    "completion": Command(
        "cli.completion", "Print the script by which bash, zsh or fish completes command lines of unrolled."
    ),
    "reproduce": Command(
        "lab.cli.reproduce",
        "Reproduce tables and figures of the papers, and print our results beside the published ones.",
    ),
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

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Make the context of the command itself where a shell asks for completions."""
        if not extra.get("resilient_parsing"):
            return super().make_context(info_name, args, parent=parent, **extra)
        command = typer.main.get_command(self._app(str(self.name)))
        return command.make_context(info_name, args, parent=parent, **extra)

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
        try:
            with command.make_context(name, ctx.args, parent=ctx.parent) as own:
                return command.invoke(own)
        except KeyboardInterrupt as stop:  # Typer would drop its text
            raise CommandInterrupted(stop) from None

    def _app(self, name: str) -> typer.Typer:
        module = importlib.import_module(f"unrolled.{self._command.module}")
        if hasattr(module, "app"):
            app: typer.Typer = module.app
            return app
        function = getattr(module, name)
        app = typer.Typer(add_completion=False)
        app.command(name, help=_unwrapped(inspect.getdoc(function) or ""))(function)
        return app


def _unwrapped(text: str) -> str:
    """Join the lines of each paragraph, which Typer would keep apart; those of an indented one, of examples, stay."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(each if each.startswith(" ") else each.replace("\n", " ") for each in paragraphs)
