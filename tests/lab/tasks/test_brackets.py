from __future__ import annotations

import json

import pytest
import torch

from unrolled.errors import DataError, UsageError
from unrolled.lab.data.batches.labelled_sequences import closing_targets
from unrolled.lab.data.corpus import Brackets
from unrolled.lab.data.datasets.dyck import DyckStrings
from unrolled.lab.tasks.brackets import BracketSettings, CloseBrackets

CORPUS = DyckStrings(2, 4, symbols=(800, 200, 400)).read()
ARCHITECTURES = (
    {},
    {"embedding": 2},
    {"encoder": "lstm"},
    {"encoder": "gru", "embedding": 5, "hidden": 7, "predict": "next"},
    {"encoder": "transformer", "embedding": 6, "hidden": 8, "options": {"dropout": 0.0}},
)
EVERY = pytest.mark.parametrize("parts", ARCHITECTURES, ids=lambda parts: "-".join(map(str, parts.values())) or "dyck")


def made(**parts):
    return CloseBrackets.from_corpus(CORPUS, BracketSettings(**parts))


def trained(model):
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def by_hand(task):
    """Five weights that make the Dyck-RNN a stack with a threshold between the two kinds."""
    model = task.build().double().eval()
    with torch.no_grad():
        model.encoder.cell(0, 0).weight.fill_(40.0)
        model.head.weight.copy_(torch.tensor([[0.0], [20.0]]))
        model.head.bias.copy_(torch.tensor([30.0, 0.0]))
    return model


def test_by_default_it_is_the_model_of_five_parameters():
    assert trained(made().build()) == 5
    assert trained(made(hidden=8).build()) == 5
    assert made().build().encoder.hidden_size == 4
    assert trained(made(embedding=2).build()) == 4 * 2 + 2 + 2 * 2 + 2
    assert made(embedding=2).build().encoder.hidden_size == 8


def test_other_encoders_are_as_large_as_hewitts():
    for kinds, depth, size in ((2, 3, 6), (8, 3, 24), (128, 3, 60), (2, 5, 10), (32, 5, 70)):
        task = CloseBrackets(BracketSettings(encoder="lstm"), kinds, depth)
        assert task.build().encoder.hidden_size == size


def test_weights_set_by_hand_close_every_bracket_and_a_gate_that_leaks_does_not(judge):
    task = made()
    model = by_hand(task)
    assert judge(task, model, CORPUS.test) == pytest.approx(
        {"loss": 0, "wcpa": 1, "by_distance": 1, "accuracy": 1}, abs=1e-4
    )
    with torch.no_grad():
        model.encoder.cell(0, 0).weight.fill_(2.0)
    leaking = judge(task, model, CORPUS.test)
    assert leaking["wcpa"] < leaking["by_distance"] < 1


def test_five_parameters_learn_to_close_every_bracket_of_longer_strings(learn, judge):
    corpus = DyckStrings(2, 2, short=(1, 12), long=(17, 40), symbols=(600, 1, 400)).read()
    task = CloseBrackets.from_corpus(corpus, BracketSettings())
    found = [judge(task, learn(task, corpus.train, steps, lr=0.1), corpus.test) for steps in (0, 150)]
    assert [each["wcpa"] for each in found] == [0.0, 1.0]


@pytest.mark.slow
@pytest.mark.parametrize("parts", ARCHITECTURES[1:], ids=lambda parts: "-".join(map(str, parts.values())))
def test_other_models_learn(learn, judge, parts):
    task = made(**parts)
    before, after = (judge(task, learn(task, CORPUS.train, steps, lr=0.03), CORPUS.train) for steps in (0, 60))
    assert after["accuracy"] > before["accuracy"] + 0.1
    assert after["loss"] < before["loss"] - 0.1


def test_where_nothing_tells_the_kind_nothing_is_learned(learn, judge):
    task = made(encoder="lstm", embedding=4, hidden=6)
    model = learn(task, CORPUS.train, steps=60, lr=0.03)
    with torch.no_grad():  # both kinds look the same
        model.embedding.weight[1] = model.embedding.weight[0]
        model.embedding.weight[3] = model.embedding.weight[2]
    assert judge(task, model, CORPUS.test)["accuracy"] < 0.6


