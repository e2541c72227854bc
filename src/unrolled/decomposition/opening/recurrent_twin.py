"""torch.nn's networks with the weights of those that were scripted, traced, quantised or written by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn

from unrolled.user_models.torch_script import is_scripted

__all__ = ["linear_twin", "networks_with_weights", "quantised_kind", "recurrent_twin", "scripted_network"]

N = TypeVar("N")

_KINDS: dict[str, type[nn.RNNBase]] = {"RNN": nn.RNN, "GRU": nn.GRU, "LSTM": nn.LSTM}
_MODES = {"aten::lstm": "LSTM", "aten::gru": "GRU", "aten::rnn_tanh": "RNN_TANH", "aten::rnn_relu": "RNN_RELU"}


def quantised_kind(module: nn.Module) -> str | None:
    """Return ``"dynamic"`` or ``"static"`` for a module of quantised weights, None for any other."""
    home = type(module).__module__
    if "quantized" not in home or not home.startswith(("torch.ao.nn.", "torch.nn.")):
        return None
    return "dynamic" if ".dynamic" in home else "static"


def recurrent_twin(module: nn.Module) -> nn.RNNBase | None:
    """Return torch.nn's network with the weights of a scripted, traced or dynamically quantised one.

    None if the module is none of these.
    """
    if is_scripted(module):
        return _of_script(module)
    if quantised_kind(module) == "dynamic" and type(module).__name__ in ("LSTM", "GRU"):
        return _of_quantised(module)
    return None


def scripted_network(network: N) -> N | nn.RNNBase:
    """Return the twin of a network that was scripted or traced; anything else as it is."""
    twin = _of_script(network) if is_scripted(network) else None
    return network if twin is None else twin


def linear_twin(module: nn.Module) -> nn.Linear | None:
    """Return torch.nn's linear layer with the weights of a dynamically quantised one; None for any other module."""
    if quantised_kind(module) != "dynamic" or type(module).__name__ != "Linear":
        return None
    weight, bias = cast("Any", module)._weight_bias()
    weight = weight.dequantize()
    twin = nn.Linear(weight.shape[1], weight.shape[0], bias is not None)
    with torch.no_grad():
        twin.weight.copy_(weight)
        if bias is not None:
            twin.bias.copy_(bias)
    return twin.eval()


def networks_with_weights(weights: Mapping[str, Tensor]) -> list[nn.RNNBase]:
    """Return torch.nn's networks, with the batch second, that have weights of these names and shapes; none if none has.

    Those of an Elman network may be one with tanh or with relu.
    """
    units, rows = weights["weight_hh_l0"].shape[-1], len(weights["weight_ih_l0"])
    layers = sum(name.startswith("weight_ih_l") and not name.endswith("_reverse") for name in weights)
    kinds = {4: ["LSTM"], 3: ["GRU"], 1: ["RNN_TANH", "RNN_RELU"]}
    count, rest = divmod(rows, len(weights["weight_hr_l0"][0]) if "weight_hr_l0" in weights else units)
    found = []
    for mode in kinds.get(count, []) if not rest else []:
        try:
            both = "weight_ih_l0_reverse" in weights
            kind = _KINDS[mode.split("_")[0]]
            twin = _built(kind, mode, weights, layers, "bias_ih_l0" in weights, False, both)
        except (KeyError, RuntimeError):  # other names or shapes than torch.nn's
            continue
        if {name for name, _ in twin.named_parameters()} == set(weights):
            found.append(twin)
    return found


def _of_script(module: torch.jit.ScriptModule) -> nn.RNNBase | None:
    kind = _KINDS.get(module.original_name)
    weights = dict(module.named_parameters())
    if kind is None or "weight_ih_l0" not in weights:
        return None
    if hasattr(module, "num_layers"):  # scripted: its attributes are there
        names = ("num_layers", "bias", "batch_first", "bidirectional", "mode")
        layers, bias, batch_first, both, mode = (getattr(module, name) for name in names)
    else:  # traced: they are constants of the kernel's call
        found = next((node for node in module.inlined_graph.nodes() if node.kind() in _MODES), None)
        if found is None:
            return None
        inputs, mode = list(found.inputs()), _MODES[found.kind()]
        constants = [value.toIValue() for value in inputs[-6:]] if len(inputs) == 9 and _is_padded(found) else None
        if constants is None:  # packed: the layout of a padded batch is not known, and not needed
            bias, layers, _, _, both = (value.toIValue() for value in inputs[-5:])
            batch_first = False
        else:
            bias, layers, _, _, both, batch_first = constants
    return _built(kind, mode, weights, int(layers), bool(bias), bool(batch_first), bool(both))


def _is_padded(node: Any) -> bool:
    """Whether a kernel's call is that of a padded batch; the packed one takes the sizes of the steps as well."""
    return str(node.schema()).split("(")[0].endswith(".input")


def _of_quantised(module: Any) -> nn.RNNBase:
    """Build a network from quantised weights."""
    weights: dict[str, Tensor] = {}
    for name, value in {**module.get_weight(), **module.get_bias()}.items():
        weights[name] = value.dequantize() if value.is_quantized else value.float()
    kind = _KINDS[type(module).__name__]
    return _built(kind, module.mode, weights, module.num_layers, module.bias, module.batch_first, module.bidirectional)


def _built(
    kind: Any,
    mode: str,
    weights: Mapping[str, Tensor],
    layers: int,
    bias: bool,
    batch_first: bool,
    both: bool,
) -> nn.RNNBase:
    """Build torch.nn's network with these weights."""
    first = weights["weight_ih_l0"]
    units = len(first) // {"LSTM": 4, "GRU": 3}.get(mode, 1)
    options: dict[str, Any] = {"nonlinearity": "relu"} if mode == "RNN_RELU" else {}
    if "weight_hr_l0" in weights:
        options["proj_size"] = len(weights["weight_hr_l0"])
    with torch.random.fork_rng(devices=[]):  # its first weights are drawn, and are not kept
        twin: nn.RNNBase = kind(
            first.shape[1],
            units,
            layers,
            bias=bias,
            batch_first=batch_first,
            bidirectional=both,
            dtype=first.dtype,
            device=first.device,
            **options,
        )
    with torch.no_grad():
        for name, parameter in twin.named_parameters():
            parameter.copy_(weights[name])
    return twin.eval().requires_grad_(False)
