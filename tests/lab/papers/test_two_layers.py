"""Word models with one setting changed: nothing else differs from the other item."""

from __future__ import annotations

import pytest
import torch

from unrolled.lab.papers.analyses.softmax_dropout import SOFTMAX_DROPOUT, SoftmaxDropoutModelling
from unrolled.lab.papers.framework.experiment import Result
from unrolled.lab.papers.framework.synthetic_corpora import words
from unrolled.lab.papers.second_order_rnns.language import EqualParameters
from unrolled.lab.papers.second_order_rnns.two_layers import TwoLayers
from unrolled.lab.tasks.lm import LanguageModelling, WordModelSettings


@pytest.mark.parametrize("scale", ["smoke", "cpu", "day", "paper"])
def test_a_trial_is_one_of_the_other_item_with_one_setting_changed(scale):
    others = [dict(trial.settings) for trial in EqualParameters().trials(scale)]
    trials = [dict(trial.settings) for trial in TwoLayers().trials(scale)]
    assert {each["model"] for each in trials} == {"LSTM, 2 layers", "mmLSTM, 2 layers", "LSTM"}
    assert len({each["changed"] for each in trials}) == (1 if scale == "paper" else 2)
    for trial in trials:
        change = trial.pop("changed")
        assert trial not in others  # the control
        if "softmax_dropout" in trial:
            assert trial["dropout"] == 0
            assert trial.pop("softmax_dropout") == SOFTMAX_DROPOUT
            assert {**trial, "dropout": SOFTMAX_DROPOUT} in others
        else:
            training = dict(trial["training"])
            epochs = training.pop("epochs")
            assert change == f"{epochs} epochs"
            halved = {**training, **({"epochs": epochs // 2} if scale != "day" else {})}
            assert {**trial, "training": halved} in others
            assert scale != "day" or epochs == 2 * LanguageModelling.training_defaults["epochs"]


@pytest.mark.parametrize("encoder", ["lstm", "mmlstm"])
def test_in_training_nothing_drops_but_the_input_of_the_softmax(encoder):
    tokens = torch.randint(2, 20, (16, 12))
    states = {}
    for task, dropout in ((SoftmaxDropoutModelling, 0.0), (LanguageModelling, SOFTMAX_DROPOUT)):
        settings = WordModelSettings(encoder=encoder, layers=2, hidden=8, embedding=6, dropout=dropout, tied=False)
        torch.manual_seed(0)
        model = task.from_corpus(words(), settings).build()
        seen = []
        model.encoder.register_forward_hook(lambda _module, _given, made, seen=seen: seen.append(made[0]))
        with torch.no_grad():
            scores = [model.train()(tokens), model.eval()(tokens)]
        assert not torch.allclose(*scores)  # some features are dropped in training
        states[task] = seen
    assert torch.equal(*states[SoftmaxDropoutModelling])
    assert not torch.allclose(*states[LanguageModelling])  # the control
    # both draw the same weights
    assert torch.equal(states[SoftmaxDropoutModelling][1], states[LanguageModelling][1])


def test_the_softmax_reads_features_of_which_a_quarter_is_dropped():
    torch.manual_seed(0)
    settings = WordModelSettings(encoder="lstm", hidden=500, embedding=6, dropout=0.0, tied=False)
    model = SoftmaxDropoutModelling.from_corpus(words(), settings).build()
    with torch.no_grad():
        for layer in model.head.modules():
            if isinstance(layer, torch.nn.Linear):
                layer.weight.fill_(1.0)
                layer.bias.zero_()
    features, tokens = torch.ones(200, 500), torch.full((200,), 2)
    types = len(model.embedding.weight)
    kept = model.train().head.scores(features, model.embedding.weight).detach() / 500
    assert abs(float(kept.mean()) - 1.0) < 0.01  # those that are kept count for those that are not
    spread = (SOFTMAX_DROPOUT / (1 - SOFTMAX_DROPOUT) / 500) ** 0.5
    assert 0.8 * spread < float(kept[:, 0].std()) < 1.2 * spread
    assert model.head.loss(features, tokens, model.embedding.weight).item() == pytest.approx(
        200 * float(torch.log(torch.tensor(types))), rel=1e-4
    )
    assert torch.equal(model.eval().head.scores(features, model.embedding.weight), torch.full((200, types), 500.0))


def test_losses_stand_beside_the_published_ones():
    experiment = TwoLayers()
    values = {"dev_loss": 4.9, "test_loss": 4.85, "best_epoch": 12}
    results = [Result(trial, values, 1.0, "", "", "", {}) for trial in experiment.trials("day")[:3]]
    (table,) = experiment.report(results, "day").tables
    change = "dropout before the softmax alone"
    assert table.cells() == [
        [f"LSTM, 2 layers, {change}", "12 (47)", "4.900", "4.850 (4.770)"],
        [f"mmLSTM, 2 layers, {change}", "12 (50)", "4.900", "4.850 (4.818)"],
        [f"LSTM, {change}", "12 (33)", "4.900", "4.850 (4.816)"],
    ]