@EVERY
def test_batches_and_their_order_change_nothing(judge, cost, parts):
    task = made(**parts)
    torch.manual_seed(0)
    model = task.build().double()
    whole = cost(task, model, CORPUS.dev, 1000)
    assert whole == pytest.approx(cost(task, model, CORPUS.dev[::-1], 3))
    assert whole == pytest.approx(cost(task, model, CORPUS.dev, 1))
    assert judge(task, model, CORPUS.dev) == pytest.approx(judge(task, model, CORPUS.dev[::-1], 2))


@EVERY
def test_the_loss_and_the_measures_are_those_of_one_string_after_the_other(judge, cost, parts):
    task = made(**parts)
    torch.manual_seed(0)
    model = task.build().double().eval()
    loss, count, right, sure = 0.0, 0, [], {}
    for string in CORPUS.dev:
        kinds, distances = closing_targets(string, 2, 4)
        for t, (kind, distance) in enumerate(zip(kinds, distances, strict=True)):
            logits = model(torch.tensor([string[: t + 1]]))[0, -1].detach()
            if task.architecture.predict == "next":
                loss -= logits.log_softmax(-1)[string[t + 1] if t + 1 < len(string) else 4].item()
                count += 1
                logits = logits[2:4]
            elif kind >= 0:
                loss -= logits.log_softmax(-1)[kind].item()
                count += 1
            if kind >= 0:
                right.append(int(logits.argmax()) == kind)
                sure.setdefault(distance, []).append(logits.softmax(-1)[kind].item() >= 0.8)
    shares = [sum(each) / len(each) for each in sure.values()]
    assert cost(task, model, CORPUS.dev, 1000) == pytest.approx((loss, count))
    assert judge(task, model, CORPUS.dev) == pytest.approx(
        {
            "loss": loss / count,
            "wcpa": min(shares),
            "by_distance": sum(shares) / len(shares),
            "accuracy": sum(right) / len(right),
        }
    )


def test_the_accuracy_of_each_distance_is_at_hand(judge):
    task = made()
    model = by_hand(task)
    with torch.no_grad():
        model.encoder.cell(0, 0).weight.fill_(2.0)
        split = task.encode(CORPUS.dev)
        found = task.distances(model, (split.select(which) for which in split.plan(50)))
    assert list(found) == sorted(found)
    assert all(distance % 2 for distance in found)
    scores = judge(task, model, CORPUS.dev)
    assert min(found.values()) == scores["wcpa"]
    assert found[1] == 1.0
    assert found[max(found)] == 0.0


@EVERY
def test_gradient_reaches_every_parameter(parts):
    task = made(**parts)
    model, split = task.build(), task.encode(CORPUS.train)
    task.loss(model, split.select(torch.arange(len(split))), ()).total.backward()
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, name
            assert parameter.grad.any(), name
    assert (trained(model) == 5) == (parts == {})


def test_its_fields_make_the_same_task_again():
    task = made(encoder="lstm")
    again = CloseBrackets.from_record(json.loads(json.dumps(task.to_record())), task.architecture)
    assert (again.kinds, again.depth) == (2, 4)
    again.build().load_state_dict(task.build().state_dict())


@pytest.mark.parametrize("value", [None, 0, -1, 2.0, "2", True])
@pytest.mark.parametrize("key", ["kinds", "depth"])
def test_fields_that_were_touched_are_refused(key, value):
    with pytest.raises(DataError, match=f"{key} is {value}; expected a positive whole number"):
        CloseBrackets.from_record({"kinds": 2, "depth": 4, key: value}, BracketSettings())


def test_strings_of_another_language_are_refused():
    deeper = Brackets(name="deeper", train=((0,) * 5 + (2,) * 5,), dev=(), test=(), kinds=2, depth=5)
    with pytest.raises(DataError, match="string 1: bracket 5 opens level 5; expected at most 4"):
        made().encode(deeper.train)
    with pytest.raises(DataError, match="no examples"):
        made().encode(deeper.dev)


def test_an_encoder_that_sees_what_it_is_asked_for_is_refused():
    with pytest.raises(UsageError, match="the encoder reads ahead"):
        made(encoder="gru", bidirectional=True).build()
    with pytest.raises(UsageError, match="the encoder reads ahead"):
        made(encoder="transformer", hidden=8, options={"causal": False}).build()
