"""A target of an account is one number for each example."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import RandomOperationError, ShapeError, StrictError, UsageError


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.GRU(4, 5, batch_first=True), nn.Linear(5, 6)

    def forward(self, series):
        return self.head(self.rnn(series)[0][:, -1])


def test_several_numbers_an_example_are_refused():
    with pytest.raises(ShapeError, match=r"the target gave shape \(3, 6\); expected one number an example"):
        unrolled.account(Forecast(), torch.randn(3, 7, 4), target=lambda output: output)


def test_the_classes_of_one_example_are_no_examples():
    with pytest.raises(ShapeError, match=r"the target gave shape \(1, 6\); expected one number an example"):
        unrolled.account(Forecast(), torch.randn(1, 7, 4), target=lambda output: output)
    for target in (lambda output: output[:, 2], lambda output: output.sum()):
        assert len(unrolled.account(Forecast(), torch.randn(1, 7, 4), target=target).output) == 1


class EveryStep(Forecast):
    def forward(self, series):
        return self.head(self.rnn(series)[0])


def test_the_classes_of_one_step_are_no_examples():
    model, series = EveryStep(), torch.randn(1, 7, 4)
    for target, shape in ((lambda output: output[:, -1], "1, 6"), (lambda output: output[:, :, 2], "1, 7")):
        with pytest.raises(ShapeError, match=rf"the target gave shape \({shape}\); expected one number an example"):
            unrolled.account(model, series, target=target)
    assert len(unrolled.account(model, series, target=lambda output: output[:, -1, 2]).output) == 1


def test_a_row_of_examples_is_told_by_the_arguments():
    class OfLayers(EveryStep):
        def forward(self, series):
            return super().forward(series)[:, -1][None]  # (layers, batch, numbers)

    model, series = OfLayers(), torch.randn(3, 7, 4)
    found = unrolled.account(model, series, target=lambda output: output[:, :, 2])
    torch.testing.assert_close(found.output, model(series)[0, :, 2].detach())


def test_examples_that_stand_second_in_an_output_are_told_by_the_arguments():
    class Last(Forecast):
        def forward(self, series):
            return super().forward(series)[:, 2][None]

    model, series = Last(), torch.randn(3, 7, 4)
    found = unrolled.account(model, series, target=lambda output: output[0])
    torch.testing.assert_close(found.output, model(series)[0].detach())
    assert found.closes


@pytest.mark.parametrize(
    "target", [lambda output: output[:, 2], lambda output: output[:, 2:3], lambda output: output[None, :, 2]]
)
def test_one_number_an_example_is_taken_with_and_without_an_axis_of_one(target):
    model, series = Forecast().double(), torch.randn(3, 7, 4).double()
    found = unrolled.account(model, series, target=target)
    assert torch.allclose(found.output, model(series)[:, 2])
    assert found.features["0"].shape == (3, 7, 4)


class OneNumber(Forecast):
    def forward(self, series):
        return super().forward(series)[:, 2]


@pytest.mark.parametrize("place", [0, 2])
def test_an_index_that_picks_an_example_in_place_of_a_class_is_noted(place):
    model, series = OneNumber(), torch.randn(3, 7, 4)
    *_, note = unrolled.account(model, series, target=place).notes
    assert note.startswith(f"the output has shape (3,), and number {place} reads nothing but example {place} ")
    with pytest.raises(StrictError, match="target=lambda out: out accounts for all of them"):
        unrolled.account(model, series, target=place, strict=True)
    whole = unrolled.account(model, series, target=lambda out: out)
    assert len(whole) == 3
    assert not any("the output has shape" in note for note in whole.notes)


def test_a_class_of_one_example_is_none_of_its_steps():
    """The control: an example without a batch, of as many steps as there are classes, has no such note."""

    class Unbatched(Forecast):
        def forward(self, series):
            return super().forward(series[None])[0, :3]

    found = unrolled.account(Unbatched(), torch.randn(3, 4), target=2)
    assert not any("the output has shape" in note for note in found.notes)


def test_one_number_an_example_needs_no_target():
    model, series = OneNumber().double(), torch.randn(3, 7, 4).double()
    found, named = unrolled.account(model, series), unrolled.account(model, series, target=lambda out: out)
    torch.testing.assert_close(found.output, model(series).detach())
    torch.testing.assert_close(found.features["0"], named.features["0"])
    assert found.closes
    assert found.target == "the output"
    assert unrolled.account(model, series, classes=["load"]).target == "load"
    assert unrolled.check(model, series).parts[-1].call == "unrolled.account(model, …)"


@pytest.mark.parametrize("steps", [3, 6])
def test_numbers_of_one_example_are_not_taken_for_examples(steps):
    """The control: six numbers of one series, of which each reads every step, also where there are six steps."""

    class Unbatched(Forecast):
        def forward(self, series):
            return super().forward(series[None])[0]

    model, series = Unbatched(), torch.randn(steps, 4)
    with pytest.raises(UsageError, match=r"of shape \(6,\), not \(batch, classes\): pass target=, an index or a f"):
        unrolled.account(model, series)
    with pytest.raises(UsageError, match="target=0 of one example, target=lambda out: out of a number an example"):
        unrolled.account(model, series)
    assert len(unrolled.account(model, series, target=2)) == 1


@pytest.mark.parametrize("shape", [(), (1,)])
def test_the_only_number_of_one_example_needs_no_target(shape):
    class Only(Forecast):
        def forward(self, series):
            return super().forward(series)[0, 2].reshape(shape)

    model, series = Only(), torch.randn(1, 7, 4)
    found = unrolled.account(model, series)
    torch.testing.assert_close(found.output, model(series).detach().reshape(1))
    assert found.closes


@pytest.mark.parametrize("against", [None, 5])
def test_each_example_of_a_batch_names_the_class_that_is_predicted_for_it(against):
    torch.manual_seed(0)
    names, model, series = list("abcdef"), Forecast(), 3 * torch.randn(9, 7, 4)
    predicted = model(series).argmax(dim=1)
    series = series[predicted != 5]  # which is against
    expected = [names[k] + " rather than f" * (against is not None) for k in predicted[predicted != 5].tolist()]
    assert len(set(expected)) > 1
    found = unrolled.account(model, series, classes=names, against=against)
    assert [one.target for one in found] == expected
    assert found[1][0].target == found.view(1).target == expected[1]
    assert found.target == "the predicted class" + " rather than f" * (against is not None)
    named = unrolled.account(model, series, classes=names, target="b")  # the control
    assert {one.target for one in named} == {named.target} == {"b"}


@pytest.mark.parametrize("examples", [1, 3])
def test_the_only_number_of_an_output_is_no_predicted_class(examples):
    class Rated(Forecast):
        def forward(self, series):
            return super().forward(series)[:, 2:3]

    model, series = Rated(), torch.randn(examples, 7, 4)
    found = unrolled.account(model, series)
    assert {found.target, *(one.target for one in found)} == {"the output"}
    named = unrolled.account(model, series, classes=["load"])
    assert {named.target, *(one.target for one in named)} == {"load"}
    several = unrolled.account(Forecast(), series)  # the control
    assert (several.target == "the predicted class") is (examples > 1)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("call", [unrolled.account, unrolled.explain_batch])
def test_a_class_of_every_step_is_told_how_to_pick_the_last_one(call, batch_first):
    class EveryStep(Forecast):
        def forward(self, series):
            return self.head(self.rnn(series)[0])

    model = EveryStep()
    model.rnn.batch_first = batch_first
    series = torch.randn(3, 7, 4) if batch_first else torch.randn(7, 3, 4)
    pick = (lambda out: out[:, -1, 0]) if batch_first else (lambda out: out[-1, :, 0])
    last = "out[:, -1, 0]" if batch_first else "out[-1, :, 0]"
    with pytest.raises((ShapeError, UsageError), match=re.escape(last)):
        call(model, series, target=0)
    assert len(call(model, series, target=pick)) == 3


def _doubled(output):
    return output["logits"].mul_(2)[:, 0]


def _popped(output):
    return output.pop("logits")[:, 0]


def _first_removed(output):
    output["steps"].pop(0)
    return output["steps"][0][:, 0]


def _clipped(output):
    return output["logits"].clamp_(min=-0.1)[:, 0]


class Named(Forecast):
    def forward(self, series):
        states = self.rnn(series)[0]
        return {"logits": self.head(states[:, -1]), "steps": [self.head(states[:, k]) for k in range(3)]}


@pytest.mark.parametrize("target", [_doubled, _popped, _first_removed])
@pytest.mark.parametrize("call", [unrolled.account, unrolled.explain_batch])
def test_a_target_that_changes_the_output_is_refused_by_what_it_does(call, target):
    with pytest.raises(UsageError, match=r"the target changes the model's output.*: out \* 2, not out\.mul_\(2\);"):
        call(Named(), torch.randn(3, 7, 4), target=target)


@pytest.mark.parametrize("call", [unrolled.account, unrolled.explain_batch])
def test_a_target_that_gives_the_same_again_may_change_the_output(call):
    """The control: also a model that draws random numbers is still told that it does."""
    model, series = Named(), torch.randn(3, 7, 4)
    found = call(model, series, target=_clipped)
    expected = model(series)["logits"][:, 0].clamp(min=-0.1).detach()
    logits = found.output if call is unrolled.account else torch.tensor([one.ledger.logit for one in found])
    torch.testing.assert_close(logits.to(expected), expected)

    class Drawn(Named):
        def forward(self, series):
            return super().forward(series + torch.randn_like(series))

    with pytest.raises(RandomOperationError, match="randn_like draws random numbers"):
        call(Drawn(), series, target=_clipped)
