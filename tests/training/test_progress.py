from __future__ import annotations

import io

from rich.console import Console

from unrolled.training.loop import Epoch
from unrolled.training.progress import TrainingProgress

EPOCHS = [Epoch(1, 0.7, 0.5, 0.6931, 2.0), Epoch(2, 0.4, 0.82345, 0.51, 2.25), Epoch(3, 0.3, 0.8, 0.6, 2.0)]


def watch(console):
    with TrainingProgress(console, 10) as progress:
        for epoch, best in zip(EPOCHS, (EPOCHS[0], EPOCHS[1], EPOCHS[1]), strict=True):
            progress.step(epoch.number, 50, 100)
            progress.step(epoch.number, 100, 100)
            progress.epoch(epoch, best)


def test_where_there_is_no_terminal_there_is_one_plain_line_an_epoch():
    file = io.StringIO()
    watch(Console(file=file, width=40))
    assert file.getvalue().splitlines() == [
        "epoch  1/10  train loss 0.7000  dev loss 0.6931  dev accuracy 50.00%    2.0 s  best so far",
        "epoch  2/10  train loss 0.4000  dev loss 0.5100  dev accuracy 82.34%    2.2 s  best so far",
        "epoch  3/10  train loss 0.3000  dev loss 0.6000  dev accuracy 80.00%    2.0 s",
    ]


def test_on_a_terminal_there_is_a_bar_as_well():
    file = io.StringIO()
    watch(Console(file=file, force_terminal=True, width=120))
    assert "━" in file.getvalue()
    assert "epoch  3/10" in file.getvalue()
