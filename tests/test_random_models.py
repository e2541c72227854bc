"""Random models are explained and accounted for exactly, or refused in one line: nothing in between."""

from __future__ import annotations

import sys

import pytest
import torch

import unrolled
from random_models import case
from unrolled.errors import UnrolledError

QUICK, ALL, CHUNK = 48, 2000, 40
BOUND = {torch.float64: 1e-9, torch.float32: 2e-3}
ROUNDING = {torch.float64: 1e-13, torch.float32: 2e-5}
QUADRATURE = 1e-5  # of path, which is asked for 1e-6 at every layer
LARGE = 1e4


def gap_allowed(each, dtype, movement, sizes):
    """1e-9 of what moved in float64; rounding of the parts where next to nothing moved.

    The quadrature of path errs relative to the parts, which may cancel.
    """
    allowed = BOUND[dtype] * abs(movement) + ROUNDING[dtype] * sizes
    return allowed + QUADRATURE * sizes if "path" in each.expansion else allowed


def check_explanation(each, one):
    found = unrolled.explain_batch(each.model, *each.args, target=each.target, expansion=each.expansion)
    dtype = one.dtype
    for number, e in enumerate(found):
        ledger = e.ledger
        assert ledger.logit == pytest.approx(float(one[number]), rel=BOUND[dtype], abs=ROUNDING[dtype])
        sizes = float(e.triangle.contributions.abs().sum()) + abs(ledger.bias) + abs(ledger.logit) + abs(ledger.initial)
        allowed = gap_allowed(each, dtype, ledger.logit - ledger.bias, sizes)
        assert e.notes or sizes <= LARGE * max(1.0, abs(ledger.logit)), dict(ledger)
        if each.jumps and e.notes:  # a readout that jumps is closed, refused, or noted
            continue
        assert abs(ledger.remainder) <= allowed, (e.notes, dict(ledger))
        assert abs(float(e.token_scores.sum()) - ledger.ngrams) <= allowed
        if e.biases:
            assert abs(sum(e.biases.values()) - ledger.bias) <= allowed + ROUNDING[dtype] * sizes


def check_account(each, one):
    found = unrolled.account(each.model, *each.args, target=each.target, expansion=each.expansion)
    dtype = one.dtype
    for number, a in enumerate(found):
        assert float(a.output) == pytest.approx(float(one[number]), rel=BOUND[dtype], abs=ROUNDING[dtype])
        parts = [*a.texts.values(), *a.features.values(), *a.biases.values(), *a.constants.values(), a.initial]
        sizes = sum(float(part.abs().sum()) for part in parts) + abs(float(a.output))
        if each.jumps and not a.closes and a.notes:  # as an explanation
            continue
        assert abs(float(a.remainder)) <= gap_allowed(each, dtype, float(a.movement), sizes), a.notes


def check(seed):
    """Explain and account for the model of one seed; return what was refused."""
    each = case(seed)
    with torch.no_grad():
        output = each.model(*each.args)
    one = (
        each.target(output)
        if callable(each.target)
        else output.amax(1)
        if each.target is None
        else output[:, each.target]
    )
    training = seed % 5 == 0
    each.model.train(training)  # it is run in evaluation mode, and left as it was
    before = {name: value.clone() for name, value in each.model.state_dict().items()}
    refused = []
    for call in (check_explanation, check_account):
        try:
            call(each, one)
        except UnrolledError as error:
            message = str(error)
            assert message
            assert "\n" not in message
            assert "internal error" not in message
            refused.append(message)
        except Exception as error:
            raise AssertionError(f"{each}: {type(error).__name__}: {error}") from error
    after = each.model.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items()), each
    assert all(part.training == training for part in each.model.modules()), each
    return refused


def run(seeds):
    """Check many seeds; report all that fail, each by its seed."""
    failures, refusals = [], 0
    for seed in seeds:
        try:
            refusals += len(check(seed))
        except AssertionError as error:
            failures.append(f"{case(seed)}\n    {str(error).splitlines()[0][:300]}")
    assert not failures, f"{len(failures)} of {len(seeds)} models:\n" + "\n".join(failures)
    return refusals


@pytest.mark.slow
def test_a_few_random_models():
    refused = run(range(QUICK))
    assert refused < QUICK  # of two calls a model: a law that holds since all is refused says nothing


@pytest.mark.slow
@pytest.mark.fuzz
@pytest.mark.parametrize("first", range(QUICK, ALL, CHUNK))
def test_many_random_models(first):
    seeds = range(first, min(first + CHUNK, ALL))
    sys.stdout.write(f"seeds {seeds.start} to {seeds.stop - 1}\n")
    run(seeds)
