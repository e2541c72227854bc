"""What messages of errors are made of."""

from __future__ import annotations

import pickle
from collections import OrderedDict, UserDict
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import ConvergenceError, UnknownNameError, UsageError, kind_of
from unrolled.lab.training.run_lock import InUseError

NAMED = [
    (3, "an int"),
    (OrderedDict(), "an OrderedDict"),
    (UserDict(), "a UserDict"),
    (torch.zeros(1), "a Tensor"),
    (nn.RNN(1, 1), "an RNN"),
    (nn.LSTM(1, 1), "an LSTM"),
    (nn.GRU(1, 1), "a GRU"),
    (nn.Identity(), "an Identity"),
]


@pytest.mark.parametrize(("value", "named"), NAMED, ids=[named for _, named in NAMED])
def test_a_type_is_named_with_its_article(value, named):
    assert kind_of(value) == named


def test_numbers_among_known_names_stand_by_their_size_and_words_by_their_letters():
    message = str(UnknownNameError("class", "film", map(str, range(12))))
    assert message.startswith("unknown class 'film'; expected one of: 0, 1, 2, 3")
    assert "expected one of: 9, 10, a, b" in str(UnknownNameError("class", "film", ["b", "10", "a", "9"]))


@pytest.mark.parametrize(
    "error",
    [
        UsageError("wrong"),
        UnknownNameError("class", "film", ["a"]),
        ConvergenceError(0.1, 1e-6, why="it jumps"),
        InUseError("another process writes it", Path("run")),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_is_the_same_in_another_process(error):
    found = pickle.loads(pickle.dumps(error))
    assert (type(found), str(found), vars(found)) == (type(error), str(error), vars(error))


@pytest.mark.slow
def test_a_worker_tells_its_error():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        with pytest.raises(UnknownNameError, match="did you mean 'gru'"):
            pool.submit(unrolled.cells.recurrent, "gruu", 2, 3).result()
        with pytest.raises(TypeError):  # of the worker's own errors, not of how they are sent
            pool.submit(unrolled.cells.recurrent).result()
