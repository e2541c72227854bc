"""Named entities as the authors' code learns them: steps of a batch's sum, dropout of word vectors, VA-W by place."""

from __future__ import annotations

import pytest
import torch

from unrolled.lab.papers.analyses.published_code.block_weights import PlaceWeights
from unrolled.lab.papers.analyses.published_code.names_of_code import NamesByPlace, NamesOfCode
from unrolled.lab.papers.framework.experiment import Result
from unrolled.lab.papers.framework.synthetic_corpora import entities
from unrolled.lab.papers.implicit_ngrams.names_of_code import EntitiesOfCode

CORPUS = entities((32, 8, 8))


def settings(model):
    return next(each.settings for each in EntitiesOfCode().trials("day") if each.settings["model"] == model)


def tagger(kind=NamesOfCode, **chosen):
    torch.manual_seed(0)
    task = kind.from_corpus(CORPUS, kind.Architecture(**{"embedding": 300, "hidden": 4, "shapes": 0, **chosen}))
    return task.build()


@pytest.mark.parametrize("size", [0.1, 100.0])
def test_the_steps_of_the_mean_are_those_of_the_code_with_the_sum(size):
    chosen, costs, after = settings("GRU"), size * torch.randn(32, 5, device="cpu"), []
    for reduce, rate, clip in [("mean", chosen["lr"], chosen["clip"]), ("sum", 0.01, 5.0)]:
        weight = torch.ones(5, device="cpu", requires_grad=True)
        optimiser = torch.optim.SGD([weight], rate)
        getattr((costs * weight**2).sum(dim=1), reduce)().backward()
        torch.nn.utils.clip_grad_norm_([weight], clip)
        optimiser.step()
        after.append(weight.detach())
    torch.testing.assert_close(*after)
    assert not torch.equal(after[0], torch.ones(5, device="cpu"))


def test_word_vectors_are_wide_and_alone_lose_features():
    model = tagger(dropout=0.5, word_dropout=0.0)
    words = torch.tensor([[1, 2, 3]], device="cpu")
    assert float(model.embedding.weight[1:].detach().std()) == pytest.approx(1.0, rel=0.05)
    dropped = model.train().embedding(words)
    assert 0.3 < float((dropped == 0).float().mean()) < 0.7
    states = []
    model.encoder.register_forward_hook(lambda _, __, output: states.append(output[0]))
    read = []
    model.head.register_forward_hook(lambda _, given, __: read.append(given[0]))
    model(words)
    assert torch.equal(states[0], read[0])
    assert not (model.eval().embedding(words) == 0).any()


def test_the_codes_va_w_reads_each_word_alone_by_its_place_in_a_block():
    encoder = PlaceWeights(3, 2, block=2).double()
    inputs = torch.randn(1, 5, 3, dtype=torch.float64, device="cpu")
    contexts = encoder(inputs)[0].detach()
    for place in range(5):
        expected = encoder.weight[place % 2].detach() @ inputs[0, place]
        torch.testing.assert_close(contexts[0, place], expected)
    changed = inputs.clone()
    changed[0, 0] += 1.0
    assert torch.equal(encoder(changed)[0][0, 1:], contexts[0, 1:])
    model = tagger(NamesByPlace, encoder="va_w", bidirectional=False, options={"window": 20})
    assert model.encoder.weight.shape == (20, 4, 300)
    assert 0.09 < float(model.encoder.weight.detach().abs().max()) <= 0.1


def test_f1_of_entities_stands_beside_the_published_one():
    experiment = EntitiesOfCode()
    values = {"dev_f1": 0.7, "test_f1": 0.6}
    results = [Result(trial, values, 1.0, "", "", "", {}) for trial in experiment.trials("day")]
    (table,) = experiment.report(results, "day").tables
    rows = {row[0]: row[1:] for row in table.cells()}
    assert rows["MVMA-G"] == ["70.0 (75.0)", "60.0 (67.7)"]
    assert "MM" not in rows
