r"""The contract of a recurrent cell, for the cells of this package and for your own.

.. code-block:: python

    from unrolled.testing import check_cell

    def test_my_cell():
        check_cell(lambda: MyCell(3, 6))

Each clause is a function of a cell in float64. It raises an AssertionError that names what does not hold.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from unrolled.cells.base import Cell
from unrolled.cells.recurrent import Recurrent
from unrolled.decomposition.decomposition import decompose
from unrolled.errors import UsageError
from unrolled.expansions.base import TOLERANCE

__all__ = ["CLAUSES", "check_cell"]

_TIME, _BATCH = 5, 3
_LENGTHS = (5, 2, 4)
"""Of the sequences that a cell is run on."""
_ROUNDING = 1e-9
"""How far two computations in float64 may be from each other, relative to the larger value."""


def check_cell(cell: Cell | Callable[[], Cell], seed: int = 0) -> None:
    """Check every clause of the contract.

    Args:
        cell: The cell, which is not changed, or a function that builds one.
        seed: Seed of the inputs and states; the global random state is not changed.

    Raises:
        AssertionError: If a clause does not hold; the message names the cell and the clause.
        UsageError: If it is no cell, nor a function that builds one, or if the cell has no name.

    Example:
        >>> from unrolled.cells.lstm import LSTM
        >>> from unrolled.testing import check_cell
        >>> check_cell(LSTM(3, 5))
        >>> class Forgetful(LSTM):
        ...     name = "forgetful"
        ...     def step(self, inputs, state):
        ...         return super().step(inputs, 0.9 * state)
        >>> check_cell(Forgetful(3, 5))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        AssertionError: forgetful: step equals unroll, at step 1: ... apart, at most ...
    """
    made = cell() if callable(cell) and not isinstance(cell, nn.Module) else cell
    kind = type(made).__name__
    if not isinstance(made, Cell):
        raise UsageError(f"{kind} does not derive from unrolled.cells.base.Cell; expected one cell, such as LSTM(3, 5)")
    if not getattr(made, "name", None):
        raise UsageError(f"{kind} has no name: set one in its class, such as name = {kind.lower()!r}")
    for clause in CLAUSES.values():
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            clause(copy.deepcopy(made).double())


def _require(holds: bool, cell: Cell, clause: str) -> None:
    if not holds:
        raise AssertionError(f"{cell.name}: {clause}")


def _agree(cell: Cell, found: Tensor, expected: Tensor, clause: str, bound: float = _ROUNDING) -> None:
    shapes = f"shapes {tuple(found.shape)} and {tuple(expected.shape)}"
    _require(found.shape == expected.shape, cell, f"{clause}: {shapes}")
    if found.numel():
        found, expected = found.detach(), expected.detach()
        apart = float((found - expected).abs().max())
        scale = max(1.0, float(expected.abs().max()))
        # not ">": NaN must fail
        _require(apart <= bound * scale, cell, f"{clause}: {apart:.3g} apart, at most {bound * scale:.3g}")


def _sample(cell: Cell) -> tuple[Tensor, Tensor]:
    """Draw inputs, shape (time, batch, input), and a state near the initial state of the cell."""
    inputs = torch.randn(_TIME, _BATCH, cell.input_size, dtype=torch.float64)
    start = cell.initial_state(_BATCH).to(inputs.dtype)  # a cell without parameters starts in torch's default type
    return inputs, (start + 0.3 * torch.randn_like(start)).detach()


def _both_ways(cell: Cell) -> Recurrent:
    return Recurrent(lambda *_: copy.deepcopy(cell), cell.input_size, cell.hidden_size, bidirectional=True)


def sizes_are_what_they_say(cell: Cell) -> None:
    """The state, the initial state and the hidden output have the lengths that the cell declares."""
    x, s = _sample(cell)
    start = cell.initial_state(_BATCH)
    _require(bool(cell.name), cell, "a cell has a name")
    _require(start.shape == (_BATCH, cell.state_size), cell, f"initial_state has shape {tuple(start.shape)}")
    _require(cell.step(x[0], s).shape == s.shape, cell, "a step keeps the shape of the state")
    _agree(
        cell,
        cell.hidden(s),
        s[:, cell.state_size - cell.output_size :],
        "hidden output is the state's last part",
    )


def step_equals_unroll(cell: Cell) -> None:
    """``unroll`` takes the same steps as ``step``, also from the cell's own initial state."""
    x, s = _sample(cell)
    for start, states in ((s, cell.unroll(x, s)), (cell.initial_state(_BATCH), cell.unroll(x))):
        _agree(cell, states[0], start, "unroll begins with the initial state")
        current = start
        for t in range(_TIME):
            current = cell.step(x[t], current)
            _agree(cell, states[t + 1], current, f"step equals unroll, at step {t + 1}")


