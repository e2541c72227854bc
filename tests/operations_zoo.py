# ruff: noqa: ARG001, ARG005  # every operation takes x and y
"""Operations of models, each a function of two inputs whose values are accounted for."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
X = torch.randn(2, 4, 6, dtype=torch.float64)
Y = torch.randn(2, 4, 6, dtype=torch.float64)
W = torch.randn(5, 6, dtype=torch.float64)
B = torch.randn(5, dtype=torch.float64)
MASK = torch.rand(2, 4, 6) > 0.4
INDEX = torch.randint(0, 4, (2, 4, 6))
GRID = torch.rand(2, 3, 3, 2, generator=torch.Generator().manual_seed(5), dtype=torch.float64) * 2.0 - 1.0


def made(module: nn.Module) -> nn.Module:
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module.double().eval().requires_grad_(False)


def of(module: nn.Module):
    made(module)
    return lambda x, y: module(x)


ATTENTION = made(nn.MultiheadAttention(6, 2, batch_first=True))
BILINEAR = made(nn.Bilinear(6, 6, 3))


def written(x, y):
    out = torch.zeros_like(x)
    out[:, 0] = x[:, 1]
    out[:, 1:3] = y[:, :2]
    out[:, 3] = 2.0
    return out


def changed_in_place(x, y):
    z = x * 1.0
    z.add_(y).mul_(2.0).relu_()
    z += 1
    z[MASK] = 0.5
    return F.relu(z, inplace=True)


def packed(x, y):
    given = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([2, 4]), batch_first=True, enforce_sorted=False)
    return nn.utils.rnn.pad_packed_sequence(given, batch_first=True, padding_value=-1.0)[0]


def without_gradient(x, y):
    with torch.no_grad():
        z = x * 2
    return z + y.detach()


def autocast(x, y):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return F.linear(x.float(), W.float(), B.float()).double()


def gate_in_place(x, y):
    gate = torch.sigmoid(x)
    gate.mul_(2.0)
    gate *= y
    return gate + gate * x


def written_into_a_gate(x, y):
    gate = torch.sigmoid(x)
    gate[:, 0] = 0.25
    gate[:, 1] = y[:, 1]
    return gate * y


def view_of_a_gate_in_place(x, y):
    gate = torch.sigmoid(x)
    view = gate[:, :2]
    view.mul_(2.0)
    return gate + gate * y + view.sum()


def gate_in_place_of_what_has_a_view(x, y):
    z = x * 1.0
    view = z[:, :2]
    z.sigmoid_()
    return view.sum() + view * y[:, :2] + z.sum() * y[:, :2]


Z = torch.linspace(-1.0, 1.0, 48, dtype=torch.float64).reshape(2, 4, 6)
OPERATIONS = {
    # element-wise functions
    **{
        name: (lambda f: lambda x, y: f(x))(getattr(F, name))
        for name in "relu relu6 gelu silu tanh elu selu celu leaky_relu mish hardtanh hardswish softsign tanhshrink "
        "softshrink hardshrink sigmoid hardsigmoid softplus logsigmoid".split()
    },
    **{
        name: (lambda f: lambda x, y: f(x))(getattr(torch, name))
        for name in "erf sin cos exp abs expm1 atan neg square clone sign".split()
    },
    "sqrt": lambda x, y: x.abs().sqrt(),
    "sigmoid in place": lambda x, y: torch.sigmoid_(x * 1) * 2,
    "magnitude": lambda x, y: (torch.fft.rfft(x) + (0.3 - 0.2j)).abs(),
    "convolution by FFT": lambda x, y: torch.fft.irfft(torch.fft.rfft(x) * torch.fft.rfft(y), n=6),
    "complex parts": lambda x, y: torch.view_as_complex(x.reshape(2, 4, 3, 2)).conj().imag,
    "log1p": lambda x, y: torch.log1p(x.abs()),
    "log": lambda x, y: x.abs().log() + x,
    "cube": lambda x, y: x**3,
    "inverse square": lambda x, y: y * (x.abs() + 1) ** -2,
    "clamp": lambda x, y: x.clamp(-0.5, 0.7),
    "threshold": lambda x, y: F.threshold(x, 0.1, 0.0),
    "prelu": of(nn.PReLU(4)),
    "frac": lambda x, y: torch.frac(3.0 * x),
    "acosh": lambda x, y: torch.acosh(1.0 + x.abs()) * y,
    "angle of two": lambda x, y: torch.atan2(x, y) * y,
    "log gamma": lambda x, y: torch.lgamma(x.abs() + 0.3) * y + torch.polygamma(1, x.abs() + 0.3) + x,
    "radians": lambda x, y: torch.deg2rad(x),
    "glu": lambda x, y: F.glu(x),
    # sums, and constants among them
    "add": lambda x, y: x + y,
    "add a number": lambda x, y: 3.0 + x,
    "add scaled": lambda x, y: torch.add(x, y, alpha=2.5),
    "subtract from a number": lambda x, y: 1.5 - x,
    "add a vector": lambda x, y: W[0] + x,
    "cat": lambda x, y: torch.cat((x, y, torch.ones(2, 4, 1, dtype=x.dtype)), dim=-1),
    "stack": lambda x, y: torch.stack([x, y]),
    "where": lambda x, y: torch.where(MASK, x, y),
    "where a number": lambda x, y: torch.where(MASK, x, torch.tensor(2.0, dtype=x.dtype)),
    "masked_fill": lambda x, y: x.masked_fill(MASK, -3.0),
    "setitem": written,
    "in place": changed_in_place,
    "pad": lambda x, y: F.pad(x, (1, 2), value=4.0),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
    "gated lerp": lambda x, y: torch.lerp(x, y, torch.sigmoid(x + y)),
    "scatter": lambda x, y: x.scatter_add(1, INDEX, y),
    "index_add": lambda x, y: x.index_add(1, torch.tensor([0, 0, 3]), y[:, :3]),
    "cumsum": lambda x, y: x.cumsum(1),
    "trapezoid": lambda x, y: torch.trapezoid(x, Z[0, 0]) + torch.cumulative_trapezoid(y, dim=2)[..., 0],
    "differences": lambda x, y: torch.gradient(x, spacing=0.5, dim=1)[0],
    "diagonal of a vector": lambda x, y: torch.diagflat(x[0, 0]),
    "sum to a size": lambda x, y: x.sum_to_size(2, 1, 6),
    "interpolated": lambda x, y: (
        F.interpolate(x[:, None], size=(3, 7), mode="bicubic").sum((1, 2, 3))
        + F.interpolate(y, size=9, mode="nearest-exact").sum((1, 2))
        + F.interpolate(y[:, None, None], size=(1, 2, 9), mode="trilinear").sum((1, 2, 3, 4))
    ),
    "unpooled": lambda x, y: F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2),
    "with hooks on gradients": lambda x, y: (
        x if not x.requires_grad or x.retain_grad() or x.register_hook(print) else y
    ),
    "by what a tensor is": lambda x, y: x * y.itemsize if x.is_cpu and not (x.is_quantized or x.is_meta) else y,
    # products
    "mul": lambda x, y: x * y,
    "square by mul": lambda x, y: x * x,
    "gate": lambda x, y: torch.sigmoid(x) * torch.tanh(y),
    "gates of a GRU": lambda x, y: (1 - torch.sigmoid(x)) * torch.tanh(y) + torch.sigmoid(x) * y,
    "two gates": lambda x, y: torch.sigmoid(x) * torch.sigmoid(y),
    "gate of a constant": lambda x, y: torch.sigmoid(x) * 2.0 + torch.sigmoid(y) * Y,
    "chunked gates": lambda x, y: torch.sigmoid(x).chunk(2, -1)[0] * y[..., :3],
    "masked gates": lambda x, y: torch.sigmoid(x).masked_fill(MASK, 2.0) * y * (torch.sigmoid(y) * MASK).flip(1),
    "a bounded gate": lambda x, y: torch.sigmoid(x).clamp(0.4, 0.6) * y + (2 * torch.sigmoid(y)).clamp(max=1.1),
    "joined and padded gates": lambda x, y: (
        F.pad(torch.cat([torch.sigmoid(x), 1 - torch.sigmoid(y)], 2), (0, 1), value=3.0)
        * torch.cat([x, y, x[..., :1]], 2)
    ),
    "dropped gates": lambda x, y: F.dropout(torch.sigmoid(x), 0.5, True) * y,
    "a gate plus a parameter": lambda x, y: (torch.sigmoid(x) + W[0]) * y,
    "a gate over a sum": lambda x, y: torch.sigmoid(x) / torch.sigmoid(x).sum(-1, keepdim=True) * y,
    "gates in a matrix product": lambda x, y: torch.sigmoid(x) @ y.mT + y @ torch.sigmoid(x).mT,
    "two gates in a matrix product": lambda x, y: torch.sigmoid(x) @ torch.sigmoid(y).mT,
    "einsum of a gate and two": lambda x, y: torch.einsum("bte,bse,bse->bt", torch.sigmoid(x), y, x),
    "sum of a gate": lambda x, y: torch.sigmoid(x).sum(-1),
    "div": lambda x, y: x / (y.abs() + 1),
    "matmul": lambda x, y: x @ y.transpose(1, 2),
    "bmm": lambda x, y: torch.bmm(x, y.mT),
    "einsum": lambda x, y: torch.einsum("bte,bse->bts", x, y),
    "einsum of three": lambda x, y: torch.einsum("bte,bse,bse->bt", x, y, x),
    "linear": lambda x, y: F.linear(x, W, B),
    "addmm": lambda x, y: torch.addmm(B, x[0], W.T),
    "addcmul": lambda x, y: torch.addcmul(x, x, y, value=0.5),
    "outer": lambda x, y: torch.outer(x[0, 0], y[0, 1]),
    "prod": lambda x, y: x.prod(1),
    "product over nothing": lambda x, y: x + x[:, :0].prod(1, keepdim=True),
    "conv1d": of(nn.Conv1d(4, 3, 3, padding=1)),
    "conv_transpose1d": of(nn.ConvTranspose1d(4, 3, 3)),
    "bilinear": lambda x, y: BILINEAR(x, y),
    "cosine_similarity": lambda x, y: F.cosine_similarity(x, y, dim=-1),
    "attention": lambda x, y: F.scaled_dot_product_attention(x, y, x),
    "attention by hand": lambda x, y: (x @ y.mT).softmax(-1) @ y,
    "multi-head attention": lambda x, y: ATTENTION(x, y, x)[0],
    "a Transformer layer": of(nn.TransformerEncoderLayer(6, 2, 8, batch_first=True)),
    # normalisations
    "layer_norm": of(nn.LayerNorm(6)),
    "rms_norm": of(nn.RMSNorm(6)),
    "group_norm": of(nn.GroupNorm(2, 4)),
    "batch_norm": of(nn.BatchNorm1d(4)),
    "instance_norm": of(nn.InstanceNorm1d(4, affine=True)),
    "normalize": lambda x, y: F.normalize(x, dim=-1),
    "norm": lambda x, y: x.norm(dim=-1),
    "softmax": lambda x, y: x.softmax(-1) * y,
    "log_softmax": lambda x, y: F.log_softmax(x, -1),
    "standardised by hand": lambda x, y: (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True),
    # choices
    "max": lambda x, y: x.max(dim=1)[0],
    "amax": lambda x, y: x.amax(1),
    "maximum": lambda x, y: torch.maximum(x, y),
    "topk": lambda x, y: x.topk(2, dim=1)[0],
    "sort": lambda x, y: x.sort(dim=1)[0],
    "max_pool1d": lambda x, y: F.max_pool1d(x, 2),
    "quantile": lambda x, y: x - torch.quantile(x, torch.tensor([0.3, 1.0], dtype=x.dtype), dim=1).sum(0)[:, None],
    "quantile of all": lambda x, y: x.nanquantile(0.4, interpolation="midpoint") + y.quantile(0.5, 1, keepdim=True),
    "masked max": lambda x, y: x.masked_fill(MASK, -9.0).max(1)[0],
    # re-arrangements
    "gather": lambda x, y: x.gather(1, INDEX),
    "index": lambda x, y: x[torch.arange(2), torch.tensor([1, 3])],
    "a number beside a number": lambda x, y: x * (y.min() - 10.0) + (2.0 - x.mean()) + (y.sum() + 1),
    "scores masked by less than the smallest": lambda x, y: x.masked_fill(MASK, x.min() - 10.0).softmax(1) * y,
    "clamp by value": lambda x, y: torch.clamp(x, min=y),
    "clamp of a constant by value": lambda x, y: Z.clamp(max=y) * 2.0,
    "masked_fill by value": lambda x, y: x.masked_fill(MASK, y.min()),
    "masked_fill of a constant by value": lambda x, y: Z.masked_fill(MASK, y.mean()),
    "diff behind a constant": lambda x, y: x.diff(dim=1, prepend=Z[:, :1]) + Z.diff(dim=1, append=y[:, :1]),
    "block_diag": lambda x, y: torch.block_diag(Z[0], x[0]),
    "a constant times value in place": lambda x, y: Z.clone().mul_(x).mul_(y),
    "a gate times value in place": gate_in_place,
    "entries of a gate written": written_into_a_gate,
    "a view of a gate in place": view_of_a_gate_in_place,
    "a gate in place of what has a view": gate_in_place_of_what_has_a_view,
    "broadcast behind a mask": lambda x, y: torch.broadcast_tensors(MASK, x)[1],
    "broadcast behind a gate": lambda x, y: torch.broadcast_tensors(torch.sigmoid(y[:, :1]), x)[0] * x,
    "meshgrid": lambda x, y: torch.meshgrid(Y[0, 0], x[0, 0], indexing="ij")[1],
    "flip and roll": lambda x, y: x.flip(1).roll(1, 2),
    "mean": lambda x, y: x.mean(1),
    "masked mean": lambda x, y: (x * MASK).sum(1) / MASK.sum(1),
    "avg_pool1d": lambda x, y: F.avg_pool1d(x, 2),
    "views": lambda x, y: x.reshape(8, 6).unflatten(0, (2, 4)).permute(2, 0, 1).flatten(1).T.contiguous(),
    "samples at a grid": lambda x, y: F.grid_sample(x[:, None], GRID, align_corners=True),
    "samples at places that are computed": lambda x, y: F.grid_sample(
        x[:, None], F.affine_grid(y[:, 0].reshape(2, 2, 3), [2, 1, 3, 3], align_corners=False), align_corners=False
    ),
    "packed": packed,
    "no_grad and detach": without_gradient,
    "dropout in evaluation": lambda x, y: F.dropout(x, 0.5, training=False),
    "autocast": autocast,
}
