"""Products and sums with constants: derivatives are torch's, at every nesting, and no product is with zeros."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.func import grad, jacfwd, jvp, vmap
from torch.utils._python_dispatch import TorchDispatchMode

from unrolled.forward_mode.written_operations import with_written_operations

torch.manual_seed(0)
W, C = torch.randn(3, 3), torch.randn(4, 3)
c, b = torch.randn(3), torch.randn(3)
X, V = torch.randn(4, 3), torch.randn(4, 3)

OPERATIONS = {
    "linear": lambda x: F.linear(x, W, b),
    "linear without bias": lambda x: F.linear(x, W),
    "linear, its weights": lambda x: F.linear(C, x, torch.ones(4)),
    "linear, its bias": lambda x: F.linear(C, W, x[0]),
    "linear of a vector": lambda x: F.linear(x[0], W, b),
    "linear, input and bias": lambda x: F.linear(x, W, x[0]),
    "@": lambda x: x @ W,
    "constant @": lambda x: W @ x.T,
    "@ vector": lambda x: x @ c,
    "bmm": lambda x: torch.bmm(x[None], W[None]),
    "mm": lambda x: torch.mm(C.T, x),
    "*": lambda x: x * c,
    "constant *": lambda x: c * x,
    "* more rows": lambda x: x[0] * C,
    "* number": lambda x: 2 * x,
    "* whole numbers": lambda x: x * (x > 0),
    "* double": lambda x: x * c.double(),
    "* double scalar": lambda x: x * torch.tensor(2.0, dtype=torch.float64),
    "* complex": lambda x: x * (c + 1j * c),
    "* itself": lambda x: x * x,
    "/": lambda x: x / c,
    "/ number": lambda x: x / 3,
    "constant /": lambda x: c / x,
    "/ rounded": lambda x: torch.div(x, c, rounding_mode="floor"),
    "+": lambda x: x + c,
    "constant +": lambda x: c + x,
    "+ more rows": lambda x: x[0] + C,
    "+ number": lambda x: x + 1,
    "+ double": lambda x: x + c.double(),
    "+ complex": lambda x: x + 1j * c,
    "+ many": lambda x: torch.add(x, c, alpha=3),
    "-": lambda x: x - c,
    "constant -": lambda x: c - x,
    "constant - fewer rows": lambda x: C - x[0],
    "number -": lambda x: 1 - x,
    "+ many, in an order that torch once had": lambda x: torch.add(c, 3, x),
    "- many, in an order that torch once had": lambda x: torch.sub(C, 3, x),
    "a step": lambda x: torch.sigmoid(F.linear(x, W, b)) * C + torch.tanh(c * x - 1),
    "vmap inside": lambda x: vmap(lambda row: row * c)(x),
    "vmap inside over constants": lambda x: vmap(lambda row: row * x[0])(C),
    "gradient inside": lambda x: grad(lambda y: (y.square() * c).sum())(x),
    "gradient inside by a constant": lambda x: grad(lambda y: (y * x * c).sum())(C),
    "forward mode inside": lambda x: jacfwd(lambda y: y * c)(x[0]),
    "forward mode inside by a constant": lambda x: jacfwd(lambda y: y * x)(c),
    "changed in place": lambda x: (x + 1).mul_(x) + x,
    "changed in place, of a difference": lambda x: (x - c).mul_(3) * x,
    "changed in place, of more rows": lambda x: (x[0] + C).mul_(C) + x,
    "a part changed in place": lambda x: torch.select_scatter(x + c, c, 0, 0) + (x + c)[1].mul_(2) + x,
    "nothing moves": lambda x: x * 0 + C * c + 1,
}


def once(f):
    return jvp(f, (X,), (V,))


NESTINGS = {
    "once": once,
    "twice": lambda f: jvp(lambda x: jvp(f, (x,), (V,))[1], (X,), (V,)),
    "a gradient of it": lambda f: (grad(lambda x: jvp(f, (x,), (V,))[1].abs().sum())(X),),
    "of a gradient": lambda f: jvp(grad(lambda x: f(x).abs().sum()), (X,), (V,)),
    "side by side": lambda f: vmap(lambda x, v: jvp(f, (x,), (v,)))(torch.stack([X, V]), torch.stack([V, X])),
}


@pytest.mark.filterwarnings("ignore:This overload of")  # the order of operands that torch once had
@pytest.mark.parametrize("nesting", NESTINGS.values(), ids=NESTINGS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_numbers_types_and_shapes_are_those_of_torch(name, nesting):
    function = OPERATIONS[name]
    try:
        expected = nesting(function)
    except RuntimeError as error:  # as the gradient of a complex number
        with pytest.raises(type(error)):
            nesting(with_written_operations(function))
        return
    found = nesting(with_written_operations(function))
    for one, other in zip(found, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert torch.equal(one, other)


class Products(TorchDispatchMode):
    """Counts products of matrices."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func.overloadpacket.__name__ in ("mm", "addmm", "bmm")
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", ["linear", "linear without bias", "@", "constant @", "bmm"])
def test_a_product_with_a_constant_takes_two_products_and_three_in_torch(name):
    counts = []
    for function in (with_written_operations(OPERATIONS[name]), OPERATIONS[name]):
        with Products() as products:
            once(function)
        counts.append(products.count)
    assert counts == [2, 3]


def test_gradients_reach_weights_through_the_derivative():
    """What a training by derivatives needs."""
    weights = W.clone().requires_grad_()

    def loss(run):
        tangent = jvp(run(lambda x: torch.tanh(F.linear(x, weights, b))), (X,), (V,))[1]
        return torch.autograd.grad(tangent.square().sum(), weights)[0]

    assert torch.equal(loss(with_written_operations), loss(lambda f: f))
