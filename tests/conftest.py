"""What all tests share: tests/reference.py importable, one thread, seeds, signals, and the real datasets if at hand."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
torch.set_num_threads(1)
# programs that the tests start inherit what this process ignores: SIGINT in the background, SIGHUP under nohup
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# torch.manual_seed notes the stack for every kind of device that is not there: milliseconds, several times in a test
for device in (torch.cuda, torch.xpu, torch.mtia):
    if not device.is_available():
        device.manual_seed_all = id  # does nothing

# The tests write thousands of files, none of which has to survive a crash of the machine: milliseconds each. A wrong
# descriptor is an error of fstat as well. Programs that the tests start wait for the disk as ever.
os.fsync = os.fstat

# fixtures: the command line in the test's own process, and a network that it trained on made-up reviews;
# and the markers quick_diagonal and slow_diagonal
pytest_plugins = ["command_line", "diagonals", "toy_reviews"]


def seed(name):
    """Draw the same numbers whichever tests ran before in this process."""
    number = zlib.crc32(name.encode())
    random.seed(number)
    np.random.seed(number)
    torch.manual_seed(number)


def pytest_collection_finish():
    """Spare the garbage collector what lives as long as the run: thousands of tests, and the modules of torch."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_collectstart(collector):
    if isinstance(collector, pytest.Module):
        seed(collector.path.name)  # what a module draws when it is imported does not depend on the modules before it


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    seed(item.path.name)  # fixtures of a module are made before the first of its tests, which need not be the same one


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item):
    seed(item.nodeid)


@pytest.fixture(autouse=True)
def no_mode_is_left():
    """A mode that a test left open would meet the operations of all tests after it."""
    yield
    assert torch._C._len_torch_function_stack() == 0


@pytest.fixture
def data_folder():
    """Where the real datasets lie."""
    folder = os.environ.get("UNROLLED_DATA")
    if not folder:
        pytest.skip("UNROLLED_DATA is not set: the real datasets were not looked at")
    return Path(folder)
