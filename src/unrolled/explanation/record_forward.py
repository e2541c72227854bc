"""Record a model's forward pass at its recurrent network, and run the model again with other states.

The model is not changed. Recording uses a hook that is removed again; a replay replaces ``forward`` on the instance and
restores it. What the network received and returned is copied at once, since the model may change it in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from unrolled.cells.batch_layout import InitialState, Lengths
from unrolled.decomposition.eval_mode import autocast_enabled
from unrolled.decomposition.nested_tensors import copy_tensors
from unrolled.decomposition.open_network import Network, OpenedNetwork, open_network
from unrolled.decomposition.replaced_methods import replaced_methods
from unrolled.errors import ParityError, ShapeError, UsageError

__all__ = ["NotOneCallError", "RecordedForward", "named_failures", "record_forward", "runner"]


@dataclass(frozen=True)
class RecordedForward:
    """One forward pass of a model, with the run of its recurrent network."""

    model: nn.Module
    rnn: Network
    run: Callable[[], object]
    """Runs the model again on the same arguments."""
    output: object
    """What the model returned."""
    opened: OpenedNetwork
    final: tuple[Tensor, ...]
    """The network's final states: (h_n,) or (h_n, c_n)."""

    @property
    def states(self) -> tuple[Tensor, ...]:
        """For each direction the states of the decomposed layers, in token order, shape (time, batch, state)."""
        result = []
        for d, layers in enumerate(self.opened.directions):
            states = torch.cat([layer.image for layer in layers], dim=-1)
            result.append(self.opened.layout.turn(states, d))
        return tuple(result)

    def replay(self, states: tuple[Tensor, ...]) -> object:
        """Run the model with other states in place of its recurrent network's, and return its output."""
        substitute = self._results(states)
        with replaced_methods([(self.rnn, "forward", lambda *_, **__: substitute)]):
            return self.run()

    def _results(self, states: tuple[Tensor, ...]) -> tuple[Tensor | PackedSequence, InitialState]:
        """Return states in the form in which the network returns its results."""
        rnn, lengths = self.rnn, self.opened.lengths
        dtype = self.final[0].dtype
        tops = []
        batch = torch.arange(lengths.shape[0], device=lengths.device)
        last = (lengths - 1, torch.zeros_like(lengths))
        finals = [list(part.unsqueeze(1) if part.dim() == 2 else part) for part in self.final]
        count = len(states)
        for d, (layers, direction) in enumerate(zip(self.opened.directions, states, strict=True)):
            parts = direction.to(dtype).split([layer.cell.state_size for layer in layers], dim=-1)
            lowest = rnn.num_layers - len(layers)
            for k, (layer, part) in enumerate(zip(layers, parts, strict=True)):
                read = part[last[d], batch]
                place = (lowest + k) * count + d
                finals[0][place] = layer.cell.hidden(read)
                if len(finals) == 2:
                    finals[1][place] = read[..., : layer.cell.state_size - layer.cell.output_size]
            tops.append(layers[-1].cell.hidden(parts[-1]))
        stacked = [torch.stack(f).reshape(p.shape) for f, p in zip(finals, self.final, strict=True)]
        final = stacked[0] if len(stacked) == 1 else (stacked[0], stacked[1])
        return self.opened.layout.restore(torch.cat(tops, dim=-1)), final


_COARSE = (
    "the model runs its recurrent network under torch.autocast, so its states are too coarse for an account; switch "
    "that off where its forward switches it on: enabled=False"
)


def _weights(rnn: nn.Module) -> list[Tensor | None]:
    return [weight for part in rnn.modules() for weight in part._parameters.values()]


class NotOneCallError(UsageError):
    """A model calls its recurrent network never, or several times."""


def runner(model: nn.Module, args: tuple[object, ...], kwargs: dict[str, object]) -> Callable[[], object]:
    """Return what runs a model on copies of its arguments.

    Raises:
        UsageError: If a weight was made in inference mode.
    """
    for name, weight in model.named_parameters():
        if weight.is_inference():
            raise UsageError(f"{name} was made in inference mode; expected a model made outside torch.inference_mode")
    own, named_own = copy_tensors(args), copy_tensors(kwargs)

    def run() -> object:
        return model(*copy_tensors(own), **copy_tensors(named_own))

    return run


@contextmanager
def named_failures(arguments: Iterable[object]) -> Iterator[None]:
    """Name the input of a model that fails because it is empty."""
    try:
        yield
    except RuntimeError as error:
        for value in arguments:
            if isinstance(value, Tensor) and value.numel() == 0:
                shape = tuple(value.shape)
                raise ShapeError(
                    f"the model fails on an input of shape {shape}; expected at least one token"
                ) from error
        if "greater than 0" in str(error):  # torch's message for packing a sequence of no tokens
            raise ShapeError("a sentence of the batch has no tokens; expected at least one") from error
        raise


def record_forward(
    model: nn.Module, rnn: Network, args: tuple[object, ...], kwargs: dict[str, object]
) -> RecordedForward:
    """Run a model in evaluation mode once, and open the recurrent network inside it on the inputs it received."""
    run = runner(model, args, kwargs)
    calls: list[tuple[tuple[object, ...], dict[str, object], object]] = []

    weights: list[list[Tensor | None]] = []
    coarse: list[bool] = []

    def record(_: nn.Module, given: tuple[object, ...], named: dict[str, object], result: object) -> None:
        calls.append(copy_tensors((given, named, result)))
        weights.append(_weights(rnn))
        coarse.append(autocast_enabled())

    handle = rnn.register_forward_hook(record, with_kwargs=True)
    try:
        with torch.no_grad(), named_failures((*args, *kwargs.values())):
            output = run()
    finally:
        handle.remove()
    if len(calls) != 1:
        hint = "" if calls else ": one of the module, not of its forward"
        raise NotOneCallError(
            f"the model called its recurrent network {len(calls)} times; expected exactly one call{hint}"
        )
    if any(one is not other for one, other in zip(weights[0], _weights(rnn), strict=False)):
        raise NotOneCallError(
            "the model replaces the weights of its recurrent network for the call (torch.func.functional_call); choose "
            "readout='held'"
        )
    given, named, result = calls[0]
    inputs = named["input"] if "input" in named else given[0]
    state = named.get("hx", given[1] if len(given) > 1 else None)
    if not isinstance(inputs, Tensor | PackedSequence):
        raise NotOneCallError(
            f"the recurrent network was given a {type(inputs).__name__}; expected a tensor or packed sequence"
        )
    if not isinstance(result, tuple) or len(result) != 2:
        what = f"{len(result)} values" if isinstance(result, tuple) else f"a {type(result).__name__}"
        raise NotOneCallError(
            f"the recurrent network returned {what}; expected outputs and final states, as torch.nn's do"
        )
    final = result[1]
    with torch.no_grad():
        # a hook of the user's may have changed what the network gave; those of ours only watch
        hooks = rnn._forward_hooks.values()
        changed = any(not str(getattr(hook, "__module__", "")).startswith("unrolled.") for hook in hooks)
        known = None if autocast_enabled() or changed else result[0]
        lengths = cast("Lengths", named.get("lengths"))
        try:
            opened = open_network(rnn, inputs, lengths, cast("InitialState", state), known)
        except ParityError as error:
            if coarse[0] and not autocast_enabled():
                raise ParityError(_COARSE) from error
            raise
    return RecordedForward(
        model,
        rnn,
        run,
        output,
        opened,
        final if isinstance(final, tuple) else (final,),
    )
