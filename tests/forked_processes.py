"""Processes that a test forks, and how each ended."""

from __future__ import annotations

import os

from unrolled.errors import UnrolledError


def forked(work):
    """Do work in a child, which ends with what it returns, with 3 for an error of ours and with 4 for any other."""
    child = os.fork()
    if child:
        return child
    try:
        os._exit(work() or 0)
    except UnrolledError:
        os._exit(3)
    except BaseException:
        os._exit(4)


def exit_code(child):
    """Wait for a child; negative is the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
