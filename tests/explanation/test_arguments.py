"""Arguments wrong in good faith, names that collide, outputs that are no logits, strict: one line with a way out."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import StrictError, UnknownNameError, UnrolledError, UsageError

V, E, D, C = 20, 5, 7, 3
TOKENS = torch.randint(0, V, (1, 6), generator=torch.Generator().manual_seed(0))
CALLS = [unrolled.explain, unrolled.account]


class Reader(nn.Module):
    """Its arguments have the names of unrolled's own."""

    def __init__(self, last=None):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head = nn.Embedding(V, E), nn.GRU(E, D, batch_first=True), nn.Linear(D, C)
        self.last = last or nn.Identity()

    def forward(self, tokens, target=None, *, expansion=1.0):
        states = self.rnn(self.embed(tokens))[0]
        if target is not None:
            states = states + self.rnn.bias_hh_l0[:D] * target.sum()
        return self.last(self.head(expansion * states.mean(1)))


@pytest.mark.parametrize("call", CALLS)
def test_the_models_own_arguments_may_have_any_name(call):
    model, goal = Reader().double(), torch.tensor([[1, 2]])
    words = list("abcdef")
    found = call(model, target=1, tokens=words, model_kwargs={"tokens": TOKENS, "target": goal, "expansion": 2.0})
    expected = float(model(TOKENS, goal, expansion=2.0)[0, 1].detach())
    assert (found.ledger.logit if call is unrolled.explain else float(found.output)) == pytest.approx(
        expected, abs=1e-12
    )


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        (
            (),
            {"tokens": TOKENS},
            r"tokens= is an argument of unrolled; pass the model's own as model_kwargs=\{'tokens': …\}",
        ),
        ((TOKENS,), {"target": torch.tensor([[1, 2]])}, r"target= is an argument of unrolled"),
        ((), {}, r"missing a required argument: 'tokens'; pass it by position, or as model_kwargs"),
        ((TOKENS,), {"lenghts": 3}, "does not take these arguments: got an unexpected keyword argument 'lenghts'"),
        ((TOKENS,), {"model_kwargs": [1]}, "model_kwargs is a list; expected a dictionary"),
        ((TOKENS, TOKENS, TOKENS), {}, "too many positional arguments"),
    ],
)
def test_an_argument_that_went_astray_is_told_the_way(call, args, kwargs, message):
    with pytest.raises(UsageError, match=message) as caught:
        call(Reader(), *args, **kwargs)
    assert "\n" not in str(caught.value)


def test_an_argument_given_twice_is_named():
    with pytest.raises(UsageError, match="weight is given twice"):
        unrolled.explain(Reader(), TOKENS, weight=1, model_kwargs={"weight": 2})


@pytest.mark.parametrize("call", CALLS)
def test_strict_turns_notes_into_an_error(call):
    model = Reader().double()
    quiet = next(target for target in range(C) if not call(model, TOKENS, target=target).notes)
    assert call(model, TOKENS, target=quiet, strict=True).notes == ()
    with pytest.raises(StrictError, match=r"strict=True was asked for: .*the expansion zero is not exact"):
        call(model, TOKENS, target=1, expansion="zero", strict=True)
    assert call(model, TOKENS, target=1, expansion="zero").notes
    with pytest.raises(StrictError):
        unrolled.explain_batch(model, TOKENS, target=1, expansion="zero", strict=True)


@pytest.mark.parametrize(
    ("last", "name"),
    [(nn.Softmax(-1), "probability of output 1"), (nn.LogSoftmax(-1), "log-probability of output 1")],
)
def test_a_probability_is_called_one(last, name):
    model = Reader(last).double()
    found = unrolled.explain(model, TOKENS, target=1)
    assert found.target == name
    assert found.notes[0].startswith(f"this is called a {name.removesuffix(' of output 1')}, not a logit, since the ")
    assert "where a softmax gave them, explain a model that returns the values before it" in found.notes[0]
    assert found.closes
    assert unrolled.explain(Reader().double(), TOKENS, target=1).target == "output 1"


def whole(dtype):
    class Whole(Reader):
        def forward(self, tokens):
            return super().forward(tokens).to(dtype)

    return Whole()


