"""Operations that are linear in one operand: they move, sum or weigh value, and nothing of them need be held."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.graph import without_rule
from unrolled.held_forward.mode import GATE_MOVES, Held, carries, detached, rule

__all__: list[str] = []

# Re-arrangements, sums and means of one tensor. `detach` and `data` stop gradients, not value.
_OF_ONE = (
    "view view_as reshape reshape_as permute transpose t adjoint squeeze unsqueeze flatten unflatten ravel movedim "
    "expand expand_as broadcast_to repeat repeat_interleave tile flip fliplr flipud roll rot90 narrow select "
    "index_select gather take_along_dim unbind chunk split split_with_sizes tensor_split unfold diagonal diag "
    "diag_embed tril triu clone contiguous to float double half bfloat16 type type_as cpu cuda real as_strided "
    "masked_select sum mean nansum cumsum trace neg getitem select_copy pixel_shuffle pixel_unshuffle "
    "avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d "
    "upsample_nearest1d upsample_nearest2d upsample_linear1d upsample_bilinear2d positive "
    "_pack_padded_sequence channel_shuffle resolve_conj resolve_neg "
    "view_as_real view_as_complex imag conj fft_fft fft_ifft fft_rfft fft_irfft fft_hfft fft_ihfft fft_fft2 fft_ifft2 "
    "fft_rfft2 fft_irfft2 fft_fftn fft_ifftn fft_rfftn fft_irfftn fft_fftshift fft_ifftshift stft istft "
    "take nanmean fold col2im im2col linalg_diagonal hsplit vsplit dsplit swapaxes unsafe_chunk unsafe_split"
).split()


@rule(*_OF_ONE)
def linear_in_one(call: Held) -> object:
    """Run the operation as it is; a gate stays a gate under it."""
    first = call.args[0]
    if isinstance(first, Tensor) and not carries(first):  # only the shape of another operand is asked for
        result = call.held()
        call.rows.inherit(result, [first])
        return result
    result = call.run(*call.args)
    if call.operation.name in GATE_MOVES and isinstance(first, Tensor) and first in call.mode.gates:
        at_zero = call.mode.gates[first]
        results = result if isinstance(result, tuple | list) else (result,)
        moved = call.run(at_zero, *call.args[1:]) if isinstance(at_zero, Tensor) else [at_zero] * len(results)
        for each, start in zip(results, moved if isinstance(moved, tuple | list) else (moved,), strict=True):
            call.mode.gates[each] = start
    return result


@rule("broadcast_tensors", "meshgrid", "atleast_1d", "atleast_2d", "atleast_3d")
def linear_in_each(call: Held) -> object:
    """Re-arrange several tensors, each by itself; those without value may stand before those with value."""
    return call.run(*call.args)


@rule("as_tensor", "asarray", "tensor")
def tensor_of(call: Held) -> Tensor:
    """Give the operand in the type and on the device that are asked for; ``torch.tensor`` gives a copy."""
    x, made = call.args[0], call.held()
    if not isinstance(x, Tensor):
        message = (
            f"torch.{call.operation.name} makes a tensor of a list's numbers, where value is lost; use torch.stack"
        )
        return without_rule(made, message)
    moved = x.to(device=made.device, dtype=made.dtype)
    return moved.clone() if call.operation.name == "tensor" else moved


@rule("detach")
def identity(call: Held) -> Tensor:
    """Give the operand itself: cutting a gradient does not cut value."""
    return call.args[0]


@rule("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "native_dropout")
def dropout(call: Held) -> Tensor:
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
    return x * (images[1] - images[0]) + call.rows.constant(images[0])


@rule("normal")
def normal(call: Held) -> Tensor:
    """Compute mean + deviation · ε, of which the draw ε is held."""
    mean, deviation = call.args[0], call.kwargs.get("std", call.args[1] if len(call.args) > 1 else 1.0)
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
def pad_packed(call: Held) -> object:
    """Unpack a batch; a padding value other than zero is a constant."""
    data, sizes, batch_first, padding, total = call.args
    result, lengths = call.run(data, sizes, batch_first, 0.0, total)
    if padding:
        time = torch.arange(result.shape[1 if batch_first else 0], device=result.device)
        beyond = time[None] >= lengths.to(result.device)[:, None] if batch_first else time[:, None] >= lengths[None]
        constant = (beyond * float(padding)).reshape(*beyond.shape, *[1] * (result.dim() - 2)).expand_as(result)
        result = result + call.rows.constant(constant.to(result.dtype).contiguous())
    return result, lengths


@rule("pad")
def pad(call: Held) -> Tensor:
    """Pad; a padding value other than zero is a constant."""
    x, widths, mode, value = call.bind("input", "pad", "mode", "value")
    if mode not in (None, "constant") or not value:
        return call.run(*call.args)
    inside = torch.nn.functional.pad(torch.ones_like(x.detach()), widths)
    return torch.nn.functional.pad(x, widths) + call.rows.constant((1 - inside) * value)


@rule("constant_pad_nd")
def constant_pad(call: Held) -> Tensor:
    """Pad with one number."""
    x, widths, value = (*call.args, 0.0)[:3]
    padded = torch.constant_pad_nd(x, widths, 0.0)
    if not value:
        return padded
    inside = torch.constant_pad_nd(torch.ones_like(x.detach()), widths, 0.0)
    return padded + call.rows.constant((1 - inside) * value)
