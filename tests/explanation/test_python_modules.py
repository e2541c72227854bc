"""What was scripted, traced, quantised, compiled or wrapped is opened with its own weights, or refused by name."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

import unrolled
from unrolled.errors import ParityError, UnsupportedOperationError, UsageError

IDS = torch.tensor([[1, 2, 3, 4]])
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


class Model(nn.Module):
    def __init__(self, rnn=None, kind=nn.LSTM, packed=False, **options):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.packed = nn.Embedding(9, 4), packed
        self.rnn = kind(4, 5, batch_first=True, **options) if rnn is None else rnn
        self.head = nn.Linear(10 if options.get("bidirectional") else 5, 2)

    def forward(self, ids):
        x = self.embed(ids)
        if self.packed:
            x = pack_padded_sequence(x, torch.tensor([ids.shape[1]]), batch_first=True)
            return self.head(self.rnn(x)[1][-1])
        return self.head(self.rnn(x)[0].mean(1))


class Plain(nn.Module):
    """What TorchScript compiles."""

    def __init__(self):
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(9, 4), nn.GRU(4, 5, batch_first=True), nn.Linear(5, 2)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0].mean(1))


def traced(kind, options, packed):
    """A model, and the same with its network traced."""
    plain = Model(kind=kind, packed=packed, **options).eval()
    x = torch.randn(2, 3, 4)
    given = pack_padded_sequence(x, torch.tensor([3, 2]), batch_first=True) if packed else x
    changed = Model(kind=kind, packed=packed, **options).eval()
    changed.load_state_dict(plain.state_dict())
    changed.rnn = torch.jit.trace(plain.rnn, (given,), check_trace=False)
    return plain, changed


CASES = [
    (nn.LSTM, {}, False),
    (nn.LSTM, {"num_layers": 2, "bidirectional": True}, False),
    (nn.GRU, {"bias": False}, False),
    (nn.GRU, {"num_layers": 2, "dropout": 0.5}, False),
    (nn.RNN, {"nonlinearity": "relu"}, False),
]


@pytest.mark.parametrize(("kind", "options", "packed"), CASES)
def test_a_traced_network_inside_a_model_has_a_twin(kind, options, packed):
    plain, changed = traced(kind, options, packed)
    was = changed.rnn
    expected = unrolled.explain(plain, IDS, target=1)
    found = unrolled.explain(changed, IDS, target=1)
    torch.testing.assert_close(found.triangle.contributions, expected.triangle.contributions, rtol=1e-4, atol=1e-6)
    assert found.notes == expected.notes
    assert found.ledger.logit == pytest.approx(float(changed(IDS)[0, 1]), abs=1e-6)
    account = unrolled.account(changed, IDS, target=1)
    torch.testing.assert_close(account.tokens, unrolled.account(plain, IDS, target=1).tokens, rtol=1e-4, atol=1e-6)
    assert changed.rnn is was
    assert unrolled.explain(changed, IDS, target=1, rnn="rnn").ledger == found.ledger
    assert unrolled.explain(changed, IDS, target=1, rnn=was).ledger == found.ledger


@dataclass
class Output:
    """As models return it that have several results."""

    logits: torch.Tensor


def test_a_twin_that_is_another_network_is_refused():
    class Odd(nn.LSTM):
        def forward(self, input, hx=None):
            out, state = super().forward(input, hx)
            return out * 2, state

    Odd.__name__ = "LSTM"
    odd = torch.jit.trace(Odd(4, 5, batch_first=True), torch.randn(1, 3, 4))
    with pytest.raises(
        ParityError, match="a Python module with the weights of the scripted, traced or hand-written one gives another"
    ):
        unrolled.explain(Model(odd), IDS, target=0)

    class Boxed(Model):
        def forward(self, ids):
            return Output(super().forward(ids))

    with pytest.raises(ParityError, match="gives another"):
        unrolled.account(Boxed(odd), IDS, target=lambda output: output.logits[:, 0])


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        (lambda out: out[:, :2], r"an output of shapes \[\(1, 4, 2\)\], not \[\(1, 2, 2\)\]: pass the module"),
        (lambda out: torch.where(out > 0, torch.nan, out), "gives another output, by nan"),
        (lambda out: out.clone(), None),
    ],
)
def test_a_twin_whose_output_has_another_shape_or_other_nans_is_refused(changed, match):
    class Odd(nn.GRU):
        def forward(self, input, hx=None):
            out, state = super().forward(input, hx)
            return changed(out), state

    class Tagger(Model):
        def forward(self, ids):
            return self.head(self.rnn(self.embed(ids))[0])

    Odd.__name__ = "GRU"
    model = Tagger(torch.jit.trace(Odd(4, 5, batch_first=True), torch.randn(1, 4, 4)))
    for call in (unrolled.explain, unrolled.account):
        if match:
            with pytest.raises(ParityError, match=match):
                call(model, IDS, target=lambda out: out[:, -1, 1])
        else:
            call(model, IDS, target=lambda out: out[:, -1, 1])


@pytest.mark.parametrize(
    "make", [torch.jit.script, lambda m: torch.jit.trace(m, IDS), lambda m: torch.jit.freeze(torch.jit.script(m))]
)
def test_a_whole_model_that_was_scripted_is_refused_by_name(make):
    model = make(Plain().eval())
    for call in (unrolled.explain, unrolled.account):
        with pytest.raises(
            UnsupportedOperationError, match=r"the model is a (scripted|traced) module.*pass the Python module"
        ):
            call(model, IDS, target=0)


def test_a_model_that_was_exported_is_refused_as_that_and_its_weights_fit_the_module_it_was_made_of():
    made = Plain().eval()
    exported = torch.export.export(made, (IDS,)).module()
    for call in (unrolled.explain, unrolled.account):
        with pytest.raises(
            UnsupportedOperationError, match=r"the model was made by torch.export.*its weights are in state_dict"
        ):
            call(exported, IDS, target=0)
    again = Plain().eval()
    again.load_state_dict(exported.state_dict())
    assert unrolled.explain(again, IDS, target=0).ledger.logit == pytest.approx(made(IDS)[0, 0].item(), abs=1e-6)


def test_a_graph_of_operations_that_python_calls_has_an_account():
    traced = torch.fx.symbolic_trace(Plain().eval())
    assert unrolled.account(traced, IDS, target=0).output.item() == pytest.approx(traced(IDS)[0, 0].item(), abs=1e-6)


def test_a_scripted_part_with_a_network_in_it_is_refused_by_its_path():
    class Outer(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, ids):
            return self.inner(ids) * 2

    with pytest.raises(UnsupportedOperationError, match="inner is a scripted module"):
        unrolled.explain(Outer(torch.jit.script(Plain().eval())), IDS, target=0)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_dynamically_quantised_models_are_explained_by_their_weights_in_float32(kind):
    plain = Model(kind=kind, num_layers=2, bidirectional=True).eval()
    quantised = torch.ao.quantization.quantize_dynamic(plain, {kind, nn.Linear}, dtype=torch.qint8)
    before = quantised.rnn
    found = unrolled.explain(quantised, IDS, target=0)
    assert "the model is quantised; explained are the same weights in float32" in found.notes[0]
    assert abs(found.ledger.remainder) < 1e-5
    assert found.ledger.logit == pytest.approx(float(quantised(IDS)[0, 0]), abs=0.02)
    expected = unrolled.explain(plain, IDS, target=0)
    torch.testing.assert_close(found.token_scores, expected.token_scores, rtol=0.1, atol=0.01)
    assert not torch.equal(found.token_scores, expected.token_scores)  # 8-bit weights are others
    account = unrolled.account(quantised, IDS, target=0)
    assert account.closes
    assert any("the model is quantised" in note for note in account.notes)
    assert quantised.rnn is before


def test_a_statically_quantised_network_is_refused_by_name():
    model = Model().eval()
    model.rnn = torch.ao.nn.quantized.LSTM(4, 5, batch_first=True)
    with pytest.raises(
        UnsupportedOperationError, match=r"rnn is a quantised LSTM.*pass the model that it was quantised"
    ):
        unrolled.explain(model, IDS, target=0)


@pytest.mark.parametrize("wrap", [torch.compile, nn.DataParallel, lambda m: torch.compile(nn.DataParallel(m))])
def test_wrappers_are_taken_off(wrap):
    plain = Model(kind=nn.GRU).eval()
    expected = unrolled.explain(plain, IDS, target=1)
    wrapped = wrap(plain)
    assert unrolled.explain(wrapped, IDS, target=1).ledger == expected.ledger
    path = next(name for name, part in wrapped.named_modules() if part is plain.rnn)
    assert unrolled.explain(wrapped, IDS, target=1, rnn=path).ledger == expected.ledger
    assert unrolled.account(wrapped, IDS, target=1).closes


def test_compiled_parts_are_run_as_python():
    plain = Model(kind=nn.GRU).eval()
    expected = unrolled.explain(plain, IDS, target=1)
    other = Model(kind=nn.GRU).eval()
    other.rnn, other.head = torch.compile(other.rnn), torch.compile(other.head)
    was = other.rnn
    assert unrolled.explain(other, IDS, target=1).ledger == expected.ledger
    assert other.rnn is was
    plain.rnn.compile()
    call = plain.rnn._compiled_call_impl
    assert unrolled.explain(plain, IDS, target=1).ledger == expected.ledger
    assert plain.rnn._compiled_call_impl is call


def test_a_model_that_is_compiled_in_place_can_be_checked():
    """Its hooks would be compiled with it."""
    model = Model(kind=nn.GRU).eval()
    model.compile()
    call = model._compiled_call_impl
    assert [part.opens for part in unrolled.check(model, IDS).parts] == [True, True]
    assert model._compiled_call_impl is call


COMPILES_IN_ITS_FORWARD = """
import sys
import torch
import unrolled
class Recurrence(torch.nn.Module):
    def __init__(self, compiled):
        super().__init__()
        torch.manual_seed(0)
        self.of_input, self.compiled = torch.nn.Linear(3, 2), compiled
    def scan(self, a):
        h = torch.zeros_like(a[:, 0])
        for each in a.unbind(1):
            h = each.sigmoid() * h + each
        return h
    def forward(self, x):
        return (torch.compile(self.scan, backend="eager") if self.compiled else self.scan)(self.of_input(x))
