"""A second look at the recorded graph refuses what is not linear, whatever rule or kernel recorded it."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.graph import check_linear

X = (torch.randn(3, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).abs() + 0.1).requires_grad_()
HELD = X.detach() * 0.5 + 0.2

ELEMENTWISE = (
    "sigmoid tanh relu exp exp2 expm1 log log1p log2 log10 sqrt rsqrt reciprocal sin cos tan sinh cosh asin acos atan "
    "asinh acosh atanh erf erfc erfinv abs sign sgn frac round floor ceil trunc lgamma digamma logit sinc angle"
)
FUNCTIONS = (
    "gelu silu elu selu celu softplus hardtanh hardswish hardsigmoid leaky_relu mish logsigmoid glu relu6 softsign "
    "tanhshrink softshrink hardshrink"
)
NON_LINEAR = {
    **{name: getattr(torch, name) for name in ELEMENTWISE.split()},
    **{f"F.{name}": getattr(F, name) for name in FUNCTIONS.split()},
    "threshold": lambda x: F.threshold(x, 0.1, 0.0),
    "rrelu in training": lambda x: F.rrelu(x, training=True),
    "prelu": lambda x: F.prelu(x, HELD[0, 0]),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "logsumexp": lambda x: x.logsumexp(1),
    "logcumsumexp": lambda x: x.logcumsumexp(1),
    "logaddexp": lambda x: torch.logaddexp(x, HELD),
    "power": lambda x: x**3,
    "power of a number": lambda x: 2**x,
    "norm": lambda x: x.norm(),
    "vector norm": lambda x: torch.linalg.vector_norm(x, dim=-1),
    "distances": lambda x: torch.cdist(x, HELD),
    "variance": lambda x: x.var(1),
    "deviation": lambda x: x.std(),
    "product": lambda x: x.prod(1),
    "cumulative product": lambda x: x.cumprod(1),
    "layer_norm": lambda x: F.layer_norm(x, (4,)),
    "group_norm": lambda x: F.group_norm(x, 2),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "atan2": lambda x: torch.atan2(x, HELD),
    "hypot": lambda x: torch.hypot(x, HELD),
    "inverse": torch.linalg.inv,
    "determinant": torch.linalg.det,
    "matrix_exp": torch.matrix_exp,
    "a square": lambda x: x * x,
    "a matrix times itself": lambda x: x @ x,
    "einsum": lambda x: torch.einsum("bij,bij->b", x, x),
    "cross": lambda x: torch.linalg.cross(x[..., :3], x[..., 1:]),
    "a divisor": lambda x: HELD / x,
    "a divisor of a sum": lambda x: torch.addcdiv(HELD, HELD, x),
    "a matrix of equations": lambda x: torch.linalg.solve(x, HELD),
    "addcmul": lambda x: torch.addcmul(HELD, x, x),
}
LINEAR = {
    "sum": lambda x: x.sum(1),
    "quotient": lambda x: x / HELD,
    "quotient that is added": lambda x: torch.addcdiv(x, x, HELD),
    "product": lambda x: x * HELD,
    "matrix product": lambda x: x @ HELD.mT,
    "linear": lambda x: F.linear(x, HELD[0], HELD[0, 0]),
    "convolution": lambda x: F.conv1d(x, HELD[:2]),
    "equations": lambda x: torch.linalg.solve(HELD + torch.eye(4), x),
    "cross": lambda x: torch.linalg.cross(x[..., :3], HELD[..., 1:]),
    "choices": lambda x: (
        torch.where(HELD > 0.5, x, 0.0).masked_fill(HELD > 0.7, 1.0).gather(1, torch.zeros(3, 1, 4).long())
    ),
    "largest": lambda x: x.max(1)[0] + x.topk(2, 1)[0][:, 0] + F.max_pool1d(x, 4)[..., 0],
    "mean beside a variance": lambda x: torch.var_mean(x, 1)[1],
    "cumulative sum": lambda x: x.cumsum(1).flip(1).roll(1, 2),
    "addcmul": lambda x: torch.addcmul(x, HELD, x),
}


@pytest.mark.parametrize("name", NON_LINEAR)
def test_what_is_not_linear_is_refused(name):
    with pytest.raises(UnsupportedOperationError, match=r"not linear|multiplies two"):
        check_linear(NON_LINEAR[name](X).sum())


@pytest.mark.parametrize("name", LINEAR)
def test_what_is_linear_is_not(name):
    check_linear(LINEAR[name](X).sum())
