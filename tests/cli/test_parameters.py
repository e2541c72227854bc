"""``unrolled parameters``: the size, the count, and one line for what cannot be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Command = Callable[..., Any]


def test_it_finds_the_size_and_states_the_count(unrolled: Command) -> None:
    shown = unrolled("parameters", "mmlstm", "--match", "4.5M", "--input", 128, "--vocabulary", 50)
    assert shown.status == 0
    assert shown.err == ""
    assert shown.out.splitlines() == [
        "mmlstm, 512 hidden units: 4,500,850 parameters, 850 more than 4,500,000",
        "  network 4,468,800, embedding 6,400, softmax 25,650",
        "  next: 511 hidden units: 4,483,900 parameters, 16,100 fewer than 4,500,000",
    ]


def test_without_a_vocabulary_the_network_alone_is_counted(unrolled: Command) -> None:
    shown = unrolled("parameters", "lstm", "--match", "528", "--input", 128)
    assert shown.out.splitlines() == [
        "lstm, 1 hidden unit: 524 parameters, 4 fewer than 528",
        "  next: 2 hidden units: 1,056 parameters, 528 more than 528",
    ]


def test_layers_and_directions_count(unrolled: Command) -> None:
    words = ("parameters", "gru", "--match", "350k", "--input", 64)
    outs = [unrolled(*words, *more).out for more in ((), ("--layers", 2), ("--layers", 2, "--bidirectional"))]
    sizes = [int(out.split()[1]) for out in outs]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 3
    assert unrolled("parameters", "gru", "--match", "1_008", "--input", 8).out.startswith("gru, 14 hidden units")


def test_a_size_that_meets_the_number_says_just(unrolled: Command) -> None:
    assert "just 524" in unrolled("parameters", "lstm", "--match", "524", "--input", 128).out


def test_the_name_that_train_gives_to_an_elman_network_is_known(unrolled: Command) -> None:
    words = ("--match", "5k", "--input", 8)
    assert unrolled("parameters", "rnn", *words).out == unrolled("parameters", "elman", *words).out.replace(
        "elman", "rnn"
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("lstm", "--match", "100", "--input", 128), "too small for lstm"),
        (("mmlst", "--match", "4.5M", "--input", 128), "did you mean 'mmlstm'"),
        (("lstm", "--match", "4.5X", "--input", 128), "expected one such as 4.5M"),
        (("lstm", "--match", "4.5M", "--input", 0), "input_size is 0"),
        (("lstm", "--match", "4.5M", "--input", "many"), "'--input'"),
        (("lstm", "--match", "4.5M"), "--input"),
        (("lstm", "--input", 3), "Missing option '--match': Number of parameters: 4.5M"),
        (("dyck", "--match", "4.5M", "--input", 1), "for every hidden size"),
    ],
)
def test_what_cannot_be_is_one_line(unrolled: Command, words: tuple[object, ...], expected: str) -> None:
    unrolled("parameters", *words).assert_refused(2, expected)
