"""Operations that are linear in one operand: they move, sum or weigh value, and nothing of them need be held."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.graph import without_rule
from unrolled.held_forward.mode import HeldCall, rule
from unrolled.held_forward.operations.operands import carries, detached, for_each_tensor, operands
from unrolled.held_forward.operations.operands_read import copied_data
from unrolled.held_forward.tensor_facts.gates import OF_ONE_ENTRY
from unrolled.held_forward.tensor_facts.moves import EACH_BY_ITSELF

__all__ = ["OF_SEVERAL_ENTRIES"]

OF_SEVERAL_ENTRIES = (
    "sum mean nansum cumsum trace as_strided avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d "
    "adaptive_avg_pool3d upsample_linear1d upsample_bilinear2d upsample_bicubic2d upsample_trilinear3d max_unpool2d "
    "max_unpool3d trapezoid trapz cumulative_trapezoid gradient sum_to_size deg2rad rad2deg diagflat view_as_real "
    "view_as_complex imag conj fft_fft fft_ifft fft_rfft fft_irfft fft_hfft fft_ihfft fft_fft2 fft_ifft2 fft_rfft2 "
    "fft_irfft2 fft_fftn fft_ifftn fft_rfftn fft_irfftn fft_fftshift fft_ifftshift stft istft fold col2im "
    "im2col nll_loss_nd affine_grid_generator"
).split()
"""Sums, means and transforms of one tensor; ``as_strided`` asks how a tensor lies in memory."""


@rule(*OF_ONE_ENTRY, *OF_SEVERAL_ENTRIES)
def linear_in_one(call: HeldCall) -> object:
    """Run the operation as it is, on a gate and on its parts."""
    first, *rest = call.args
    result, gate = call.run(*call.args), call.gates.of(first)
    if gate is not None and call.name in OF_ONE_ENTRY and (move := call.mover()) is not None:
        risen, at_zero = (move(each, *rest, **call.kwargs) for each in (gate.risen, gate.at_zero))
        call.gates.keep_each(result, risen, at_zero, gate.of_gates)
    return result


@rule("nanmean")
def nanmean(call: HeldCall) -> Tensor:
    """Compute the mean of what is a number; of nothing it is 0/0, of which autograd would keep 1/0."""
    x, dim, keep, dtype = call.bind("input", "dim", "keepdim", "dtype")
    with call.mode:
        total = torch.nansum(x, dim, keepdim=bool(keep), dtype=dtype)
        return total / (~torch.isnan(x.detach())).sum(dim, keepdim=bool(keep)).to(total.dtype)


@rule(*EACH_BY_ITSELF)
def linear_in_each(call: HeldCall) -> object:
    """Re-arrange several tensors, each by itself; those without value may stand before those with value."""

    def run(part: str) -> Any:
        results = call.run(*for_each_tensor(call.args, lambda each: getattr(call.gates.of(each), part, each)))
        return [results] if isinstance(results, Tensor) else results

    result = call.run(*call.args)
    given = operands(call.args)
    if any(call.gates.of(each) for each in given):
        several = [result] if isinstance(result, Tensor) else result
        for before, after, risen, at_zero in zip(given, several, run("risen"), run("at_zero"), strict=True):
            if gate := call.gates.of(before):
                call.gates.keep_each(after, risen, at_zero, gate.of_gates)
    return result


@rule("as_tensor", "asarray", "tensor", "new_tensor")
def tensor_of(call: HeldCall) -> Tensor:
    """Give the operand in the type and on the device that are asked for; ``tensor`` and ``new_tensor`` give a copy."""
    made: Tensor = call.held()
    x = copied_data(call.operation, call.args)
    if not any(map(carries, operands([x]))):
        return made
    if not isinstance(x, Tensor):
        message = f"torch.{call.name} makes a tensor of a list's numbers, where value is lost; use torch.stack"
        return without_rule(made, message)
    device, dtype = made.device, made.dtype
    with call.mode:
        moved = x.to(device=device, dtype=dtype)
        return moved.clone() if call.name in ("tensor", "new_tensor") else moved


@rule("detach")
def identity(call: HeldCall) -> Tensor:
    """Give a view of the operand: cutting a gradient does not cut value, nor what is written later."""
    x = call.args[0]
    if x.layout != torch.strided:
        return x
    view, gate = call.rows.move(x, lambda each: each.view_as(each)), call.gates.of(x)
    return view if gate is None else call.gates.keep(view, gate)


@rule("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "native_dropout")
def dropout(call: HeldCall) -> Tensor:
    """Dropout in evaluation gives its operand; of one in training, which is an affine function, the draw is held."""
    x, share, training = call.bind("input", "p", "train")
    if not (call.kwargs.get("training", training) and share):
        return x
    with torch.no_grad():
        images = []
        for fill in (0.0, 1.0):
            with torch.random.fork_rng(devices=[x.device] if x.is_cuda else []):
                images.append(call.run(torch.full_like(x.detach(), fill), *call.args[1:]))
        call.held()  # the generator goes on as in the model's own run
    with call.mode:
        return x * (images[1] - images[0]) + images[0]


@rule("normal")
def normal(call: HeldCall) -> Tensor:
    """Compute mean + deviation · ε, of which the draw ε is held."""
    mean, deviation = call.bind("mean", "std")
    deviation = 1.0 if deviation is None else deviation
    if call.operation.in_place:
        raise UnsupportedOperationError(
            "normal_ writes random numbers over a tensor that carries value; use torch.normal"
        )
    with torch.no_grad():
        moved, size = call.held() - detached(mean), detached(deviation)
        noise = moved / size if isinstance(size, int | float) else torch.where(size > 0, moved / size, 0.0)
    call.rows.mark(noise, "held", "normal")
    with call.mode:
        return mean + deviation * noise


@rule("_pad_packed_sequence")
def pad_packed(call: HeldCall) -> object:
    """Unpack a batch; a padding value other than zero is a constant."""
    data, sizes, batch_first, padding, total = call.args
    result, lengths = call.run(data, sizes, batch_first, 0.0, total)
    if padding:
        outside = call.run(torch.zeros_like(data.detach()), sizes, batch_first, padding, total)[0]
        result = result + call.rows.constant(outside)

    def unpacked(parts: list[Any]) -> Tensor:
        return call.run(parts[0], sizes, batch_first, parts[1], total)[0]

    return call.gates.keep_chosen(result, (data, padding), unpacked), lengths


@rule("grid_sampler")
def grid_sampler(call: HeldCall) -> Tensor:
    """Interpolate at the places of a grid, which are held as indices are."""
    x, grid, *options = call.args
    return call.run(x, grid.detach(), *options) if carries(x) else call.mode.hold(call)


@rule("pad")
def pad(call: HeldCall) -> Tensor:
    """Pad; a padding value other than zero is a constant."""
    x, widths, mode, value = call.bind("input", "pad", "mode", "value")
    if mode not in (None, "constant"):
        return call.gates.keep_chosen(call.run(*call.args), (x,), lambda parts: call.run(*parts, *call.args[1:]))
    return _padded(call, x, widths, value or 0.0)


@rule("constant_pad_nd")
def constant_pad(call: HeldCall) -> Tensor:
    """Pad with one number."""
    return _padded(call, *(*call.args, 0.0)[:3])


def _padded(call: HeldCall, x: Tensor, widths: Any, value: float) -> Tensor:
    """Pad with one number: what is put beside a gate belongs to its value at zero."""
    result = torch.constant_pad_nd(x, widths, 0.0)
    if value:
        outside = torch.constant_pad_nd(torch.zeros_like(x.detach(), dtype=torch.bool), widths, True)
        result = result + call.rows.constant(torch.zeros_like(result.detach()).masked_fill(outside, value))
    return call.gates.keep_chosen(result, (x, value), lambda parts: torch.constant_pad_nd(parts[0], widths, parts[1]))
