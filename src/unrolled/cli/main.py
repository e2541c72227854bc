"""The ``unrolled`` command: where its sub-commands meet, and where every mistake becomes one line.

What goes wrong leaves with a number that a script can act on (BSD's ``sysexits.h``): 2 for a command line
that cannot be, 65 for data that is not what it should be, 70 for what nobody foresaw, 74 for a file that cannot be
read or written, 78 for a settings file; and 130, as every shell has it, for Ctrl-C.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from unrolled import __version__
from unrolled.cli.commands import Commands
from unrolled.errors import FileError, UnrolledError, UsageError

__all__ = ["app", "main", "run"]

INTERRUPTED = 130
"""What a shell reports for a program ended by Ctrl-C, and what typer makes of it: 128 + SIGINT."""
UNFORESEEN = 70
"""For an error that is ours to mend: EX_SOFTWARE."""
_NO_ROOM = (
    "can't allocate memory",
    "out of memory",
    "Storage size calculation overflowed",
    "Overflow when unpacking long",
)
"""What torch says of a tensor for which there is no room."""

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
        bool, typer.Option("--debug", help="Show the traceback of an error; may stand anywhere on the line.")
    ] = False,
) -> None:
    """Open any recurrent network, exactly: which n-grams made it say that?"""


def run(words: Sequence[str]) -> int:
    """Run one command line and say in one line on stderr what went wrong, if anything did.

    Args:
        words: the command line without the program's name.

    Returns:
        The exit status: 0, or the ``exit_code`` of the error.
    """
    plain, debug = _without_debug(words)
    # Spinning threads stall small products when another process wants the core; read when torch is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        status = app(args=plain, prog_name="unrolled", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (`| head`) has gone; Python would complain once more when it flushes stdout at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except typer.TyperException as error:
        return _report(error.format_message(), error.exit_code, debug)
    except UnrolledError as error:
        return _report(str(error), error.exit_code, debug)
    except OSError as error:
        return _report(_describe(error), FileError.exit_code, debug)
    except Exception as error:
        if isinstance(error, MemoryError) or any(words in str(error) for words in _NO_ROOM):
            text = "the memory is not enough for tensors of these sizes; expected a smaller network, or fewer at a time"
            return _report(text, UsageError.exit_code, debug)
        said = ": ".join((type(error).__name__, *str(error).splitlines()[:1]))
        return _report(f"{said}; nobody foresaw this: --debug shows where it happened", UNFORESEEN, debug)
    if status == INTERRUPTED:
        return _report("interrupted", INTERRUPTED, debug=False)
    return status if isinstance(status, int) else 0


def main() -> None:
    """Run the command line that the program was called with, and leave with its status."""
    sys.exit(run(sys.argv[1:]))


def _without_debug(words: Sequence[str]) -> tuple[list[str], bool]:
    """Take ``--debug`` out from wherever it stands: mostly at the end of a line that has just failed."""
    end = words.index("--") if "--" in words else len(words)
    options = [word for word in words[:end] if word != "--debug"]
    return [*options, *words[end:]], len(options) < end


def _describe(error: OSError) -> str:
    what = error.strerror or str(error)
    return f"{error.filename}: {what}" if error.filename else what


def _report(text: str, status: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    print(f"unrolled: error: {' '.join(text.split())}", file=sys.stderr)  # noqa: T201  # one line, whatever it held
    return status
