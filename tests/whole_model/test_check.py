"""What check says is what explain and account do, on every model of the zoo; and it leaves the model as it was."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UnrolledError, UsageError
from whole_model_zoo import (
    Bag,
    Classifier,
    Decoder,
    Hierarchy,
    Loop,
    Siamese,
    Sorted,
    Tagger,
    Transformer,
    ids,
)


class Drawn(Classifier):
    def forward(self, tokens):
        return super().forward(tokens) + torch.randn(3)


class FromDictionary(Classifier):
    def forward(self, batch):
        return super().forward(batch["ids"])


class WithoutTensors(Classifier):
    def forward(self, rows):
        return super().forward(torch.tensor(rows))


class Unused(Classifier):
    def __init__(self):
        super().__init__()
        self.other = nn.GRU(2, 2)


LENGTHS = torch.tensor([5, 3])
MODELS = {
    "classifier": (lambda: Classifier(nn.GRU), (ids(1, 5),), {}),
    "deep": (lambda: Classifier(nn.LSTM, 2, True, "attention"), (ids(2, 5),), {}),
    "packed": (lambda: Classifier(nn.RNN, pool="max", packed=True), (ids(2, 5), LENGTHS), {}),
    "sorted": (Sorted, (ids(2, 5), LENGTHS), {}),
    "siamese": (Siamese, (ids(1, 5), ids(1, 4)), {}),
    "hierarchy": (Hierarchy, (ids(1, 3, 4),), {}),
    "decoder": (Decoder, (ids(1, 5), ids(1, 3)), {"target": lambda out: out[:, -1, 2]}),
    "cells": (Loop, (ids(1, 4),), {}),
    "bag": (lambda: Bag("mean"), (ids(2, 4),), {}),
    "tagger": (Tagger, (torch.randn(1, 6, 3),), {"target": lambda out: out[:, 2, 1]}),
    "transformer": (Transformer, (ids(1, 5),), {}),
    "drawn": (Drawn, (ids(1, 5),), {}),
    "drawn with a seed": (Drawn, (ids(1, 5),), {"seed": 1}),
    "not called": (Unused, (ids(1, 5),), {}),
}


def succeeds(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except UnrolledError as error:
        return str(error)
    return None


@pytest.mark.parametrize("name", MODELS)
def test_it_opens_what_explain_and_account_open(name):
    make, args, options = MODELS[name]
    torch.manual_seed(0)
    model = make().double()
    args = tuple(each.double() if each.is_floating_point() else each for each in args)
    found = unrolled.check(model, *args, **options)
    *networks, whole = found.parts
    recurrent = [path for path, part in model.named_modules() if isinstance(part, nn.RNNBase | nn.RNNCellBase)]
    assert [part.path for part in networks] == recurrent
    for part in networks:
        failed = succeeds(unrolled.explain_batch, model, *args, rnn=part.path, **options)
        assert part.opens is (failed is None)
        assert failed is None or part.why == failed
        assert part.call in str(found) or not part.opens
    failed = succeeds(unrolled.account, model, *args, **options)
    assert whole.opens is (failed is None)
    assert failed is None or whole.why == failed
    assert found.opens is any(part.opens for part in found.parts)


@dataclass
class Returned:
    loss: None
    logits: torch.Tensor


FORMS = {
    "lambda out: out[:, -1, 0]": lambda out: out,
    "lambda out: out[-1, :, 0]": lambda out: out.transpose(0, 1),
    "lambda out: out['tags'][:, -1, 0]": lambda out: {"mask": out[..., 0] > 0, "tags": out},
    "lambda out: out[1][0][:, -1, 0]": lambda out: (None, (out, out[:, 0])),
    "lambda out: out.logits[:, 0]": lambda out: Returned(None, out[:, 0]),
    "lambda out: out[0]": lambda out: (out[:, 0, 0], 3),
}


@pytest.mark.parametrize("code", FORMS)
def test_of_an_output_without_classes_the_call_says_a_target_that_works(code):
    class Formed(Tagger):
        def forward(self, x):
            return FORMS[code](super().forward(x))

    torch.manual_seed(0)
    model, x = Formed().double(), torch.randn(2, 6, 3).double()
    network, whole = unrolled.check(model, x).parts
    assert network.call == f"unrolled.explain(model, …, target={code})"
    assert whole.call == f"unrolled.account(model, …, target={code})"
    assert network.opens
    assert whole.opens
    assert len(unrolled.explain_batch(model, x, target=eval(code), max_order=1)) == 2


@pytest.mark.parametrize("examples", [1, 3])
def test_one_number_for_each_example_needs_no_target(examples):
    class Rated(Tagger):
        def forward(self, x):
            return super().forward(x)[:, -1, 0]

    model, x = Rated(), torch.randn(examples, 6, 3)
    network, whole = unrolled.check(model, x).parts
    assert (network.opens, network.call) == (True, "unrolled.explain(model, …)")
    assert (whole.opens, whole.call) == (True, "unrolled.account(model, …)")
    found = unrolled.account(model, x)
    assert found.closes
    torch.testing.assert_close(found.output, model(x).detach())


def test_a_tensor_in_a_dictionary_is_what_the_model_reads():
    batch, rows = {"name": "a", "ids": ids(2, 5)}, ids(2, 5).tolist()
    assert [part.reads for part in unrolled.check(FromDictionary(nn.GRU), batch).parts][-1] == "(2, 5)"
    assert [part.reads for part in unrolled.check(WithoutTensors(nn.GRU), rows).parts][-1] == "no tensor"  # the control


def test_it_counts_calls_and_names_what_is_read():
    pair = unrolled.check(Siamese(), ids(1, 5), ids(1, 4))
    assert (pair.parts[0].calls, pair.parts[0].kind) == (2, "GRU")
    loop = unrolled.check(Loop(), ids(1, 4))
    assert (loop.parts[0].calls, loop.parts[0].kind) == (4, "GRUCell")
    deep = unrolled.check(Classifier(nn.LSTM, 2, True), ids(1, 5)).parts[0]
    assert deep.kind == "LSTM, 2 layers, both directions"
    assert deep.reads == "(1, 5, 5)"
    packed = unrolled.check(Classifier(packed=True), ids(2, 5), LENGTHS).parts[0]
    assert packed.reads.startswith("packed, 5 steps")
    unused = {part.path: part for part in unrolled.check(Unused(), ids(1, 5)).parts}
    assert (unused["other"].calls, unused["other"].reads) == (0, "nothing")
    assert "unrolled.explain(model, …, rnn='rnn')" in str(unrolled.check(Unused(), ids(1, 5)))


def test_it_leaves_the_model_and_refuses_wrong_arguments():
    model = Unused().train()
    before = copy.deepcopy(model.state_dict())
    unrolled.check(model, ids(1, 5))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(part.training and not part._forward_pre_hooks for part in model.modules())
    with pytest.raises(UsageError, match="missing a required argument: 'tokens'"):
        unrolled.check(model)
    with pytest.raises(UsageError, match="the model is a str"):
        unrolled.check("a model")


@pytest.mark.parametrize("wrap", [nn.DataParallel, lambda model: torch.compile(model, backend="eager")])
def test_a_wrapped_model_costs_what_the_model_in_it_costs(wrap):
    model = Classifier(nn.GRU).eval()
    costs, wrapped = ([part.cost for part in unrolled.check(each, ids(1, 5)).parts] for each in (model, wrap(model)))
    assert wrapped == costs
    assert all(int(cost.split()[0]) > 0 for cost in costs)