assert "torch._dynamo" not in sys.modules
x = torch.randn(1, 4, 3)
found, expected = (unrolled.account(Recurrence(compiled), x, target=1) for compiled in (True, False))
assert found.closes
assert torch.equal(found.features["0"], expected.features["0"])
assert "torch._dynamo" in sys.modules and torch.compile.__module__ == "torch"
"""


@pytest.mark.slow
def test_what_a_model_compiles_in_its_forward_is_run_as_python():
    """The first such call loads the compiler, which the tests beside this one have done."""
    done = subprocess.run([sys.executable, "-c", COMPILES_IN_ITS_FORWARD], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_exported_program_is_refused_with_the_way_round():
    exported = torch.export.export(Model(kind=nn.GRU).eval(), (IDS,))
    for call in (unrolled.explain, unrolled.account):
        with pytest.raises(UsageError, match=r"the model is an ExportedProgram.*pass the module that was exported"):
            call(exported, IDS, target=0)


def test_decompose_opens_a_scripted_network_and_refuses_a_quantised_one():
    rnn, x = nn.LSTM(4, 5, batch_first=True), torch.randn(1, 3, 4)
    expected = unrolled.decompose(rnn, x).vectors()
    for other in (torch.jit.script(rnn), torch.jit.trace(rnn, x)):
        torch.testing.assert_close(unrolled.decompose(other, x).vectors(), expected)
    quantised = torch.ao.quantization.quantize_dynamic(nn.Sequential(rnn), {nn.LSTM})[0]
    with pytest.raises(
        UsageError, match="the network is a quantised LSTM; pass the network that it was quantised from"
    ):
        unrolled.decompose(quantised, x)
