"""The ``unrolled`` command: run a sub-command and turn every error into one line.

Exit codes follow BSD's ``sysexits.h``: 2 for a wrong command line, 65 for wrong data, 70 for a computation that failed
(a training that diverged, a quadrature that did not converge) or an internal error, 74 for a file that cannot be read
or written, 78 for a wrong settings file; and 130 for Ctrl-C, 143 for SIGTERM.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from unrolled import __version__
from unrolled.cli import completion
from unrolled.cli.commands import Commands
from unrolled.cli.interruption import CommandInterrupted, advice, advise_with, ignore, received, working
from unrolled.cli.left_output import ReaderLeft, watched_output
from unrolled.cli.other_names import name_here
from unrolled.cli.process_setup import prepare_process
from unrolled.errors import DataError, FileError, StoppedError, UnrolledError, UsageError
from unrolled.report.formatting import visible

__all__ = ["app", "main", "run"]

_INTERRUPTED = 130
"""128 + SIGINT: what shells and typer report for Ctrl-C."""
_INTERNAL = 70
"""EX_SOFTWARE: an error of this package."""
_SHOWN = 40  # characters of a value that is refused
_OUT_OF_MEMORY = (
    "can't allocate memory",
    "out of memory",
    "Storage size calculation overflowed",
    "Overflow when unpacking long",
)
"""Messages of torch for a tensor that does not fit into memory."""

app = typer.Typer(
    name="unrolled",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"unrolled {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; allowed anywhere on the line.")
    ] = False,
) -> None:
    """Explain any recurrent network exactly: which n-grams produced an output?"""


def run(words: Sequence[str]) -> int:
    """Run one command line, without the program's name, and return the exit code.

    An error is printed on stderr as one line.
    """
    plain, debug = _without_debug(words)
    advise_with()
    if completion.prepare_completion():
        return _complete(plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a letter that the terminal's encoding lacks is shown by its code
            stream.reconfigure(errors="backslashreplace")
    try:
        Path.cwd()
    except FileNotFoundError:  # libraries that are loaded later would end the process with messages of their own
        return _report("the current folder has been deleted; change to another one", FileError.exit_code, debug)
    # Threads that wait actively slow down small products on a busy machine; torch reads this when it is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        with watched_output():
            status = app(args=plain, prog_name="unrolled", standalone_mode=False)
            sys.stdout.flush()
    except ReaderLeft:
        return 0
    except CommandInterrupted as stop:
        return _report(stop.text or advice(plain), _signal_code(), debug=False)
    except StoppedError as error:
        return _report(str(error), error.exit_code, debug)
    except Exception as error:
        if received() is not None:  # the signal has become another error on its way, as an import that failed
            return _report(advice(plain), _signal_code(), debug)
        return _report_error(error, debug)
    if status == _INTERRUPTED:
        return _report(advice(plain), _signal_code(), debug=False)
    return status if isinstance(status, int) else 0


def _complete(words: Sequence[str]) -> int:
    """Answer a shell that asks for completions; what cannot be completed is no error."""
    try:
        app(args=list(words), prog_name="unrolled", standalone_mode=False)
    except Exception:  # its text would stand in the middle of a line that somebody is typing
        return 1
    return 0


def _signal_code() -> int:
    """Return 128 + the number of the signal that was received; without a handler it was Ctrl-C."""
    return 128 + (received() or signal.SIGINT)


def _report_error(error: Exception, debug: bool) -> int:
    """Print an error as one line, and return its exit code."""
    if isinstance(error, typer.TyperException):
        # A group without a command has shown its help, which is what was asked for.
        text = _rephrased(error) or _with_what_was_given(error)
        return _report(text, error.exit_code, debug) if text else 0
    if isinstance(error, UnrolledError):
        return _report(str(error), error.exit_code, debug)
    if isinstance(error, OSError):
        return _report(_describe(error), FileError.exit_code, debug)
    if isinstance(error, UnicodeDecodeError):
        byte = f"the byte 0x{error.object[error.start]:02x}"
        return _report(
            f"the input is not UTF-8: it has {byte}; save it with the encoding UTF-8", DataError.exit_code, debug
        )
    if isinstance(error, MemoryError) or any(words in str(error) for words in _OUT_OF_MEMORY):
        text = "not enough memory for tensors of these sizes; use a smaller network, or a smaller batch"
        return _report(text, UsageError.exit_code, debug)
    said = ": ".join((type(error).__name__, *str(error).splitlines()[:1]))
    return _report(f"internal error: {said}; please report it with the output of --debug", _INTERNAL, debug)


def _rephrased(error: typer.TyperException) -> str:
    """Say what an unknown option is called here, what a missing one is, and where an argument too many stands."""
    name, text = getattr(error, "option_name", None) or "", str(error.message)
    if text.startswith("No such option") and (not name.startswith("--") or len(name.split()) > 1):
        return f"{text}; a text that begins with - is given after --"
    context = getattr(error, "ctx", None)
    if text.startswith("No such option") and context is not None:
        flags = {
            flag.removeprefix("--").replace("-", "_"): flag for each in context.command.params for flag in each.opts
        }
        if (here := name_here(name, flags)) is not None:
            return f"{text}; did you mean {flags[here]!r}?"
        if isinstance(context.command, typer.core.TyperGroup) and not getattr(error, "possibilities", None):
            return _before_its_command(name, context)
    said, explained = error.format_message(), getattr(getattr(error, "param", None), "help", None)
    if said.startswith("Missing ") and explained:
        return f"{said.removesuffix('.')}: {explained}"
    if text.startswith("Got unexpected extra argument") and context is not None:
        given = text.partition("(s) ")[2]
        usage = " ".join([context.command_path, *context.command.collect_usage_pieces(context)])
        return f"unexpected argument {given}; expected: {usage}"
    return ""


def _with_what_was_given(error: typer.TyperException) -> str:
    """Say what stands where a number is expected, which the check of a number leaves out."""
    said = error.format_message().replace("Input should be", "expected")
    mistakes = getattr(error.__cause__, "errors", None)
    if mistakes is None:
        return said
    given = str(mistakes(include_url=False)[0]["input"])
    return f"{said.partition(', unable to parse')[0]}, found {given[:_SHOWN]!r}"


def _before_its_command(name: str, context: Any) -> str:
    """Say which commands of a group have an option that stands before them; those of deferred ones are not known."""
    group, path = context.command, context.command_path
    names = group.list_commands(context)
    having = [
        each
        for each in names
        if any(
            name in (*option.opts, *option.secondary_opts)
            for option in group.get_command(context, each).get_params(context)
        )
    ]
    if not having:
        return f"no such option of `{path}`: {name}; options stand behind its command: {path} {names[0]} --help"
    return f"{name} follows no command; expected {path} COMMAND {name}, with one of {', '.join(having)}"


def main() -> None:
    """Run the command line of this process and exit with its code."""
    try:
        with working():
            prepare_process()
            code = run(sys.argv[1:])
    except KeyboardInterrupt:  # before the command, or while an error was being printed
        code = _report(advice(sys.argv[1:]), _signal_code(), debug=False)
    ignore()
    sys.exit(code)


def _without_debug(words: Sequence[str]) -> tuple[list[str], bool]:
    """Remove ``--debug`` from anywhere on the line: people add it at the end of a line that has just failed."""
    end = words.index("--") if "--" in words else len(words)
    options = [word for word in words[:end] if word != "--debug"]
    return [*options, *words[end:]], len(options) < end


def _describe(error: OSError) -> str:
    what = error.strerror or str(error)
    return f"{error.filename}: {what}" if error.filename else what


def _report(text: str, status: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    said = visible(" ".join(text.split()))  # on one line, and without what a path could do to the terminal
    with suppress(BrokenPipeError):  # the reader of both streams has left (`2>&1 | head`)
        print(f"unrolled: error: {said}", file=sys.stderr)  # noqa: T201  # the one place that prints errors
    return status
