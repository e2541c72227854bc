"""The target that a refusal of an output suggests is one that explains it."""

import re

import numpy as np
import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import ShapeError, UnrolledError, UsageError


class Tagger(nn.Module):
    """Gives classes for each step, in the arrangement that is asked for."""

    def __init__(self, arrange):
        super().__init__()
        torch.manual_seed(0)
        self.rnn, self.head, self.arrange = nn.GRU(2, 3), nn.Linear(3, 4), arrange

    def forward(self, x):
        return self.arrange(self.head(self.rnn(x)[0]))


ONE_TEXT, BATCH = torch.zeros(5, 2), torch.zeros(5, 3, 2)
OUTPUTS = {
    "(time, classes)": (ONE_TEXT, lambda y: y, "out[-1:, 1]", lambda out: out[-1:, 1]),
    "(time, batch, classes)": (BATCH, lambda y: y, "out[-1, :, 1]", lambda out: out[-1, :, 1]),
    "(batch, time, classes)": (BATCH, lambda y: y.transpose(0, 1), "out[:, -1, 1]", lambda out: out[:, -1, 1]),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_the_suggested_target_fits_the_output(name):
    x, arrange, written, target = OUTPUTS[name]
    with pytest.raises(ShapeError, match=re.escape(f"a callable target such as lambda out: {written}") + "$"):
        unrolled.explain_batch(Tagger(arrange), x, target=1)
    found = unrolled.explain_batch(Tagger(arrange), x, target=target)
    assert len(found) == (1 if x.dim() == 2 else 3)
    assert abs(found[0].ledger.remainder) < 1e-6


def test_no_target_is_suggested_where_none_fits():
    with pytest.raises(ShapeError, match=r"\(15, 4\); expected \(3, classes\), or a callable target that picks one n"):
        unrolled.explain_batch(Tagger(lambda y: y.flatten(0, 1)), BATCH, target=1)


@pytest.mark.parametrize(("target", "written"), [(4, 0), (-5, 0), (True, 0), (-4, -4), (3, 3)])
def test_the_suggested_class_is_one_of_the_output(target, written):
    with pytest.raises(ShapeError, match=re.escape(f"lambda out: out[-1, :, {written}]") + "$"):
        unrolled.explain_batch(Tagger(lambda y: y), BATCH, target=target)


@pytest.mark.parametrize(("target", "written"), [(2, 2), (-1, -1), (4, 0), (None, 0)])
def test_an_account_suggests_the_class_that_was_asked_for_by_both_orders_of_the_axes(target, written):
    told = f"target=lambda out: out[:, -1, {written}]; out[-1, :, {written}] if the first axis is time"
    with pytest.raises(UsageError, match=re.escape(told) + "$"):
        unrolled.account(Tagger(lambda y: y), BATCH, target=target)
    found = unrolled.account(Tagger(lambda y: y), BATCH, target=lambda out: out[-1, :, written])
    assert found.output.tolist() == pytest.approx(Tagger(lambda y: y)(BATCH)[-1, :, written].tolist())


def test_an_account_suggests_no_number_of_an_output_of_integers():
    with pytest.raises(UsageError, match=r"not \(batch, classes\): pass target=, a function$"):
        unrolled.account(Tagger(lambda y: y.long()), BATCH, target=1)


CALLS = [unrolled.explain_batch, unrolled.account]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(("target", "written"), [(2, 2), (-1, -1), (4, 0), (None, 0)])
def test_the_suggested_class_is_the_one_that_was_asked_for_also_within_a_dictionary(call, target, written):
    model = Tagger(lambda y: {"logits": y[-1]})
    with pytest.raises(UnrolledError, match=re.escape(f"target=lambda out: out['logits'][:, {written}]") + "$"):
        call(model, BATCH, target=target)


@pytest.mark.parametrize("call", CALLS)
def test_classes_of_several_examples_are_told_the_function_that_picks_them(call):
    model, classes = Tagger(lambda y: y[-1]), [2, 0, 3]
    told = "for a class of each example: target=lambda out: out[torch.arange(len(out)), torch.tensor(classes)]"
    for given in (classes, np.array(classes), torch.tensor(classes), tuple(classes)):
        with pytest.raises(UsageError, match=re.escape(told) + "$"):
            call(model, BATCH, target=given)
    others = (
        1.5,
        b"a",
        {"class": 1},
        torch.tensor(1.5),
        ["a", "b", "c"],
        {2, 0, 3},
        [],
        [True, False, True],
        [1.5, 2.5],
    )
    for given in others:  # no indices of several examples in their order
        with pytest.raises(UsageError, match=r"or a callable$"):
            call(model, BATCH, target=given)
    found = call(model, BATCH, target=lambda out: out[torch.arange(len(out)), torch.tensor(classes)])
    own = [float(one.output) if call is unrolled.account else one.ledger.logit for one in found]
    assert own == pytest.approx(model(BATCH)[torch.arange(3), classes].tolist())


NO_TENSORS = {
    "a dictionary": (
        lambda y: {"logits": y[-1], "states": y},
        "a dict with the keys 'logits', 'states': ",
        "out['logits'][:, 0]",
    ),
    "a pair": (lambda y: (y[-1], y), "a tuple of 2: ", "out[0][:, 0]"),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("target", [lambda out: out[:, 0], lambda out: out["logit"][:, 0], lambda out: out.logits])
@pytest.mark.parametrize("name", NO_TENSORS)
def test_a_target_that_takes_what_holds_several_tensors_for_one_is_told_what_it_holds(call, target, name):
    arrange, held, written = NO_TENSORS[name]
    with pytest.raises(UsageError, match=re.escape(f"the target fails on the model's output, {held}")) as told:
        call(Tagger(arrange), BATCH, target=target)
    assert str(told.value).endswith(f"; pick one of its tensors first, as in target=lambda out: {written}")
    assert "\n" not in str(told.value)
    picked = eval(f"lambda out: {written}")  # the advice, as it is written
    assert len(call(Tagger(arrange), BATCH, target=picked)) == 3


@pytest.mark.parametrize("call", CALLS)
def test_a_target_that_fails_on_a_tensor_is_told_no_keys(call):
    with pytest.raises(UsageError, match=r"a Tensor of shape \(3, 4\): IndexError: [^;]*$"):
        call(Tagger(lambda y: y[-1]), BATCH, target=lambda out: out[:, 9])
    with pytest.raises(UsageError, match=r"a dict with the key 'logits': IndexError: [^;]*$"):  # it picked a tensor
        call(Tagger(lambda y: {"logits": y[-1]}), BATCH, target=lambda out: out["logits"][:, 9])
    with pytest.raises(UsageError, match=r"a dict with the keys 0, 1, 2, 3, 4, 5, 6, 7, …: KeyError: 'logits'"):
        call(Tagger(lambda y: dict.fromkeys(range(9), y[-1])), BATCH, target=lambda out: out["logits"])


def holds_itself(y):
    output = {"logits": y[-1]}
    output["all"] = output
    return output


@pytest.mark.parametrize("call", CALLS)
def test_an_output_that_holds_itself_is_told_its_keys(call):
    with pytest.raises(
        UsageError, match=r"with the keys 'logits', 'all': .* target=lambda out: out\['logits'\]\[:, 0\]$"
    ):
        call(Tagger(holds_itself), BATCH, target=lambda out: out[:, 0])
    with pytest.raises(UsageError, match=r"a dict with the key 'logits': "):  # the control
        call(Tagger(lambda y: {"logits": y[-1]}), BATCH, target=lambda out: out[:, 0])
