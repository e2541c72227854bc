"""What cannot be accounted for is refused by name, with the way round."""

from __future__ import annotations

import ctypes
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled
from unrolled.errors import (
    NonFiniteError,
    RandomOperationError,
    ShapeError,
    UnknownNameError,
    UnsupportedOperationError,
    UsageError,
)
from unrolled.held_forward import rule
from unrolled.held_forward.mode import RULES
from whole_model_zoo import Classifier, D, E, Siamese, ids


class Head(nn.Module):
    """A network and a head that is given."""

    def __init__(self, read):
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(20, E), nn.GRU(E, D, batch_first=True), nn.Linear(D, 2)
        self.read = read

    def forward(self, tokens):
        return self.head(self.read(self.rnn(self.embed(tokens))[0][:, -1]))


class Copied(torch.autograd.Function):
    @staticmethod
    def forward(_, x):  # as a kernel does, past torch
        x = x.contiguous()
        copied = torch.empty_like(x)
        ctypes.memmove(copied.data_ptr(), x.data_ptr(), x.numel() * x.element_size())
        return copied

    @staticmethod
    def backward(_, gradient):
        return gradient


def through_numpy(h):
    return torch.from_numpy(h.detach().numpy() * 2.0)


def in_a_nested_tensor(h):
    with warnings.catch_warnings(action="ignore"):  # torch calls them a prototype
        return torch.nested.as_nested_tensor([h, h]).to_padded_tensor(0.0)[0]


def through_dlpack(h):
    return torch.from_dlpack(h.detach()) * 2.0


def by_a_kernel_without_a_gradient(h):
    if h.requires_grad:
        raise NotImplementedError("no backward on this device.")
    return h


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (
            by_a_kernel_without_a_gradient,
            r"runs by itself, but fails where .* followed: no backward on this device; compu",
        ),
        (torch.special.bessel_j0, r"bessel_j0 has no rule.*register one with @unrolled.held_forward.rule"),
        (through_numpy, r"takes numbers out of torch \(numpy\).*compute that step with torch operations"),
        (through_dlpack, r"takes numbers out of torch \(dlpack\)"),
        (lambda h: h * float(h.detach().sum()), r"takes numbers out of torch"),
        (Copied.apply, r"custom autograd function Copied.*compute it with torch operations"),
        (lambda h: torch.fft.fft(h).angle(), r"angle has no rule"),
        (in_a_nested_tensor, r"nested_tensor\w* has no rule"),
        (lambda h: F.dropout(h, 0.5, training=True), r"dropout of 0.5 draws random numbers"),
        (lambda h: torch.zeros_like(h), r"does not depend on the model's arguments.*check the target"),
        (lambda h: (h > 0).to(h.dtype), r"does not depend on the model's arguments"),
    ],
    ids=[
        "kernel",
        "unknown",
        "numpy",
        "dlpack",
        "item",
        "custom",
        "complex",
        "nested",
        "dropout",
        "constant",
        "questions",
    ],
)
def test_operations_are_refused_by_name(read, message):
    torch.manual_seed(0)
    with pytest.raises(UsageError, match=message) as caught:
        unrolled.account(Head(read), ids(2, 4), target=1)
    assert "\n" not in str(caught.value)


def test_inference_mode_inside_the_model_is_refused():
    def read(h):
        with torch.inference_mode():
            return h * 2

    with pytest.raises(UsageError, match="inference_mode"):
        unrolled.account(Head(read), ids(2, 4), target=1)


def test_an_operation_can_be_given_a_rule():
    @rule("special_bessel_j0")
    def bessel(call):
        x = call.args[0]
        return x * ((call.held() - 1) / x.detach()) + call.rows.constant(torch.ones_like(x.detach()))

    try:
        found = unrolled.account(Head(torch.special.bessel_j0).double(), ids(2, 4), target=1)
    finally:
        del RULES["special_bessel_j0"]
    assert found.closes
    assert found.constants["constants"].abs().min() > 0


