"""Judges an account and an explanation of a model by what the model itself does, and by nothing of ours.

Sums are compared with the model's own output. A token that is said to contribute exactly nothing may be replaced, and
one that contributes something may not, without the output knowing. A label that is a token's id stands where the
network reads that token. An example of a batch is what it is alone.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

import unrolled

VOCABULARY = 30
SMALL = 1e-9


@dataclass(frozen=True)
class Model:
    """A model, and the arguments of one call."""

    make: Callable[[], nn.Module]
    args: tuple[Any, ...]
    target: Any = None
    texts: tuple[int, ...] = ()
    """Places of the arguments that hold token ids of which every one is read."""
    held: tuple[int, ...] = ()
    """Flat places among these that act only by masks, lengths or attention."""
    alone: Callable[[int], tuple[Any, ...]] | None = None
    """The arguments of one example; None if the call is of one example."""
    options: dict[str, Any] = field(default_factory=dict)

    def built(self) -> nn.Module:
        """Make the model with the same weights each time."""
        torch.manual_seed(1)
        return self.make().double()

    def output(self, args: tuple[Any, ...]) -> Tensor:
        """Call the model itself."""
        model = self.built().eval()
        if "seed" in self.options:
            torch.manual_seed(self.options["seed"])
        with torch.no_grad():
            whole = model(*copy.deepcopy(args))
        return (self.target(whole) if callable(self.target) else whole[..., self.target]).reshape(-1)


def one_of(*args: Tensor) -> Callable[[int], tuple[Tensor, ...]]:
    """Return what takes one example along the first axis."""
    return lambda b: tuple(each[b : b + 1] for each in args)


def ids(batch: int, time: int) -> Tensor:
    """Draw ids without repeats, none of them 0."""
    generator = torch.Generator().manual_seed(100 * batch + time)
    return torch.stack([torch.randperm(VOCABULARY - 1, generator=generator)[:time] + 1 for _ in range(batch)])


def numbers(*shape: int) -> Tensor:
    """Draw features."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64)


def judge_account(case: Model) -> Any:
    """Judge ``unrolled.account``."""
    found = unrolled.account(case.built(), *copy.deepcopy(case.args), target=case.target, **case.options)
    expected = case.output(case.args)
    torch.testing.assert_close(found.output, expected, atol=SMALL, rtol=SMALL)
    assert float(found.remainder.abs().max()) <= SMALL
    assert found.closes
    for place in case.texts:
        part = found.texts[str(place)].reshape(-1)
        for token, contribution in enumerate(part.tolist()):
            if token not in case.held:
                moved = float((_replaced(case, place, token) - expected).abs().max())
                assert (contribution != 0) is (moved > 1e-14), (place, token, contribution, moved)
    if case.alone:
        b = len(expected) - 1
        one = unrolled.account(case.built(), *case.alone(b), target=case.target, **case.options)
        for whole, own in ((found[b].texts, one.texts), (found[b].features, one.features)):
            for name, part in own.items():
                assert abs(float(part.sum() - whole[name].sum())) <= SMALL
    return found


def judge_explanation(case: Model) -> Any:
    """Judge ``unrolled.explain_batch``, and ``unrolled.explain`` of its last example."""
    model = case.built().train()
    examples = unrolled.explain_batch(model, *copy.deepcopy(case.args), target=case.target, **case.options)
    assert model.training
    for found, logit in zip(examples, case.output(case.args).tolist(), strict=True):
        ledger = found.ledger
        assert abs(ledger.logit - logit) <= SMALL
        assert abs(ledger.remainder) <= SMALL
        assert abs(ledger.ngrams + ledger.initial + ledger.bias + ledger.remainder - logit) <= SMALL
    last = len(examples) - 1
    args = case.alone(last) if case.alone else case.args
    one = unrolled.explain(case.built(), *copy.deepcopy(args), target=case.target, **case.options)
    for name in ("ngrams", "initial", "bias"):
        assert abs(getattr(one.ledger, name) - getattr(examples[last].ledger, name)) <= SMALL
    _judge_labels(case, one, args)
    return examples


def _replaced(case: Model, place: int, token: int) -> Tensor:
    """Return the output with one token replaced."""
    other = case.args[place].clone().reshape(-1)
    unused = next(n for n in range(2, VOCABULARY) if n not in other.tolist())
    other[token] = unused
    return case.output((*case.args[:place], other.view(case.args[place].shape), *case.args[place + 1 :]))


def _judge_labels(case: Model, found: Any, args: tuple[Any, ...]) -> None:
    """Replace each token that stands once in the arguments: what the network reads at its label must change."""
    before = _read(case, args)
    if not before:  # a step of the model's own, which is no module
        return
    everywhere = [number for place in case.texts for number in args[place].reshape(-1).tolist()]
    for place in case.texts:
        given = args[place].reshape(-1).tolist()
        for sequence in getattr(found, "sequences", [found]):
            for step, label in enumerate(sequence.tokens):
                if not label.isdigit() or int(label) not in given or everywhere.count(int(label)) != 1:
                    continue
                other = args[place].clone().reshape(-1)
                other[given.index(int(label))] = next(n for n in range(2, VOCABULARY) if n not in everywhere)
                after = _read(case, (*args[:place], other.view(args[place].shape), *args[place + 1 :]))
                assert any(
                    len(one) == len(sequence) and not torch.equal(one[step], two[step])
                    for one, two in zip(before, after, strict=True)
                    if one.shape == two.shape
                ), (sequence.name, step, label)


def _read(case: Model, args: tuple[Any, ...]) -> list[Tensor]:
    """Record what networks read: every sequence of every call, and the calls of each cell as one."""
    model = case.built().eval()
    calls: list[Tensor] = []
    steps: dict[str, list[Tensor]] = {}

    def record(name: str, module: nn.Module, given: Any) -> None:
        x = given[0]
        if isinstance(x, PackedSequence):
            x, lengths = pad_packed_sequence(x, batch_first=True)
            calls.extend(row[:n].clone() for row, n in zip(x, lengths.tolist(), strict=True))
            return
        if isinstance(module, nn.RNNBase) and x.dim() == 3:
            x = x if module.batch_first else x.transpose(0, 1)
            calls.extend(row.clone() for row in x)
        if x.shape[-2] == 1 or isinstance(module, nn.RNNCellBase):
            steps.setdefault(name, []).append(x.reshape(-1, x.shape[-1])[0].clone())

    for name, module in model.named_modules():
        if isinstance(module, nn.RNNBase | nn.RNNCellBase):
            module.register_forward_pre_hook(lambda m, given, name=name: record(name, m, given))
    with torch.no_grad():
        model(*copy.deepcopy(args))
    return [*calls, *map(torch.stack, steps.values())]
