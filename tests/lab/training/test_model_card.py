"""The card of a run, and the command that makes it again."""

from __future__ import annotations

from toy_tasks import DATA, classify, told
from unrolled.lab.training.data_settings import DataSettings
from unrolled.lab.training.model_card import command, model_card
from unrolled.lab.training.run_config import RunConfig
from unrolled.lab.training.settings import TrainingSettings


def settings(**changes):
    return TrainingSettings(**{"epochs": 1, "steps": 1, "lr": 1e-30, "device": "cpu"} | changes)


def plan(data, **changes):
    return RunConfig(classify(told()), settings(**changes), data, {"train": 3, "dev": 2, "test": 1}, 2)


def card(data):
    figures = dict.fromkeys(("dev_accuracy", "test_accuracy", "dev_loss", "test_loss"), 0.5)
    counts = {"parameters": 1234567.0, "best_epoch": 2, "steps": 7, "seconds": 3.0}
    return model_card(plan(data), figures | counts, 3)


def test_a_card_says_what_was_learned_from_what_and_how_well():
    text = card(DataSettings(data=("told",)))
    for expected in (
        "| accuracy | 50.00% | 50.00% | share of texts with the right class |",
        "| loss | 0.5000 nats | 0.5000 nats | mean cross-entropy of a text |",
        "| train | 3 |",
        "1,234,567 parameters",
        "2 of 3",
        "by 2 processes",
        "| encoder | gru |",
        "| word_dropout | 0.05 |",
    ):
        assert expected in text


def test_nothing_a_user_wrote_is_markup_on_the_card():
    nasty = "a|b <script>alert(1)</script> [x](http://y) `c` **d**\n# e"
    text = card(DataSettings(data=(nasty,), test=("``` rm",)))
    outside, inside = [], False
    for line in text.splitlines():
        if line.startswith("````"):  # longer than the fence in the text
            inside = not inside
        elif not inside:
            outside.append(line)
    shown = "\n".join(outside)
    assert "<script>" not in shown
    assert "\\<script\\>" in shown
    assert "\\[x\\]" in shown
    assert "\n# e" not in shown


def test_the_command_trains_the_same_again():
    data = DataSettings(data=("a b.tsv", "c.tsv"), limit=5)
    words = command(plan(data, schedule="cosine", tensorboard=True))
    assert words == (
        "unrolled train classify --data 'a b.tsv' c.tsv --limit 5 --hidden 8 --embedding 6 --dropout 0.1 "
        "--word-dropout 0.05 --epochs 1 --steps 1 --lr 1e-30 --schedule cosine --device cpu --tensorboard"
    )
    chosen = classify(told(), encoder="mmlstm", options={"choices": 2, "bias": False})
    assert "--option choices=2 bias=false" in command(RunConfig(chosen, TrainingSettings(), DATA, {}, ""))