def test_a_remainder_that_rounding_does_not_explain_is_not_called_rounding():
    @rule("special_bessel_j0")
    def half(call):
        x = call.args[0]
        return x * (0.5 * call.held() / x.detach()) + 0.5 * call.held()  # which no row holds

    try:
        found = unrolled.account(Head(torch.special.bessel_j0).double(), ids(2, 4), target=1)
    finally:
        del RULES["special_bessel_j0"]
    assert not found.closes
    assert "more than rounding" in found.notes[0]


def test_a_random_forward_is_refused():
    with pytest.raises(RandomOperationError, match=r"gives another output at each call.*randn_like.*torch.manual_seed"):
        unrolled.account(Head(lambda h: h + torch.randn_like(h)), ids(2, 4), target=1)


def test_a_forward_that_seeds_itself_is_not_random():
    def read(h):
        torch.manual_seed(3)
        return h + torch.randn_like(h)

    found = unrolled.account(Head(read).double(), ids(2, 4), target=1)
    assert found.closes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": "a model"}, "the model is a str"),
        ({"args": (torch.randn(2, 4, dtype=torch.complex64),)}, "the target is torch.complex64; expected real numbers"),
        ({"args": (torch.randn(2, 4, dtype=torch.complex64),), "target": None}, "pass a target that returns them"),
        ({"target": 9}, "target is 9; expected 0 to"),
        ({"target": lambda _: [1]}, "the target gave a list"),
        ({"of": "nothing"}, "unknown submodule"),
        ({"of": ["rnn"]}, "unknown submodule"),
        ({"of": "rnn"}, "rnn returns a tuple"),
        ({"expansion": "secnt"}, "did you mean 'secant'"),
        ({"share": 2}, "share is 2"),
        ({"share": "0.5"}, "share is a str"),
        ({"tokens": "it is"}, "expected a list of words"),
        ({"tokens": [["a"]]}, "tokens are those of 1 examples; expected 2"),
        ({"tokens": ["a film", "a plot"]}, "tokens is one list of words for 2 examples; expected a list"),
        ({"tokens": [list("abcdefgh")] * 2}, "8 tokens for a text of 4"),
    ],
)
def test_arguments_are_checked(arguments, message):
    model = arguments.pop("model", None) or Head(lambda h: h)
    if "args" in arguments:
        model = nn.Sequential(nn.Linear(4, 2, dtype=torch.complex64), nn.Flatten())
    args = arguments.pop("args", (ids(2, 4),))
    with pytest.raises((UsageError, ShapeError, UnknownNameError), match=message):
        unrolled.account(model, *args, **({"target": 1} | arguments))


