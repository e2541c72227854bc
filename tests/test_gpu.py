"""On a GPU the answers are those of the CPU: opening, accounting, every cell, and a training that is resumed."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import unrolled
from unrolled.cells import CELLS, recurrent
from unrolled.cli.main import run
from unrolled.expansions import EXPANSIONS
from whole_model_zoo import Bag, Classifier, Decoder, Hierarchy, Loop, Siamese, Tagger, Transformer, ids

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU on this machine"),
]

E, D, T, B = 5, 6, 7, 3


def both(model: nn.Module) -> tuple[nn.Module, nn.Module]:
    """The model in float64, on the CPU and on the GPU."""
    model = model.double().eval()
    return model, copy.deepcopy(model).cuda()


def moved(args):
    return tuple(each.cuda() if isinstance(each, torch.Tensor) else each for each in args)


@pytest.mark.parametrize("expansion", [name for name in EXPANSIONS.names() if name not in {"taylor", "mean"}])
@pytest.mark.parametrize("name", CELLS.names())
def test_every_cell_opens_alike(name, expansion):
    torch.manual_seed(0)
    here, there = both(recurrent(name, 6, 6, 2))
    x = torch.randn(T, B, 6, dtype=torch.float64)
    try:
        expected = unrolled.decompose(here, x, expansion=expansion)
    except unrolled.UnrolledError as refusal:
        with pytest.raises(type(refusal)):
            unrolled.decompose(there, x.cuda(), expansion=expansion)
        return
    found = unrolled.decompose(there, x.cuda(), expansion=expansion)
    assert found.vectors().is_cuda
    torch.testing.assert_close(found.vectors().cpu(), expected.vectors(), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("options", [{}, {"layers": 2}, {"layers": 2, "both": True}], ids=str)
@pytest.mark.parametrize("pool", ["last", "mean", "max", "attention"])
@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_explain_and_account_agree_with_the_cpu(kind, pool, options):
    torch.manual_seed(0)
    here, there = both(Classifier(kind, pool=pool, **options))
    tokens = ids(B, T)
    for expected, found in zip(
        unrolled.explain_batch(here, tokens, target=1),
        unrolled.explain_batch(there, tokens.cuda(), target=1),
        strict=True,
    ):
        assert dict(found.ledger) == pytest.approx(dict(expected.ledger), rel=1e-8, abs=1e-10)
    expected, found = unrolled.account(here, tokens, target=1), unrolled.account(there, tokens.cuda(), target=1)
    torch.testing.assert_close(found.tokens.cpu(), expected.tokens, rtol=1e-8, atol=1e-10)
    assert found.closes


MODELS = {
    "bag": (lambda: Bag("mean"), lambda: (ids(B, T),)),
    "loop": (lambda: Loop(nn.LSTMCell), lambda: (ids(B, T),)),
    "decoder": (Decoder, lambda: (ids(2, 5), ids(2, 4))),
    "hierarchy": (Hierarchy, lambda: (ids(2, 3, 4),)),
    "siamese": (Siamese, lambda: (ids(B, T), ids(B, T))),
    "tagger": (Tagger, lambda: (torch.randn(B, T, 3, dtype=torch.float64),)),
    "transformer": (Transformer, lambda: (ids(B, T),)),
}


@pytest.mark.parametrize("name", MODELS)
def test_whole_models_are_accounted_for_alike(name):
    torch.manual_seed(0)
    kind, arguments = MODELS[name]
    here, there = both(kind())
    args = arguments()
    target = (lambda out: out[:, -1, 1]) if name in {"tagger", "decoder"} else None
    expected = unrolled.account(here, *args, target=target)
    found = unrolled.account(there, *moved(args), target=target)
    torch.testing.assert_close(found.output.cpu(), expected.output)
    for key, text in expected.texts.items():
        torch.testing.assert_close(found.texts[key].cpu(), text, rtol=1e-7, atol=1e-9)
    assert found.closes


@pytest.mark.parametrize("name", CELLS.names())
def test_the_kernels_of_every_cell_learn_alike(name):
    torch.manual_seed(0)
    here, there = both(recurrent(name, 6, 6))
    x = torch.randn(T, B, 6, dtype=torch.float64)
    for network, given in ((here, x), (there, x.cuda())):
        network(given)[0].square().sum().backward()
    for one, other in zip(here.parameters(), there.parameters(), strict=True):
        assert (one.grad is None) == (other.grad is None)
        if one.grad is not None:
            torch.testing.assert_close(other.grad.cpu(), one.grad, rtol=1e-7, atol=1e-9)


def test_half_precision_is_opened_in_float32():
    model = Classifier(nn.LSTM).half().cuda().eval()
    found = unrolled.explain(model.float(), ids(1, T).cuda(), target=1)
    assert abs(found.ledger.remainder) < 1e-4


def test_a_training_runs_and_its_run_opens_on_the_cpu(tmp_path):
    out = tmp_path / "run"
    words = ["train", "classify", "--data", "negation", "--epochs", "1", "--device", "cuda", "--out", str(out)]
    assert run(words) == 0
    assert next(unrolled.load(out).model.parameters()).device.type == "cpu"
