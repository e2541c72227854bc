"""Operators of the form diag(a) + Σ_k diag(b_k) W_k.

The Jacobian of a recurrent step with a closed form is such an operator. All steps and all examples share the weights
W_k; the diagonals a and b_k have names. A rule of :mod:`unrolled.linalg.quadrature` changes the diagonals alone, so the
mean of such operators has the same form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from unrolled.linalg.operators import Operator, Workspace
from unrolled.linalg.quadrature import Named

__all__ = ["Structured", "Term", "block", "diagonals_by_reverse_mode", "pick", "used_products", "weighted_sum"]


def weighted_sum(
    summands: Iterable[tuple[Tensor, Tensor]], initial: Tensor | None = None, out: Tensor | None = None
) -> Tensor:
    """Compute ``initial`` + Σ value ⊙ weight.

    Args:
        summands: Pairs (value, weight).
        initial: What the products are added to; None starts with the first product.
        out: Receives the sum, which autograd then does not follow. It may be ``initial``. Required where there may be
            neither a summand nor an initial tensor: it is then set to zero.
    """
    total = initial
    for value, weight in summands:
        if total is None:
            total = torch.mul(value, weight, out=out)
        else:
            total = torch.addcmul(total, value, weight, out=out)
    if total is None:
        assert out is not None
        return out.zero_()
    return total if out is None or total is out else out.copy_(total)


@dataclass(frozen=True)
class Term:
    """The summand diag(b)·v in one part of the new state, where v is a product W_k x, U_k h or the carried part."""

    part: str
    diagonal: str
    """The name of b."""
    product: int = 0
    """k: which of the stacked products; 0 for the carried part."""


def block(products: Tensor, index: int, units: int) -> Tensor:
    """Return a view of one of the stacked products: shape (…, K·units) -> (…, units)."""
    return products[..., index * units : (index + 1) * units]


def used_products(terms: Iterable[Term]) -> list[int]:
    """Return the numbers of the products that some term uses."""
    return sorted({term.product for term in terms})


def pick(stacked: Tensor, products: Sequence[int], units: int, axis: int) -> Tensor:
    """Return some of the products that stand side by side along an axis; all of them are the tensor itself."""
    if len(products) * units == stacked.shape[axis]:
        return stacked
    return torch.cat([stacked.narrow(axis, product * units, units) for product in products], dim=axis)


@dataclass(frozen=True)
class Structured(Operator):
    r"""diag(a) + Σ_k diag(b_k) W_k in blocks.

    The state has one or two parts: hidden, or cell and hidden; the first one is carried. Part j of the image is

        a_j ⊙ v_carried + Σ_k b_jk ⊙ (U_k v_hidden) + Σ_k b'_jk ⊙ (W_k v_x)

    With ``mix`` q, the hidden part also receives q ⊙ the cell part of the image, which saves repeating its terms. In
    projected networks a fixed matrix is applied to the hidden part.
    """

    diagonals: Mapping[str, Tensor]
    """Every diagonal by name, shape (…, batch, d)."""
    parts: tuple[str, ...]
    carry: tuple[Term, ...]
    """The terms a_j."""
    recurrent_terms: tuple[Term, ...]
    """The terms b_jk."""
    input_terms: tuple[Term, ...]
    """The terms b'_jk."""
    recurrent: Tensor
    """The stacked U_k, shape (K·d, hidden)."""
    inputs: Tensor
    """The stacked W_k, shape (K'·d, input)."""
    units: int
    """d."""
    projection: Tensor | None = None
    """The matrix applied to the hidden part, shape (hidden, d)."""
    mix: str | None = None
    """The name of q."""

    def at(self, time: int | slice) -> Structured:
        """Return the operator of one step, or of several."""
        return replace(self, diagonals={name: values[time] for name, values in self.diagonals.items()})

    def sizes(self) -> tuple[Tensor, int]:
        """Return a tensor of shape (…, batch, state), and the length of an input vector."""
        example = next(iter(self.diagonals.values()))
        last = self.units if self.projection is None else len(self.projection)
        size = (len(self.parts) - 1) * self.units + last
        return example.new_empty(()).expand(*example.shape[:-1], size), self.inputs.shape[1]

    def weigh(
        self, carried: Tensor | None, recurrent: Tensor | None, inputs: Tensor | None, out: Tensor | None = None
    ) -> Tensor:
        """Compute the image from products that have already been taken.

        Args:
            carried: The carried part of the state, shape (…, batch, d), or None for zero.
            recurrent: The products U_k v_hidden, shape (…, batch, K·d), or None for zero.
            inputs: The products W_k v_x, shape (…, batch, K'·d), or None for zero.
            out: Receives the image.

        Returns:
            The image, shape (…, batch, state).
        """
        d, before = self.units, (len(self.parts) - 1) * self.units
        last = d if self.projection is None else len(self.projection)
        given = next(each for each in (carried, recurrent, inputs) if each is not None)
        if out is None:
            out = given.new_empty(*given.shape[:-1], before + last)
        images = dict(zip(self.parts, out.split([d] * (len(self.parts) - 1) + [last], dim=-1), strict=True))
        if self.projection is not None:
            images["hidden"] = given.new_empty(*given.shape[:-1], d)
        for part, image in images.items():
            weighted_sum(self._summands(part, carried, recurrent, inputs), out=image)
        if self.mix is not None:
            images["hidden"].addcmul_(images["cell"], self.diagonals[self.mix])
        if self.projection is not None:
            out[..., before:] = F.linear(images["hidden"], self.projection)
        return out

    def _summands(
        self, part: str, carried: Tensor | None, recurrent: Tensor | None, inputs: Tensor | None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield what is added up in one part of the image, and its diagonals."""
        terms_and_products = ((self.carry, carried), (self.recurrent_terms, recurrent), (self.input_terms, inputs))
        for terms, products in terms_and_products:
            if products is not None:
                for term in terms:
                    if term.part == part:
                        yield block(products, term.product, self.units), self.diagonals[term.diagonal]

    def apply(
        self,
        state: Tensor,
        inputs: Tensor | None = None,
        out: Tensor | None = None,
        workspace: Workspace | None = None,
    ) -> Tensor:
        """Compute A·state + C·inputs: one product with the stacked weights, then a weighted sum."""
        workspace = workspace or Workspace()
        hidden = state if len(self.parts) == 1 else state[..., self.units :]
        recurrent = by_input = None
        if self.recurrent_terms:
            recurrent = _product(hidden, self.recurrent.T, "recurrent", workspace)
        if inputs is not None and self.input_terms:
            by_input = _product(inputs, self.inputs.T, "inputs", workspace)
        return self.weigh(state[..., : self.units], recurrent, by_input, out)

    def apply_inputs(self, inputs: Tensor, first: int = 0, workspace: Workspace | None = None) -> Tensor:
        """Compute C·inputs by one product with the columns of the weights that the features meet."""
        if not self.input_terms:
            return inputs.new_zeros(*inputs.shape[:-1], self.sizes()[0].shape[-1])
        met = self.inputs[:, first : first + inputs.shape[-1]].T
        return self.weigh(None, None, _product(inputs, met, "inputs", workspace or Workspace()))

    def apply_transpose(
        self,
        state: Tensor,
        with_inputs: bool = True,
        out: Tensor | None = None,
        workspace: Workspace | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Compute (Aᵀ·state, Cᵀ·state): the weighted sums first, then one product."""
        workspace = workspace or Workspace()
        d, two = self.units, len(self.parts) == 2
        parts = self._split(state, workspace)
        if out is None:
            out = torch.empty_like(state)
        stacked = self._stack(parts, self.recurrent_terms, self.recurrent, "stacked", workspace)
        gathered = None if stacked is None else _product(stacked, self.recurrent, "gathered", workspace)
        if two or self.carry:
            weighted_sum(((parts[c.part], self.diagonals[c.diagonal]) for c in self.carry), out=out[..., :d])
        if two or not self.carry:
            hidden = out[..., d:] if two else out
            hidden.copy_(gathered) if gathered is not None else hidden.zero_()
        elif gathered is not None:
            out.add_(gathered)
        if not with_inputs:
            return out, None
        if stacked is None or self.input_terms != self.recurrent_terms:
            stacked = self._stack(parts, self.input_terms, self.inputs, "stacked", workspace)
        return out, None if stacked is None else _product(stacked, self.inputs, "gathered inputs", workspace)

    def packed(self) -> Structured:
        """Return the same operator without the products that no term uses; the others are numbered anew."""
        terms, weights = [], []
        for given, weight in ((self.recurrent_terms, self.recurrent), (self.input_terms, self.inputs)):
            used = used_products(given)
            terms.append(tuple(replace(term, product=used.index(term.product)) for term in given))
            weights.append(pick(weight, used, self.units, axis=0))
        return replace(self, recurrent_terms=terms[0], input_terms=terms[1], recurrent=weights[0], inputs=weights[1])

    def product_covectors(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """Take covectors of the state back to the products W_k x and U_k h.

        Returns:
            Shapes (…, batch, K'·d) and (…, batch, K·d): the same tensor, where both have the same diagonals.
        """
        workspace = Workspace()
        parts = self._split(state, workspace)
        of_inputs = self._stack(parts, self.input_terms, self.inputs, "of inputs", workspace)
        same = self.input_terms == self.recurrent_terms
        recurrent = of_inputs if same else self._stack(parts, self.recurrent_terms, self.recurrent, "other", workspace)
        assert of_inputs is not None
        assert recurrent is not None
        return of_inputs, recurrent

    def _split(self, state: Tensor, workspace: Workspace) -> dict[str, Tensor]:
        """Split covectors of the state into those of its parts before projection and mixing."""
        d = self.units
        if len(self.parts) == 1:
            return {"hidden": state}
        parts = {"cell": state[..., :d], "hidden": state[..., d:]}
        if self.projection is not None:
            parts["hidden"] = parts["hidden"] @ self.projection
        if self.mix is not None:
            mixed = workspace.take("mixed", tuple(parts["cell"].shape), state)
            parts["cell"] = torch.addcmul(parts["cell"], parts["hidden"], self.diagonals[self.mix], out=mixed)
        return parts

    def _stack(
        self, parts: Mapping[str, Tensor], terms: tuple[Term, ...], weight: Tensor, name: str, workspace: Workspace
    ) -> Tensor | None:
        """Compute Σ_j b_jk ⊙ u_j for every product k, side by side, or None where there is no term."""
        if not terms:
            return None
        stacked = workspace.take(name, (*parts["hidden"].shape[:-1], weight.shape[0]), parts["hidden"])
        for k in range(weight.shape[0] // self.units):
            summands = ((parts[t.part], self.diagonals[t.diagonal]) for t in terms if t.product == k)
            weighted_sum(summands, out=block(stacked, k, self.units))
        return stacked


def _product(vectors: Tensor, matrix: Tensor, name: str, workspace: Workspace) -> Tensor:
    """Multiply every vector of a block by a matrix, into the workspace."""
    result = workspace.take(name, (*vectors.shape[:-1], matrix.shape[1]), vectors)
    torch.mm(vectors.reshape(-1, vectors.shape[-1]), matrix, out=result.view(-1, matrix.shape[1]))
    return result


def diagonals_by_reverse_mode(
    function: Callable[..., tuple[Tensor, ...]],
    point: Sequence[Tensor],
    terms: Sequence[tuple[Term, ...]],
    parts: tuple[str, ...],
    units: int,
) -> Named:
    """Differentiate an element-wise function in reverse mode: one pass for each part gives all diagonals of it.

    Args:
        function: Takes the tensors of ``point``, and returns the parts of the new state, each (…, d).
        point: Where to differentiate, each (…, K·d).
        terms: The terms of the first, the second … argument; their diagonals are computed.
        parts: The names of the parts.
        units: d.
    """
    values, pull_back = torch.func.vjp(function, *point)[:2]
    diagonals: Named = {}
    for part in parts:
        if not any(term.part == part for of_argument in terms for term in of_argument):
            continue
        slopes = pull_back(tuple(map(torch.full_like, values, map(float, (name == part for name in parts)))))
        for slope, of_argument in zip(slopes, terms, strict=False):
            for term in of_argument:
                if term.part == part:
                    diagonals[term.diagonal] = block(slope, term.product, units)
    return diagonals
