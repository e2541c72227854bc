"""The table of the classes and the confusion matrix, as ``unrolled evaluate`` prints them."""

from __future__ import annotations

from unrolled.lab.cli.labelled_predictions import LabelledPredictions
from unrolled.lab.cli.printed_classes import print_classes


def printed(capsys, classes):
    numbers = tuple(range(len(classes)))
    print_classes(LabelledPredictions((), tuple(classes), numbers, numbers), 5, 20)
    return capsys.readouterr().out.splitlines()


def test_long_names_of_classes_that_begin_alike_stay_different(capsys):
    places = [f"a complaint about delivery to branch {number}" for number in (1, 2, 30)]
    twins = ["b" * 30 + sign + "b" * 30 for sign in "12"]
    lines = printed(capsys, [*places, "short", "a very long name that has no twin", *twins])
    shown = [line[: line.index(" 100.0%")].rstrip() for line in lines if " 100.0%" in line]
    assert shown[:5] == [
        "a complaint… to branch 1",
        "a complaint… to branch 2",
        "a complaint…to branch 30",
        "short",
        "a very long name that h…",
    ]
    assert shown[5:7] == twins
