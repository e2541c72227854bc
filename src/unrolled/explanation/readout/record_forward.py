"""Record a model's forward pass at its recurrent network, and run the model again with other states.

The model is not changed. Recording uses a hook that is removed again; a replay replaces ``forward`` on the instance and
restores it. What the network received and returned is copied at once, since the model may change it in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from unrolled.cells.batch_layout import InitialState, Lengths
from unrolled.decomposition.opening.network_cells import Network
from unrolled.decomposition.opening.open_network import PRECISION, OpenedNetwork, open_network
from unrolled.decomposition.opening.parity import Parity
from unrolled.errors import ParityError, UsageError, kind_of
from unrolled.explanation.model_run import ModelRun
from unrolled.explanation.networks.own_forwards import has_own_forward
from unrolled.model_runs.eval_mode import UNDER_AUTOCAST, autocast_enabled
from unrolled.model_runs.nested_tensors import copy_tensors
from unrolled.user_models.replaced_attributes import replaced_attributes
from unrolled.user_models.this_thread import in_this_thread

__all__ = ["NotOneCallError", "RecordedForward", "record_forward"]


@dataclass(frozen=True)
class RecordedForward:
    """One forward pass of a model, with the run of its recurrent network."""

    rnn: Network
    run: ModelRun
    """Runs the model again on the same arguments."""
    output: object
    """What the model returned."""
    opened: OpenedNetwork
    final: tuple[Tensor, ...]
    """The network's final states: (h_n,) or (h_n, c_n)."""

    @property
    def model(self) -> nn.Module:
        """The model, in evaluation mode."""
        return self.run.model

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
        with replaced_attributes([(self.rnn, "forward", lambda *_, **__: substitute)]):
            return self.run()

    def ends_in_its_states(self) -> bool:
        """Tell whether the final states are the states after the last step, as torch.nn's are."""
        _, final = self._results(self.states)
        found = cast("tuple[Tensor, ...]", final if isinstance(final, tuple) else (final,))
        pairs = zip(found, self.final, strict=True)
        return all(Parity.of(one, own, PRECISION.get(own.dtype, 0.1), floor=0.0).holds for one, own in pairs)

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


def _weights(rnn: nn.Module) -> list[Tensor | None]:
    return [weight for part in rnn.modules() for weight in part._parameters.values()]


class NotOneCallError(UsageError):
    """An output is not explained by one call of one network; then all calls are opened, if no ray was asked for."""


@dataclass(frozen=True)
class _Call:
    """One call of the network."""

    args: tuple[object, ...]
    kwargs: dict[str, object]
    result: Any
    weights: list[Tensor | None]
    coarse: bool
    """Whether autocast was on."""

    @property
    def inputs(self) -> Any:
        """What the network read."""
        return self.kwargs["input"] if "input" in self.kwargs else self.args[0]

    @property
    def state(self) -> InitialState:
        """The initial state."""
        return cast("InitialState", self.kwargs.get("hx", self.args[1] if len(self.args) > 1 else None))


def record_forward(rnn: Network, run: ModelRun) -> RecordedForward:
    """Run a model in evaluation mode once, and open the recurrent network inside it on the inputs it received.

    Raises:
        NotOneCallError: If the network is not called once, or not as torch.nn's are.
        ParityError: If the recomputed states differ from the network's own by more than rounding.
    """
    calls: list[_Call] = []

    def record(_: nn.Module, given: tuple[object, ...], named: dict[str, object], result: object) -> None:
        args, kwargs, copied = copy_tensors((given, named, result))
        calls.append(_Call(args, kwargs, copied, _weights(rnn), autocast_enabled()))

    with rnn.register_forward_hook(in_this_thread(record), with_kwargs=True), torch.no_grad():
        output = run()
    call = _only_call(calls, rnn)
    with torch.no_grad():
        # a hook of the user's may have changed what the network gave; those of ours change nothing
        hooks = rnn._forward_hooks.values()
        changed = any(not str(getattr(hook, "__module__", "")).startswith("unrolled.") for hook in hooks)
        known = None if autocast_enabled() or changed else call.result[0]
        try:
            opened = open_network(rnn, call.inputs, cast("Lengths", call.kwargs.get("lengths")), call.state, known)
        except ParityError as error:
            if call.coarse and not autocast_enabled():
                raise ParityError(UNDER_AUTOCAST) from error
            raise
        except UsageError as error:
            if has_own_forward(rnn):
                raise NotOneCallError(str(error)) from error
            raise
    final = call.result[1]
    recorded = RecordedForward(rnn, run, output, opened, final if isinstance(final, tuple) else (final,))
    if has_own_forward(rnn) and not recorded.ends_in_its_states():
        raise NotOneCallError("the network's final states are not those after its last step")
    return recorded


def _only_call(calls: Sequence[_Call], rnn: Network) -> _Call:
    """Return the call of a network that is called once, as torch.nn's are; refuse any other."""
    if len(calls) != 1:
        hint = "" if calls else ": one of the module, not of its forward"
        raise NotOneCallError(
            f"the model called its recurrent network {len(calls)} times; expected exactly one call{hint}"
        )
    (call,) = calls
    if any(one is not other for one, other in zip(call.weights, _weights(rnn), strict=False)):
        raise NotOneCallError(
            "the model replaces the weights of its recurrent network for the call (torch.func.functional_call)"
        )
    if not isinstance(call.inputs, Tensor | PackedSequence):
        raise NotOneCallError(
            f"the recurrent network was given {kind_of(call.inputs)}; expected a tensor or packed sequence"
        )
    if not isinstance(call.result, tuple) or len(call.result) != 2:
        what = f"{len(call.result)} values" if isinstance(call.result, tuple) else f"{kind_of(call.result)}"
        raise NotOneCallError(
            f"the recurrent network returned {what}; expected outputs and final states, as torch.nn's do"
        )
    return call