@pytest.mark.parametrize(
    ("make", "args", "kwargs", "message"),
    [
        (
            lambda: whole(torch.int64),
            (TOKENS,),
            {"target": 1},
            "the target is torch.int64; expected floating-point numbers",
        ),
        (lambda: whole(torch.bool), (TOKENS,), {"target": 1}, "the target is torch.bool; expected floating-point"),
        (
            lambda: whole(torch.complex64),
            (TOKENS,),
            {"target": 1},
            "the target is torch.complex64; expected real numbers",
        ),
        (Reader, (TOKENS[:0],), {"target": 1}, "expected at least one"),
        (lambda: None, (TOKENS,), {}, "the model is a NoneType; expected a torch.nn.Module"),
        (
            lambda: nn.GRU(2, 3).state_dict(),
            (TOKENS,),
            {},
            "expected a torch.nn.Module; build the module of a state dict",
        ),
        (lambda: "model.pt", (TOKENS,), {}, "expected a torch.nn.Module; build the module and load the file's weights"),
        (
            lambda: nn.ModuleList([Reader()]),
            (TOKENS,),
            {},
            "a ModuleList, which has no forward; expected a module that c",
        ),
        (nn.Module, (TOKENS,), {}, "the model is a Module, which has no forward; .*: call its parts in the forward of"),
        (Reader, (TOKENS,), {"target": -4}, "target is -4; expected 0 to 2"),
        (Reader, (TOKENS,), {"target": 3}, "target is 3; expected 0 to 2"),
        (Reader, (TOKENS,), {"target": 1.0}, "the target is a float; expected an index"),
        (Reader, (TOKENS,), {"tokens": "a b c"}, "expected a list of words"),
        (
            Reader,
            ({"ids": TOKENS},),
            {},
            r"^the model fails on an argument that is a dict: embedding.*; if its .* by their names: \*\*inputs$",
        ),
        (Reader, ("a text",), {}, "embedding"),
        (lambda: nn.Linear(2, 2), (torch.ones(1, 2),), {"rnn": "rnn"}, "there is none"),
    ],
)
def test_what_is_wrong_in_good_faith_is_one_line(make, args, kwargs, message):
    with pytest.raises((UnrolledError, TypeError), match=message) as caught:
        unrolled.explain(make(), *args, **kwargs)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("call", CALLS)
def test_a_forward_of_an_instance_or_a_call_of_a_class_is_a_forward(call):
    class Called(nn.Module):
        def __init__(self):
            super().__init__()
            self.reader = Reader().double()

        def __call__(self, tokens):
            return self.reader(tokens)

    class Implemented(Called):
        __call__ = nn.Module.__call__

        def _call_impl(self, tokens):
            return self.reader(tokens)

    patched = nn.Module()
    patched.reader = Reader().double()
    patched.forward = patched.reader.forward
    for model in (Called(), Implemented(), patched):
        assert call(model, TOKENS, target=1).closes


@pytest.mark.parametrize("call", CALLS)
def test_a_scripted_module_without_a_forward_is_refused_as_scripted(call):
    with pytest.raises(UnrolledError, match="the model is a scripted module"):
        call(torch.jit.script(nn.ModuleList([nn.Linear(2, 2)])), TOKENS)


class ReadsDictionary(Reader):
    """Takes a batch as a dictionary, as its author meant it."""

    def forward(self, batch):
        if "series" not in batch:
            raise ValueError("a batch has a series")
        return self.head(self.rnn(batch["series"])[0][:, -1])


@pytest.mark.parametrize("call", CALLS)
def test_a_dictionary_that_a_model_expects_is_not_said_to_be_what_it_fails_on(call):
    model, series = ReadsDictionary(), torch.ones(1, 3, E)
    assert call(model, {"series": series}, target=1).closes
    with pytest.raises(ValueError, match=r"^a batch has a series$"):
        call(model, {}, target=1)
    with pytest.raises(UsageError, match=r"an argument of torch.float64, .* pass x.to\(torch.float32\)"):
        call(model, {"series": series.double()}, target=1)


def test_a_name_of_nothing_is_not_offered_an_empty_list():
    assert str(UnknownNameError("network", "rnn", ())) == "unknown network 'rnn'; there is none"
