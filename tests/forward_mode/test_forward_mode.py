"""Three derivatives of an operation of a step by forward mode, as expansions take them, against reverse mode.

An operation for which this fails in a new version of torch needs an entry in
``unrolled.forward_mode.written_operations``.
"""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import special

from unrolled.forward_mode.written_operations import with_written_operations
from unrolled.linalg.quadrature import taylor_sum

D = 4


def draw(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


MATRIX, SHIFT, GAIN, BIAS = draw(D, D, seed=0), draw(D, seed=1), draw(D, seed=2), draw(D, seed=3)
GATES = {count: (draw(count * D, D, seed=4), draw(count * D, D, seed=5)) for count in (1, 3, 4)}


def matrix(z):
    return 2 * torch.eye(D, dtype=z.dtype) + 0.5 * z[:, None] * MATRIX


def definite(z):
    return matrix(z) @ matrix(z).T + torch.eye(D, dtype=z.dtype)


def cell(name, count):
    def run(z):
        state = (z[None], z[None]) if name == "lstm_cell" else z[None]
        found = getattr(torch, name)(z[None], state, *GATES[count])
        return (found[0] if name == "lstm_cell" else found)[0]

    return run


ELEMENTWISE = {
    function.__name__: function
    for function in (
        *(torch.tanh, torch.sigmoid, torch.exp, torch.expm1, torch.sin, torch.cos, torch.atan, torch.asinh, torch.erf),
        *(torch.erfc, torch.sinc, torch.square, torch.abs, torch.relu, torch.selu, special.i0e, special.i1),
        *(special.erfcx, special.ndtr, special.log_ndtr, F.gelu, F.silu, F.mish, F.softplus, F.elu, F.celu),
        *(F.logsigmoid, F.softsign, F.tanhshrink, F.hardswish, F.leaky_relu),
    )
}
OF_VECTORS = {
    "gelu by tanh": lambda z: F.gelu(z, approximate="tanh"),
    "softplus, sharper": lambda z: F.softplus(z, beta=3.0),
    "powers": lambda z: (1.5 + z * z) ** z,
    "rsqrt": lambda z: torch.rsqrt(z * z + 1),
    "log": lambda z: torch.log(z.abs() + 0.1),
    "atan2": lambda z: torch.atan2(z, BIAS),
    "hypot": lambda z: torch.hypot(z, BIAS),
    "xlogy": lambda z: torch.xlogy(z, z * z + 1),
    "lgamma": lambda z: torch.lgamma(z * z + 1),
    "erfinv": lambda z: torch.erfinv(0.5 * torch.tanh(z)),
    "logit": lambda z: torch.logit(0.9 * torch.sigmoid(z) + 0.05),
    "logaddexp": lambda z: torch.logaddexp(z, BIAS),
    "softmax": lambda z: F.softmax(z, 0),
    "log_softmax": lambda z: F.log_softmax(z, 0),
    "logsumexp": lambda z: torch.logsumexp(z, 0) * GAIN,
    "logcumsumexp": lambda z: torch.logcumsumexp(z, 0),
    "prod": lambda z: torch.prod(z) * GAIN,
    "cumprod": lambda z: torch.cumprod(z, 0),
    "cummax": lambda z: torch.cummax(z, 0).values,
    "cumsum": lambda z: torch.cumsum(z * z, 0),
    "norm": lambda z: torch.linalg.vector_norm(z) * GAIN,
    "norm of cubes": lambda z: torch.linalg.vector_norm(z, 3) * GAIN,
    "normalize": lambda z: F.normalize(z, dim=0),
    "cosine_similarity": lambda z: F.cosine_similarity(z, BIAS, dim=0) * GAIN,
    "variance": lambda z: z / torch.var(z),
    "standard deviation": lambda z: z / torch.std_mean(z)[0],
    "group norm": lambda z: F.group_norm(z[None], 2, GAIN, BIAS)[0],
    "root mean square norm": lambda z: F.rms_norm(z, (D,), GAIN),
    "median": lambda z: torch.median(z) ** 2 * GAIN,
    "quantile": lambda z: torch.quantile(z, 0.3) ** 2 * GAIN,
    "maximum": lambda z: z.amax() ** 2 * GAIN,
    "sort": lambda z: torch.sort(z * z).values,
    "lerp": lambda z: torch.lerp(z, z * z, torch.sigmoid(z)),
    "addcmul": lambda z: torch.addcmul(z, z, z),
    "addcdiv": lambda z: torch.addcdiv(z, z, z * z + 1),
    "where": lambda z: torch.where(z > 0, z**2, z**3),
    "outer product": lambda z: torch.outer(z, z)[1],
    "kronecker product": lambda z: torch.kron(z, z)[:D],
    "bilinear": lambda z: F.bilinear(z, z, draw(D, D, D, seed=6)),
    "convolution": lambda z: F.conv1d(z[None, None], z[None, None, :3], padding=1)[0, 0],
    "convolution, transposed": lambda z: F.conv_transpose1d(z[None, None], z[None, None, :3], padding=1)[0, 0],
    "Fourier transform": lambda z: torch.fft.rfft(z).abs()[0] * z,
    "Fourier transform and back": lambda z: torch.fft.irfft(torch.fft.rfft(z) ** 2, n=D),
    "complex numbers": lambda z: torch.view_as_real((torch.complex(z, z * z) ** 2).tanh())[:, 0],
    "size of complex numbers": lambda z: torch.complex(z, z * z).abs(),
    "scatter_add": lambda z: torch.zeros(D, dtype=z.dtype).scatter_add(0, torch.tensor([0, 0, 1, 2]), z * z),
    "index_add": lambda z: z.index_add(0, torch.tensor([0, 1]), z[:2] ** 2),
    "interpolation": lambda z: F.interpolate((z**2)[None, None], scale_factor=2.0, mode="linear")[0, 0, :D],
    "mean pooling": lambda z: F.avg_pool1d((z**2)[None], 2).repeat(1, 2)[0],
    "maxima of windows": lambda z: F.max_pool1d((z**2)[None], 2).repeat(1, 2)[0],
    "cross entropy": lambda z: F.cross_entropy(matrix(z), torch.arange(D), reduction="none"),
    "binary cross entropy": lambda z: F.binary_cross_entropy_with_logits(z, torch.sigmoid(2 * z), reduction="none"),
}
OF_MATRICES = {
    "inverse": lambda z: torch.linalg.inv(matrix(z))[0],
    "pseudo-inverse": lambda z: torch.linalg.pinv(matrix(z))[0],
    "cholesky": lambda z: torch.linalg.cholesky(definite(z))[-1],
    "cholesky_solve": lambda z: torch.cholesky_solve(z[:, None], torch.linalg.cholesky(definite(z)))[:, 0],
    "qr": lambda z: torch.linalg.qr(matrix(z)).R[0],
    "eigenvalues": lambda z: torch.linalg.eigvalsh(definite(z)),
    "singular values": lambda z: torch.linalg.svdvals(matrix(z)),
    "lu": lambda z: torch.linalg.lu(matrix(z)).U[0],
    "lu_solve": lambda z: torch.linalg.lu_solve(*torch.linalg.lu_factor(matrix(z)), z[:, None])[:, 0],
    "solve": lambda z: torch.linalg.solve(matrix(z), z),
    "solve_triangular": lambda z: torch.linalg.solve_triangular(matrix(z).triu(), z[:, None], upper=True)[:, 0],
    "least squares": lambda z: torch.linalg.lstsq(matrix(z), z[:, None]).solution[:, 0],
    "det": lambda z: torch.linalg.det(matrix(z)) * GAIN,
    "slogdet": lambda z: torch.linalg.slogdet(matrix(z)).logabsdet * GAIN,
    "matrix_exp": lambda z: torch.linalg.matrix_exp(0.3 * matrix(z))[0],
    "matrix_power": lambda z: torch.linalg.matrix_power(matrix(z), -2)[0],
    "spectral norm": lambda z: torch.linalg.norm(matrix(z), 2) * GAIN,
    "Frobenius norm": lambda z: torch.linalg.norm(matrix(z)) * GAIN,
    "baddbmm": lambda z: torch.baddbmm(*3 * (matrix(z)[None],))[0, 0],
    "einsum": lambda z: torch.einsum("ij,j,i->i", matrix(z), z, z),
    "multi_dot": lambda z: torch.linalg.multi_dot(3 * [matrix(z)])[0],
    "distances of pairs": lambda z: F.pairwise_distance(matrix(z), MATRIX),
    "Elman cell": cell("rnn_tanh_cell", 1),
    "GRU cell": cell("gru_cell", 3),
    "LSTM cell": cell("lstm_cell", 4),
}
OPERATIONS = {**ELEMENTWISE, **OF_VECTORS, **OF_MATRICES}
WRITTEN_APART = {"logcumsumexp": lambda z: torch.stack([torch.logsumexp(z[: n + 1], 0) for n in range(D)])}
"""Where the second derivative of reverse mode is NaN."""


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_three_derivatives_are_those_of_reverse_mode(name):
    state, direction, weights = 0.7 * draw(D, seed=7), draw(D, seed=8), draw(D, seed=9)

    operation = OPERATIONS[name]
    judge = WRITTEN_APART.get(name, operation)

    def plain(s):
        return torch.tanh(0.3 * judge(0.5 * s @ MATRIX + SHIFT))

    step = with_written_operations(lambda s: torch.tanh(0.3 * operation(0.5 * s @ MATRIX + SHIFT)))
    torch.testing.assert_close(step(state), plain(state), rtol=1e-12, atol=1e-12)

    def along(alpha):
        return {"image": torch.func.jvp(step, (alpha * state,), (direction,))[1]}

    a, b = (torch.zeros((), dtype=torch.float64, requires_grad=True) for _ in range(2))
    (derivative,) = torch.autograd.grad(plain(a * state + b * direction) @ weights, b, create_graph=True)
    true = [derivative.item()]
    for _ in range(2):
        (derivative,) = torch.autograd.grad(derivative, a, create_graph=True, materialize_grads=True)
        true.append(derivative.item())
    for order in (1, 2, 3):
        found = (taylor_sum(order)(along)["image"] @ weights).item()
        expected = sum(each / math.factorial(number + 1) for number, each in enumerate(true[:order]))
        assert found == pytest.approx(expected, rel=1e-8, abs=1e-9)
