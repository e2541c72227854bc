from __future__ import annotations

import io

import pytest
from rich.console import Console

from unrolled.lab.training.callbacks import Epoch, Step
from unrolled.lab.training.progress import TrainingProgress
from unrolled.lab.training.settings import TrainingSettings
from unrolled.lab.training.task import Metric

MEASURES = (Metric("accuracy", ""), Metric("loss", "", higher_is_better=False, unit="nats"))
EPOCHS = [
    Epoch(1, 10, 0.7, 1.0, 0.1, {"accuracy": 0.5, "loss": 0.6931}, best=True),
    Epoch(2, 20, 0.4, 1.0, 0.1, {"accuracy": 0.82345, "loss": 0.51}, best=True),
    Epoch(3, 30, 0.3, 1.0, 0.1, {"accuracy": 0.8, "loss": 0.6}, best=False),
]


def watch(console, before=0):
    with TrainingProgress(console) as progress:
        progress.on_start(MEASURES, TrainingSettings(epochs=10), before)
        for epoch, best in zip(EPOCHS, (EPOCHS[0], EPOCHS[1], EPOCHS[1]), strict=True):
            for done in (5, 10):
                progress.on_step(Step(epoch.step - 10 + done, epoch.number, done, 10, 32, epoch.loss, 1.0, 0.1))
            progress.on_epoch(epoch, best, 2.25)
        progress.on_end()


def test_where_there_is_no_terminal_there_is_one_plain_line_an_epoch():
    file = io.StringIO()
    watch(Console(file=file, width=40))
    assert file.getvalue().splitlines() == [
        "epoch  1/10  train loss 0.7000  dev accuracy 50.00%  dev loss 0.6931 nats  2.2 s  best so far",
        "epoch  2/10  train loss 0.4000  dev accuracy 82.34%  dev loss 0.5100 nats  2.2 s  best so far",
        "epoch  3/10  train loss 0.3000  dev accuracy 80.00%  dev loss 0.6000 nats  2.2 s",
    ]


def test_a_training_that_goes_on_says_where_and_notices_are_shown_as_they_are():
    file = io.StringIO()
    watch(Console(file=file, width=40), before=1234)
    assert file.getvalue().splitlines()[0] == "resuming after step 1,234"
    file = io.StringIO()
    with TrainingProgress(Console(file=file, width=20)) as progress:
        progress.on_message("[red]a file[/red] called like markup, on one long line")
    assert file.getvalue() == "[red]a file[/red] called like markup, on one long line\n"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"warmup": 21}, True),
        ({"warmup": 20}, False),
        ({"warmup": 15, "steps": 14}, True),
        ({"warmup": 30, "steps": 40}, True),
        ({}, False),
    ],
)
def test_a_training_that_ends_before_the_rate_has_risen_says_so(settings, said):
    file = io.StringIO()
    with TrainingProgress(Console(file=file, width=200)) as progress:
        progress.on_start(MEASURES, TrainingSettings(epochs=2, lr=0.1, **settings), 0)
        for number in (1, 2):
            progress.on_step(Step(number, 1, number, 10, 32, 0.7, 1.0, 0.1))
    steps = min(20, settings.get("steps", 20))
    expected = f"the learning rate rises for {settings.get('warmup')} steps, but there are only {steps}: it stays below"
    assert [line.startswith(expected) for line in file.getvalue().splitlines()] == [True] * said


def test_on_a_terminal_there_is_a_bar_as_well():
    file = io.StringIO()
    watch(Console(file=file, force_terminal=True, width=120))
    assert "━" in file.getvalue()
    assert "epoch  3/10" in file.getvalue()
    assert "loss 0.3000" in file.getvalue()
