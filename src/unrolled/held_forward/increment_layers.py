"""How the layers that a step may hold act on blocks of increments: each is computed by its parts."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.increments import IncrementCall, increment_rule

__all__: list[str] = []


@increment_rule("conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d")
def convolution(call: IncrementCall) -> Tensor:
    """Convolve the increments, and add the bias to what they move around."""
    names = ("input", "weight", "bias")
    given = dict(zip(names, call.args, strict=False)) | call.options
    x, weight, bias = given["input"], given["weight"], given.get("bias")
    options = {name: value for name, value in call.options.items() if name not in names}
    if not call.moves(x) or call.moves(weight):
        raise UnsupportedOperationError(f"{call.name} with a kernel that the state makes has no rule for increments")

    def convolved(value: Tensor) -> Tensor:
        found: Tensor = call.function(value, weight, None, *call.args[3:], **options)
        return found

    result = call.mode.follow(convolved(x), *map(convolved, call.mode.point(x)))
    if bias is None:
        return result
    with call.mode:
        return result + bias.reshape(-1, *[1] * (result.dim() - 2))


@increment_rule("layer_norm rms_norm")
def normalised(call: IncrementCall) -> Tensor:
    """Divide by the root mean square of the features, of which a layer norm takes off the mean first."""
    centres = call.name == "layer_norm"
    names = ("input", "normalized_shape", "weight", *(("bias",) if centres else ()), "eps")
    given = dict(zip(names, call.args, strict=False)) | call.options
    z, dims = given["input"], tuple(range(-len(given["normalized_shape"]), 0))
    eps = given.get("eps", 1e-5 if centres else None)
    with call.mode:
        centred = z - z.mean(dims, keepdim=True) if centres else z
        variance = (centred * centred).mean(dims, keepdim=True)
        eps = torch.finfo(variance.dtype).eps if eps is None else eps
        result = centred * torch.reciprocal(torch.sqrt(variance + eps))
        result = result if given.get("weight") is None else result * given["weight"]
        return result if given.get("bias") is None else result + given["bias"]


@increment_rule("group_norm")
def group_norm(call: IncrementCall) -> Tensor:
    """Normalise each group of channels as a layer norm does."""
    names = ("input", "num_groups", "weight", "bias", "eps")
    given = dict(zip(names, call.args, strict=False)) | call.options
    x, shape = given["input"], (1, -1, *[1] * (given["input"].dim() - 2))
    with call.mode:
        parts = x.reshape(x.shape[0], given["num_groups"], -1)
        result = torch.layer_norm(parts, parts.shape[-1:], eps=given.get("eps", 1e-5)).reshape(x.shape)
        result = result if given.get("weight") is None else result * given["weight"].reshape(shape)
        return result if given.get("bias") is None else result + given["bias"].reshape(shape)


@increment_rule("batch_norm")
def batch_norm(call: IncrementCall) -> Tensor:
    """Normalise by running statistics, which is an affine function."""
    names = ("input", "running_mean", "running_var", "weight", "bias", "training", "momentum", "eps")
    given = dict(zip(names, call.args, strict=False)) | call.options
    if given.get("training") or given.get("running_mean") is None:
        raise UnsupportedOperationError("batch normalisation uses the statistics of the batch")
    shape = (1, -1, *[1] * (given["input"].dim() - 2))
    mean, variance = (given[name].reshape(shape) for name in ("running_mean", "running_var"))
    with call.mode:
        result = (given["input"] - mean) * torch.rsqrt(variance + given.get("eps", 1e-5))
        result = result if given.get("weight") is None else result * given["weight"].reshape(shape)
        return result if given.get("bias") is None else result + given["bias"].reshape(shape)


@increment_rule("pad")
def pad(call: IncrementCall) -> Tensor:
    """Pad the increments with zeros: a number that is put beside them does not move."""
    names = ("input", "pad", "mode", "value")
    given = dict(zip(names, call.args, strict=False)) | call.options
    x, mode = given["input"], given.get("mode", "constant")
    block = torch.nn.functional.pad(x, given["pad"], mode)
    result: Tensor = call.mode.keep_gate(call.mode.keep(block, *call.at_both()), (x,))
    return result


@increment_rule("glu")
def glu(call: IncrementCall) -> Tensor:
    """Multiply one half by the gate of the other."""
    dim = call.args[1] if len(call.args) > 1 else call.options.get("dim", -1)
    with call.mode:
        content, gate = call.args[0].chunk(2, dim)
        return content * torch.sigmoid(gate)


@increment_rule("maximum minimum max min")
def extreme(call: IncrementCall) -> Tensor:
    """Compute max(a, b) = ½ (a + b + |a - b|), and the minimum with the other sign."""
    if len(call.args) != 2 or not isinstance(call.args[1], Tensor) or call.options:
        raise UnsupportedOperationError(f"{call.name} of one tensor has no rule for increments")
    a, b = call.args
    with call.mode:
        apart = 0.5 * (a - b).abs()
        return 0.5 * (a + b) + apart if "max" in call.name else 0.5 * (a + b) - apart


@increment_rule("log_softmax")
def log_softmax(call: IncrementCall) -> Tensor:
    """Subtract the logarithm of the sum of the exponentials."""
    z = call.args[0]
    dim = call.args[1] if len(call.args) > 1 else call.options["dim"]
    with call.mode:
        shifted = z - torch.maximum(*call.mode.point(z)).amax(dim, keepdim=True)
        return shifted - shifted.exp().sum(dim, keepdim=True).log()


@increment_rule("norm linalg_vector_norm")
def norm(call: IncrementCall) -> Tensor:
    """Compute the root of the sum of squares."""
    names = ("input", "p", "dim", "keepdim")
    given = dict(zip(names, call.args, strict=False)) | call.options
    if given.get("p", given.get("ord", 2)) not in (2, 2.0, "fro", None) or given.get("dim") is None:
        raise UnsupportedOperationError(f"{call.name} of another order than 2, or of all numbers, has no rule")
    x = given["input"] if "input" in given else given["x"]
    with call.mode:
        return (x * x).sum(given["dim"], keepdim=bool(given.get("keepdim"))).sqrt()


@increment_rule("setitem")
def setitem(call: IncrementCall) -> Tensor:
    """Write into a block, its base and its end; a constant that is written has no increments."""
    target, index, value = call.args
    block = target.clone() if call.moves(target) else torch.zeros_like(target)
    base, end = (each.clone() for each in call.mode.point(target))
    block[index] = value if call.moves(value) else 0.0
    base[index], end[index] = call.mode.point(value)
    return call.mode.follow(block, base, end)
