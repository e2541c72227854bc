"""A second look at a held forward: the graph that autograd recorded must be linear, node by node."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import BackwardCFunction

from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.operations.operands import holds_numbers
from unrolled.held_forward.weighed_values import WeighedValues

__all__ = ["check_linear", "has_matrix_product", "without_rule"]


class WithoutRule(torch.autograd.Function):
    """Marks the result of an operation without a rule, which is refused if an output is made of it."""

    @staticmethod
    def forward(ctx: Any, marker: Tensor, result: Tensor, message: str) -> Tensor:  # noqa: ARG004  # autograd's order
        """Give the result; the marker makes it a node of the graph."""
        ctx.message = message
        return result.clone()

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> tuple[None, None, None]:  # noqa: ARG004  # as above
        """Give no gradient."""
        return None, None, None


def without_rule(result: Tensor, message: str) -> Tensor:
    """Mark a result of an operation without a rule: an output that is made of it is refused with the message."""
    if not holds_numbers(result):
        return result
    with torch.enable_grad():
        marked: Tensor = WithoutRule.apply(torch.zeros((), requires_grad=True, device="cpu"), result, message)
    return marked


_PRODUCTS = frozenset(
    "Mul Mm Bmm Mv Dot Addcmul Addmm Baddbmm Addbmm Addr Addmv Convolution Linear LinalgCross Lerp Bilinear Trilinear "
    "ScaledDotProductFlashAttentionForCpu ScaledDotProductEfficientAttention ScaledDotProductFlashAttention".split()
)
"""Nodes that are linear only while one of their factors carries value."""
_OF_MATRICES = frozenset("Mm Bmm Mv Dot Addmm Baddbmm Addbmm Addr Addmv Convolution Linear Bilinear Trilinear".split())
"""Nodes that multiply by matrices, as layers do."""
_SUMMANDS = {"Addcmul": 1, "Addmm": 1, "Baddbmm": 1, "Addbmm": 1, "Addr": 1, "Addmv": 1}
"""How many summands stand before the factors of a product."""
_DIVISORS = {"Div": 1, "Addcdiv": 2, "LinalgSolveEx": 0, "LinalgSolveTriangular": 0}
"""Nodes that are linear unless the operand at this place carries value."""
_NON_LINEAR = frozenset(
    "Sigmoid LogSigmoid Tanh Relu Exp Exp2 Expm1 Log Log1P Log2 Log10 Softmax LogSoftmax Gelu Silu Elu Celu Softplus "
    "Hardtanh Hardswish Hardsigmoid LeakyRelu Mish PreluKernel RreluWithNoise Softshrink Hardshrink Threshold Glu Pow "
    "Sqrt Rsqrt Reciprocal Sin Cos Tan Asin Acos Atan Atan2 Sinh Cosh Asinh Acosh Atanh Sinc Hypot Angle Erf Erfc "
    "Erfinv Lgamma Digamma Logit Abs Sign Sgn Frac Round Floor Ceil Trunc Logsumexp Logcumsumexp Logaddexp Logaddexp2 "
    "Norm LinalgVectorNorm Cdist EuclideanDist Cumprod Prod Var Std NativeLayerNorm NativeGroupNorm "
    "NativeBatchNorm FusedRmsNorm ThnnFusedLstmCell ThnnFusedGruCell LinalgInvEx LinalgDet LinalgSlogdet "
    "LinalgMatrixExp Embedding".split()
)


def check_linear(output: Tensor, ours: tuple[type, ...] = ()) -> None:
    """Refuse an output whose graph holds a custom function, a non-linear node or a product of two that carry value.

    Raises:
        UnsupportedOperationError: If it does, or if it is made of an operation without a rule; the message names it.
    """
    for node in _nodes(output):
        name = type(node).__name__
        custom = issubclass(type(node), BackwardCFunction)
        if getattr(node, "_forward_cls", None) is WithoutRule:
            raise UnsupportedOperationError(getattr(node, "message", name))
        if custom and getattr(node, "_forward_cls", None) not in (*ours, WeighedValues):
            function = name.removesuffix("Backward")
            raise UnsupportedOperationError(
                f"the model uses the custom autograd function {function}, whose value cannot be followed; if the model "
                f"keeps its apply, let it call {function}.apply itself, or compute it with torch operations while it "
                "is explained, or explain a part of the model"
            )
        bare = _bare(name)
        place = _DIVISORS.get(bare, len(node.next_functions))  # a number has no edge
        divides = any(edge is not None for edge, _ in node.next_functions[place : place + 1])
        if bare in _NON_LINEAR or divides:
            raise UnsupportedOperationError(f"{name} in the held forward is not linear; expected a rule for it")
        if bare in _PRODUCTS:
            factors = node.next_functions[_SUMMANDS.get(bare, 0) :]
            if sum(edge is not None for edge, _ in factors) > 1:
                raise UnsupportedOperationError(f"{name} in the held forward multiplies two operands that carry value")


def has_matrix_product(output: Tensor, behind: Collection[Any]) -> bool:
    """Tell whether layers, as matrix products and recurrent networks are, lie between some nodes and an output."""
    read_by: dict[Any, list[Any]] = {}
    for node in _nodes(output, behind):
        for edge, _ in node.next_functions:
            read_by.setdefault(edge, []).append(node)
    seen, waiting = set(behind), list(behind)
    while waiting:
        for node in read_by.get(waiting.pop(), ()):
            if issubclass(type(node), BackwardCFunction) or _bare(type(node).__name__) in _OF_MATRICES:
                return True
            if node not in seen:
                seen.add(node)
                waiting.append(node)
    return False


def _nodes(output: Tensor, first: Collection[Any] = ()) -> Iterator[Any]:
    """Go through the graph of an output, as far as to some nodes."""
    seen, waiting = set(first), [output.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            waiting.extend(edge for edge, _ in node.next_functions)


def _bare(name: str) -> str:
    return re.sub(r"Backward\d*$", "", name)