def batched_equals_unbatched(cell: Cell) -> None:
    """The examples of a batch do not affect each other, and a step takes any leading axes."""
    x, s = _sample(cell)
    states = cell.unroll(x, s)
    for b in range(_BATCH):
        alone = cell.unroll(x[:, b : b + 1], s[b : b + 1])
        _agree(cell, states[:, b : b + 1], alone, f"batched equals unbatched, example {b}")
    _agree(cell, cell.step(x[0, 0], s[0]), states[1, 0], "a step takes one example without a batch axis")
    many = cell.step(x, s.expand(_TIME, *s.shape))
    _agree(cell, many[1], cell.step(x[1], s), "a step takes several leading axes")


def padded_equals_packed(cell: Cell) -> None:
    """Padding is not read: padded, packed and single sequences give the same results, in both directions."""
    x, _ = _sample(cell)
    network = _both_ways(cell)
    dirty = x.clone()
    for b, n in enumerate(_LENGTHS):
        dirty[n:, b] = torch.nan
    padded, final = network(dirty, lengths=_LENGTHS)
    packed, packed_final = network(pack_padded_sequence(dirty, torch.tensor(_LENGTHS), enforce_sorted=False))
    _agree(cell, pad_packed_sequence(packed)[0], padded, "padded equals packed")
    parts = final if isinstance(final, tuple) else (final,)
    others = packed_final if isinstance(packed_final, tuple) else (packed_final,)
    for part, other in zip(parts, others, strict=True):
        _agree(cell, other, part, "padded equals packed, final states")
    for b, n in enumerate(_LENGTHS):
        alone, last = network(x[:n, b])
        _agree(cell, padded[:n, b], alone, f"padded equals alone, example {b}")
        _require(not padded[n:, b].any(), cell, "outputs beyond a sequence's end are zero")
        for part, other in zip(parts, last if isinstance(last, tuple) else (last,), strict=True):
            _agree(cell, part[:, b], other, f"a final state is the one at the sequence's end, example {b}")


def gradient_reaches_every_parameter(cell: Cell) -> None:
    """Every parameter has a finite gradient that is not zero."""
    x, s = _sample(cell)
    if not list(cell.parameters()):
        return
    for parameter in cell.parameters():
        parameter.requires_grad_()
        parameter.grad = None
    states = cell.unroll(x, s)
    (states[1:] * torch.randn_like(states[1:])).sum().backward()
    for name, parameter in cell.named_parameters():
        _require(parameter.grad is not None, cell, f"no gradient reaches {name}")
        if parameter.grad is not None:
            _require(bool(torch.isfinite(parameter.grad).all()), cell, f"the gradient of {name} is not finite")
            _require(bool(parameter.grad.any()), cell, f"the gradient of {name} is zero")


def saves_and_loads(cell: Cell) -> None:
    """The state dict is complete: another cell that loads it gives the same states."""
    x, s = _sample(cell)
    expected = cell.unroll(x, s).detach()
    written = save({name: tensor.contiguous() for name, tensor in cell.state_dict().items()})
    other = copy.deepcopy(cell)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(torch.randn_like(parameter))
    other.load_state_dict(load(written))
    _agree(cell, other.unroll(x, s), expected, "saved and loaded, it is the same cell", 0.0)


