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


def test_columns_stand_below_each_other_in_any_script(capsys):
    lines = printed(capsys, ["好評", "bad"])
    assert [line for line in lines if line.startswith(("class", "好評", "bad", "     "))] == [
        "class  precision  recall      F1  examples",
        "好評      100.0%  100.0%  100.0%         1",
        "bad       100.0%  100.0%  100.0%         1",
        "       好評  bad",
        "好評      1    0",
        "bad       0    1",
    ]


def test_a_matrix_that_is_wider_than_the_terminal_has_numbers_above_its_columns(capsys, monkeypatch):
    classes = [f"the subject number {number}" for number in range(1, 12)]
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes the output for a terminal
    lines = printed(capsys, classes)
    below = lines[lines.index("right class, by row; predicted, by column") + 1 :]
    assert below[0].split() == [str(number) for number in range(1, 12)]
    assert below[1].split()[:5] == ["1", "the", "subject", "number", "1"]
    assert max(map(len, lines)) <= 80
    monkeypatch.delenv("FORCE_COLOR")
    assert classes[-1] in printed(capsys, classes)[lines.index("right class, by row; predicted, by column") + 1]