def test_complex_arguments_are_refused():
    class Real(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(4, 2)

        def forward(self, x):
            return self.head(x.real)

    with pytest.raises(UsageError, match="argument 0 is complex; pass its real and its imaginary part"):
        unrolled.account(Real(), torch.randn(2, 4, dtype=torch.complex64), target=1)


def test_sparse_arguments_are_refused():
    with pytest.raises(UsageError, match="argument 0 is sparse"):
        unrolled.account(nn.Linear(4, 2), torch.eye(4).to_sparse(), target=1)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_coarse_types_are_refused(dtype):
    with pytest.raises(UsageError, match=r"too coarse for an account; convert the model: model.float\(\)"):
        unrolled.account(Head(lambda h: h).to(dtype), ids(2, 4), target=1)


def test_an_output_that_is_not_finite_is_refused():
    model = Head(lambda h: h / 0)
    with pytest.raises(NonFiniteError, match="expected finite numbers"):
        unrolled.account(model, ids(2, 4), target=1)


def test_an_output_without_classes_needs_a_target():
    class Tagger(Head):
        def forward(self, tokens):
            return self.head(self.rnn(self.embed(tokens))[0])

    with pytest.raises(UsageError, match=r"the output is of shape \(2, 4, 2\).*pass target="):
        unrolled.account(Tagger(None), ids(2, 4))


def test_batch_statistics_are_refused():
    class Normalised(Head):
        def __init__(self):
            super().__init__(nn.BatchNorm1d(D, track_running_stats=False))

    with pytest.raises(UnsupportedOperationError, match="batch normalisation uses the statistics of the batch"):
        unrolled.account(Normalised(), ids(3, 4), target=1)


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
@pytest.mark.parametrize("kind", ["scripted", "traced"])
def test_a_scripted_or_traced_part_is_refused_by_name_until_its_module_stands_there(kind):
    model = Head(lambda h: h)
    head = nn.Sequential(nn.Linear(D, 4), nn.Sigmoid(), nn.Linear(4, 2))
    expected = head(torch.ones(1, D))
    model.head = torch.jit.script(head) if kind == "scripted" else torch.jit.trace(head, torch.zeros(1, D))
    with pytest.raises(
        UnsupportedOperationError, match=rf"head is a {kind} module.*put the Python module.*in its place"
    ):
        unrolled.account(model, ids(2, 4), target=1)
    again = nn.Sequential(nn.Linear(D, 4), nn.Sigmoid(), nn.Linear(4, 2))
    again.load_state_dict(model.head.state_dict())
    model.head = again
    assert torch.equal(again(torch.ones(1, D)), expected)
    assert unrolled.account(model, ids(2, 4), target=1).closes


def test_a_model_made_in_inference_mode_is_refused():
    with torch.inference_mode():
        model = Classifier()
    with pytest.raises(UsageError, match=r"embed.weight was made in inference mode"):
        unrolled.account(model, ids(1, 3), target=1)


def test_words_whose_number_does_not_fit_are_refused():
    model, tokens = Classifier(), torch.tensor([[4, 5, 6, 0, 0]])
    assert unrolled.account(model, tokens, tokens=list("abc")).words == (("a", "b", "c", "‹pad›", "‹pad›"),)
    for words in (["a"], list("ab"), list("abcdef")):
        with pytest.raises(ShapeError, match=f"{len(words)} tokens for a text of 5; expected one for each that is not"):
            unrolled.account(model, tokens, tokens=words)


def test_padding_between_words_needs_no_word():
    texts = torch.tensor([[4, 0, 6, 5, 0], [7, 8, 0, 0, 9]])
    named = (("a", "‹pad›", "b", "c", "‹pad›"), ("d", "e", "‹pad›", "‹pad›", "f"))
    assert unrolled.account(Classifier(), texts, target=1, tokens=[list("abc"), list("def")]).words == named
    pair = unrolled.account(Siamese(), texts[:1], texts[1:], target=0, tokens=list("abcdef"))
    assert pair.words == (named[0] + named[1],)
    with pytest.raises(ShapeError, match="2 tokens for a text of 5"):
        unrolled.account(Classifier(), texts, target=1, tokens=[list("abc"), list("de")])


def test_words_of_one_of_two_texts_are_refused_by_the_sizes_of_both():
    model, texts = Siamese(), (torch.tensor([[4, 5, 6]]), torch.tensor([[7, 8]]))
    with pytest.raises(ShapeError, match=r"3 tokens for a text of 5 \(3 of argument 0, then 2 of argument 1\); exp"):
        unrolled.account(model, *texts, target=0, tokens=list("abc"))
    assert unrolled.account(model, *texts, target=0, tokens=list("abcde")).words == (tuple("abcde"),)  # the control


def test_a_target_that_fits_is_suggested_where_a_model_returns_several_tensors():
    class Pair(Classifier):
        def forward(self, tokens):
            logits = super().forward(tokens)
            return {"logits": logits, "extra": logits}

    torch.manual_seed(0)
    model, tokens = Pair(nn.GRU, 1, False, "last", "linear"), ids(2, 4)
    for given, suggested in ((1, 1), (None, 0)):
        with pytest.raises((ShapeError, UsageError)) as told:
            unrolled.account(model, tokens, target=given)
        assert str(told.value).endswith(f"target=lambda out: out['logits'][:, {suggested}]")
    assert unrolled.account(model, tokens, target=lambda out: out["logits"][:, 0]).closes
