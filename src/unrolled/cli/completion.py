"""``unrolled completion``: completion of command lines in bash, zsh and fish, by typer.

The script that a shell loads calls ``unrolled`` with the words so far in variables of the environment.
"""

from __future__ import annotations

import os
from typing import Annotated

import typer

from unrolled.errors import UnknownNameError

__all__ = ["completion", "prepare_completion"]

_VARIABLE = "_UNROLLED_COMPLETE"
"""Set by the scripts where a shell asks for completions."""
_SHELLS = ("bash", "zsh", "fish")


def _shells(incomplete: str) -> list[str]:
    return [shell for shell in _SHELLS if shell.startswith(incomplete)]


def completion(
    shell: Annotated[str, typer.Argument(help="bash, zsh or fish.", autocompletion=_shells)],
) -> None:
    """Print the script by which bash, zsh or fish completes command lines of unrolled.

    A shell that is started afterwards completes them; ~/.zshrc must have called compinit before:

        unrolled completion bash >> ~/.bashrc
        unrolled completion zsh >> ~/.zshrc
        unrolled completion fish > ~/.config/fish/completions/unrolled.fish
    """
    from typer._completion_shared import get_completion_script

    if shell not in _SHELLS:
        raise UnknownNameError("shell", shell, _SHELLS)
    typer.echo(get_completion_script(prog_name="unrolled", complete_var=_VARIABLE, shell=shell))


def prepare_completion() -> bool:
    """Prepare typer to answer a shell; return whether one asks."""
    if not os.environ.get(_VARIABLE):
        return False
    from typer import _completion_classes as classes
    from typer._click.shell_completion import CompletionItem, ShellComplete, add_completion_class

    class WithoutFiles(ShellComplete):
        """Leaves files to the shell itself."""

        def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
            return [item for item in super().get_completions(args, incomplete) if item.type == "plain"]

    class Bash(WithoutFiles, classes.BashComplete):
        pass

    class Zsh(WithoutFiles, classes.ZshComplete):
        pass

    class Fish(WithoutFiles, classes.FishComplete):
        pass

    for kind, shell in zip((Bash, Zsh, Fish), _SHELLS, strict=True):
        add_completion_class(kind, shell)
    return True