def jacobian_equals_autograd(cell: Cell) -> None:
    """The operator of a step, and its transpose, equal the Jacobian that autograd gives."""
    x, s = _sample(cell)
    with torch.no_grad():
        run = cell.run(x, s)
        ray = run.ray(x)
        for alpha, where in ((0.0, "at zero"), (1.0, "where the network was")):
            operator = ray.at(alpha).at(1)
            before = alpha * run.states[1]
            units = torch.eye(cell.state_size, dtype=x.dtype)[:, None].expand(-1, _BATCH, -1).contiguous()
            by_state = operator.apply(units)
            transposed, by_input = operator.apply_transpose(units)
            for b in range(_BATCH):
                inputs, states = torch.autograd.functional.jacobian(cell.step, (x[1, b], before[b]))
                _agree(cell, by_state[:, b].T, states, f"the jacobian {where} equals autograd's")
                _agree(cell, transposed[:, b], states, f"the transposed jacobian {where} equals autograd's")
                if by_input is not None:
                    _agree(cell, by_input[:, b], inputs, f"the input's jacobian {where} equals autograd's")


def exact_expansions_sum(cell: Cell) -> None:
    """The n-grams of operating, secant and path sum to the state; those of zero only if the cell is affine in it."""
    x, s = _sample(cell)
    with torch.no_grad():
        # the secant of a step with an operation that has no rule is a path
        for name, bound in (("operating", _ROUNDING), ("secant", 10 * TOLERANCE), ("path", 10 * TOLERANCE)):
            found = decompose(cell, x, state=s, expansion=name, tolerance=TOLERANCE)
            total = found.vectors().sum(dim=2) + found.initial()
            _agree(cell, total, found.states(), f"the n-grams of {name} sum to the state", bound)
        wrong = float(decompose(cell, x, state=s, expansion="zero").residual().max())
        if _is_affine(cell, x, s):
            _require(wrong < _ROUNDING, cell, f"zero is exact for an affine cell: it is {wrong:.3g} off")
        else:
            _require(wrong > _ROUNDING, cell, "zero is not exact for a non-linear cell, but its n-grams sum")


def _is_affine(cell: Cell, x: Tensor, s: Tensor) -> bool:
    """Return whether f(x, ·) maps the mean of two states to the mean of their images, along a run."""
    states = cell.unroll(x, s)[:-1]
    zero = torch.zeros_like(states)
    middle = cell.step(x, 0.5 * states)
    return bool(torch.allclose(middle, 0.5 * (cell.step(x, states) + cell.step(x, zero)), rtol=0, atol=1e-12))


def fast_equals_naive(cell: Cell) -> None:
    """A cell's own ``unroll`` gives the values, gradients and second gradients of the plain loop."""
    if type(cell).unroll is Cell.unroll:
        return
    x, s = (tensor.requires_grad_() for tensor in _sample(cell))
    named = {"inputs": x, "state": s, **dict(cell.named_parameters())}
    leaves = [leaf.requires_grad_() for leaf in named.values()]
    weight = torch.randn(_TIME + 1, _BATCH, cell.state_size, dtype=x.dtype)

    def of_both_orders(states: Tensor) -> tuple[Tensor, ...]:
        first = torch.autograd.grad((states * weight).sum(), leaves, create_graph=True)
        squares = torch.stack([(gradient * gradient).sum() for gradient in first]).sum()
        return states, *first, *torch.autograd.grad(squares, leaves, materialize_grads=True)

    labels = [
        "values",
        *(f"gradient of {name}" for name in named),
        *(f"second gradient of {name}" for name in named),
    ]
    both = of_both_orders(cell.unroll(x, s)), of_both_orders(Cell.unroll(cell, x, s))
    for label, fast, naive in zip(labels, *both, strict=True):
        _agree(cell, fast, naive, f"fast equals naive, {label}")
    try:
        # gradcheck moves the parameters in place, so the kernel sees the moved values
        torch.autograd.gradcheck(lambda *moved: cell.unroll(*moved[:2]), leaves, fast_mode=True)
    except RuntimeError as error:
        raise AssertionError(f"{cell.name}: the kernel's gradient fails gradcheck: {error}") from error


CLAUSES: dict[str, Callable[[Cell], None]] = {
    clause.__name__: clause
    for clause in (
        sizes_are_what_they_say,
        step_equals_unroll,
        batched_equals_unbatched,
        padded_equals_packed,
        gradient_reaches_every_parameter,
        saves_and_loads,
        jacobian_equals_autograd,
        exact_expansions_sum,
        fast_equals_naive,
    )
}
"""Every clause by name."""
