"""What a user passes by mistake is told in one line, by every function alike."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import FileError, ShapeError, UnsupportedOperationError, UsageError

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
X = torch.tensor([[1, 2, 3]])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(9, 6), nn.GRU(6, 8, batch_first=True), nn.Linear(8, 3)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0][:, -1])


CALLS = {"explain": unrolled.explain, "explain_batch": unrolled.explain_batch, "account": unrolled.account}


def refused(error, message, call, *args, **kwargs):
    with pytest.raises(error, match=message) as told:
        call(*args, **kwargs)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("call", [*CALLS.values(), unrolled.check], ids=[*CALLS, "check"])
def test_tensors_without_numbers(call):
    refused(UsageError, "argument 0 is on the device meta", call, Model(), X.to("meta"))
    refused(UsageError, r"embed.weight is on the device meta.*to_empty", call, Model().to("meta"), X)
    buffered = Model()
    buffered.register_buffer("mask", torch.ones(3, device="meta"))
    refused(UsageError, "mask is on the device meta", call, buffered, X)
    lazy = Model()
    lazy.head = nn.LazyLinear(2)
    refused(UsageError, r"head.weight is not initialised.*call the model once before", call, lazy, X)
    refused(UsageError, r"argument 0\[1\] is on the device meta", call, Model(), [X, X.to("meta")])
    refused(UsageError, r"argument 0\[x\]\[0\] is on the device meta", call, Model(), {"x": (X.to("meta"),)})


@pytest.mark.parametrize("call", [*CALLS.values(), unrolled.check], ids=[*CALLS, "check"])
def test_nested_tensors(call):
    class Reads(Model):
        def forward(self, texts):
            return super().forward(torch.stack([*texts]))

    nested = torch.nested.nested_tensor([X[0], X[0]], layout=torch.jagged)
    assert Reads()(nested).shape == (2, 3)  # the model runs by itself
    refused(UsageError, r"argument 0 is a nested tensor.*x\.unbind\(\)", call, Reads(), nested)
    unrolled.explain_batch(Reads(), list(nested.unbind()))  # what the message says to do


class OnMps(nn.Parameter):
    """A tensor that says where it is; this machine need not have the device."""

    device = torch.device("mps")


@pytest.mark.parametrize("call", [unrolled.explain, unrolled.explain_batch])
def test_a_device_without_float64(call):
    message = r"head.weight is on the device mps, which has no float64.*model\.cpu\(\)"
    model = Model()
    call(model, X)
    model.head.weight = OnMps(model.head.weight.detach())
    refused(UsageError, message, call, model, X)


def test_a_device_without_float64_in_decompose():
    rnn, x = nn.GRU(6, 8), torch.randn(3, 1, 6)
    unrolled.decompose(rnn, x)
    rnn.weight_hh_l0 = OnMps(rnn.weight_hh_l0.detach())
    refused(UsageError, "weight_hh_l0 is on the device mps", unrolled.decompose, rnn, x)


def test_tensors_without_numbers_in_decompose():
    rnn, x = nn.GRU(6, 8), torch.randn(3, 1, 6)
    refused(UsageError, "inputs is on the device meta", unrolled.decompose, rnn, x.to("meta"))
    refused(UsageError, "weight_ih_l0 is on the device meta", unrolled.decompose, nn.GRU(6, 8, device="meta"), x)
    refused(UsageError, "state is on", unrolled.decompose, rnn, x, state=torch.zeros(1, 1, 8, device="meta"))
    refused(UsageError, "lengths is on", unrolled.decompose, rnn, x, lengths=torch.tensor([3], device="meta"))


TOKENS = [
    (3, UsageError, "tokens is an int; expected a list of words"),
    (2.5, UsageError, "tokens is a float"),
    ("a b c", UsageError, "tokens is the string 'a b c'"),
    (b"abc", UsageError, "tokens is a bytes"),
    ({"abc"}, UsageError, "tokens is a set"),
    (torch.tensor(3), UsageError, "tokens is a Tensor"),
    (["a", "b"], ShapeError, "2 tokens for a "),
    ([], ShapeError, "0 token"),
    (["a", ["b"], "c"], ShapeError, "holds both words and lists"),
    ([["a", "b", "c"], "d"], ShapeError, "holds both words and lists"),
    ([[["a"], ["b"], ["c"]]], ShapeError, "lists of lists of lists"),
    ([["a"], ["b"], ["c"]], ShapeError, "those of 3 examples; expected 1"),
]


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
@pytest.mark.parametrize(("tokens", "error", "message"), TOKENS, ids=[str(each[0])[:20] for each in TOKENS])
def test_words_that_are_no_words(call, tokens, error, message):
    refused(error, message, call, Model(), X, tokens=tokens, target=1)


@pytest.mark.parametrize("tokens", [("a", "b", "c"), np.array(["a", "b", "c"]), iter("abc"), [["a", "b", "c"]]])
def test_words_in_other_forms_are_words(tokens):
    assert unrolled.explain(Model(), X, tokens=tokens).tokens == ("a", "b", "c")


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@pytest.mark.parametrize("target", [None, 0])
@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_an_output_without_classes(call, target):
    model = Model()
    model.head = nn.Linear(model.head.in_features, 0)
    refused(ShapeError, r"the output has shape \(1, 0\); expected a class or more", call, model, X, target=target)


def fails(out):
    return out[0, 99]


TARGETS = [
    (torch.tensor(1.0), UsageError, "the target is a Tensor; expected an index"),
    (torch.tensor([0, 1]), UsageError, "the target is a Tensor; expected an index"),
    (1.0, UsageError, "the target is a float; expected an index"),
    (99, UsageError, "target is 99; expected 0 to 2"),
    (fails, UsageError, r"the target fails on the model's output, a Tensor of shape \(1, 3\): IndexError"),
    (lambda: 3, UsageError, "the target fails .*TypeError"),
    (lambda _: None, ShapeError, "the target gave"),
    (lambda out: out.argmax(1), UsageError, "the target is torch.int64"),
]


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
@pytest.mark.parametrize(("target", "error", "message"), TARGETS)
def test_targets_that_are_none(call, target, error, message):
    refused(error, message, call, Model(), X, target=target)


def test_check_says_why_a_target_does_not_fit():
    for target in (torch.tensor(1.0), fails):
        for part in unrolled.check(Model(), X, target=target).parts:
            assert not part.opens
            assert "the target" in part.why


class Compiled(nn.Module):
    """A model with two scripted parts and a recurrent network of torch.nn."""

    def __init__(self):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(9, 6), nn.GRU(6, 8, batch_first=True)
        self.head = torch.jit.script(nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 3)))

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0][:, -1])


def test_a_scripted_model_is_refused_with_the_way_round():
    scripted, message = torch.jit.script(Model().eval()), r"the model is a (scripted|traced) module.*load_state_dict"
    for model in (scripted, torch.jit.freeze(scripted), torch.jit.trace(Model().eval(), (X,))):
        for call in CALLS.values():
            refused(UnsupportedOperationError, message, call, model, X)
        parts = unrolled.check(model, X).parts
        assert not parts[-1].opens
        assert "load_state_dict" in parts[-1].why


def test_account_refuses_a_scripted_head_by_its_path_and_explain_takes_a_ray():
    refused(UnsupportedOperationError, "head is a scripted module", unrolled.account, Compiled(), X)
    parts = {part.path: part for part in unrolled.check(Compiled(), X, target=1).parts}
    assert "head is a scripted module" in parts["whole model"].why
    assert not parts["whole model"].opens
    found = unrolled.explain(Compiled(), X, target=1)
    assert parts["rnn"].opens
    assert found.closes
    assert any("the readout is a ray" in note for note in found.notes)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_truth_value_is_no_index_of_an_output(call):
    for given in (True, False, torch.tensor(True), torch.tensor([True, False])):
        refused(
            UsageError, "the target is a truth value; expected an index of the output", call, Model(), X, target=given
        )
    call(Model(), X, target=1)


def test_an_output_that_is_counted_from_the_end_has_its_own_name():
    for last in (-1, 2):
        assert unrolled.explain(Model(), X, target=last).target == "output 2"
        assert unrolled.account(Model(), X, target=last).target == "output 2"
    assert unrolled.account(Model(), X, target=-2).target == "output 1"


LISTS = [
    (5, UsageError, "are an int; expected a list of 3 names"),
    ({"a", "b", "c"}, UsageError, "are a set; expected a list"),  # whose order is arbitrary
    ({0: "a", 1: "b", 2: "c"}, UsageError, "are a dict; expected a list"),
    (iter("abc"), UsageError, "are a str_ascii_iterator; expected a list"),
    ("abc", ShapeError, "are the string 'abc'; expected 3 names"),
    (["a"], ShapeError, "are 1 names; expected 3, one for each"),
]


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
@pytest.mark.parametrize(("names", "error", "message"), LISTS, ids=[type(each[0]).__name__ for each in LISTS])
def test_names_that_are_no_list(call, names, error, message):
    refused(error, f"classes {message}", call, Model(), X, target=1, classes=names)
    series = nn.Sequential(nn.Flatten(), nn.Linear(3, 2)) if call is unrolled.account else OfNumbers()
    refused(error, f"features {message}", call, series, torch.randn(1, 3)[:, None], target=1, features=names)


class OfNumbers(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.GRU(3, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


def test_a_name_of_several_outputs_is_refused():
    names = ["a", "a", "b"]
    with pytest.raises(UsageError, match="'a' is the name of several outputs; pass the index of one as target"):
        unrolled.explain(Model(), X, target="a", classes=names)
    assert unrolled.explain(Model(), X, target="b", against=0, classes=names).target == "b rather than a"
    refused(
        UsageError, "against is a function; expected an index", unrolled.explain, Model(), X, target=1, against=fails
    )


@pytest.mark.parametrize("call", [*CALLS.values(), unrolled.check], ids=[*CALLS, "check"])
@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda out: out + 0j, "the target is torch.complex64; expected real numbers: pass a target that returns them"),
        (lambda out: out > 0, "the target is torch.bool; expected floating-point numbers"),
        (torch.Tensor.to_sparse, "the model's output is sparse; expected a dense tensor"),
    ],
    ids=["complex", "bool", "sparse"],
)
def test_outputs_that_are_no_dense_real_numbers(call, made, said):
    model = Model()
    model.register_forward_hook(lambda _, __, out: made(out))
    if call is unrolled.check:
        assert not any(part.opens for part in call(model, X).parts)
    else:
        refused(UsageError, said, call, model, X)


def test_networks_and_steps_that_are_none():
    for call in (unrolled.explain, unrolled.explain_batch):
        refused(UsageError, "rnn is an empty list; expected a network's path", call, Model(), X, rnn=[])
        assert call(Model(), X, rnn=["rnn"]) is not None
    refused(UsageError, "method and state are names", unrolled.as_cell, "rnn", state=5)
    step = unrolled.as_cell("rnn", method="advance")
    refused(UsageError, "rnn is a GRU without a method 'advance'", unrolled.explain, Model(), X, rnn=step)
    step = unrolled.as_cell("embed", method="advance")
    refused(UsageError, "embed is an Embedding without a method 'advance'", unrolled.explain, Model(), X, rnn=step)


def test_numbers_of_numpy_and_names_in_a_tensor():
    for share in (np.float32(0.5), np.float64(0.5)):
        assert unrolled.account(Model(), X, target=1, share=share).closes
    refused(UsageError, "share is 1.5; expected", unrolled.account, Model(), X, share=np.float32(1.5))
    refused(UsageError, "share is a str; expected", unrolled.account, Model(), X, share="0.5")
    assert unrolled.account(Model(), X, target=1, share=Fraction(1, 2)).closes
    refused(UsageError, "share is 1.5; expected", unrolled.account, Model(), X, share=Fraction(3, 2))
    for call in CALLS.values():
        named = call(Model(), X, target=1, classes=torch.tensor([4, 5, 6]))
        assert (named[0] if call is unrolled.explain_batch else named).target == "5"
        for single in (torch.tensor(4), np.array("a")):
            refused(UsageError, "classes are an? .*; expected a list of 3 names", call, Model(), X, classes=single)


def test_arguments_of_a_result():
    found = unrolled.explain(Model(), X, target=1)
    for start, stop in ((0, 1.0), ("a", "b"), (0, None), (-1, 2), (2, 2)):
        refused(UsageError, "expected 0 <= start < stop <= 3", found.phrase_score, start, stop)
        refused(UsageError, "expected 0 <= start < stop <= 3", found.contribution, start, stop)
    assert found.phrase_score(np.int64(0), torch.tensor(3)) == found.phrase_score(0, 3)
    for k in (-1, 2.5, None, "a"):
        refused(UsageError, "expected 0 or more, a whole number", found.top, k)
    batch = unrolled.explain_batch(Model(), X, target=1)
    refused(UsageError, "longest is 2.5; expected 1 or more, a whole number", batch.phrases, 2.5)
    refused(UsageError, "least is None; expected 1 or more, a whole number", batch.phrases, least=None)
    for path, said in ((None, "a NoneType"), (b"page.html", "a bytes"), ("", "the path is empty")):
        refused(FileError, f"cannot write.*{said}; give the path", found.save_html, path)
        refused(FileError, f"cannot write.*{said}; give the path", found.save_json, path)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_ids_that_are_no_tensor_are_to_become_one_of_integers(call):
    for given in ([[1, 2, 3]], X.numpy(), [[0.5, 1.0, 2.0]], [[1], [2, 3]]):
        refused(UsageError, r"dtype=torch\.float32\) of numbers, and dtype=torch\.int64 of ids$", call, Model(), given)
    assert call(Model(), torch.tensor(np.asarray([[1, 2, 3]]), dtype=torch.int64)) is not None  # which is a remedy
