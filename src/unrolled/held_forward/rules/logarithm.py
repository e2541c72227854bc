r"""What operations make of logarithms: a tensor u that carries a value z in proportion to :math:`e^u`.

A sum of logarithms is a product of values, and a product follows its own rule, gates among its factors. The logarithm
of a sum weighs its terms by their held parts of the sum:

.. math:: \log Σ_i e^{u_i}: \quad z = Σ_i e^{u_i - \log Σ_j e^{u_j}}\, \frac{z_i}{⌊z_i⌋}

and an exponential gives the value itself, :math:`e^u = ⌊e^u / z⌋\, z`, where ⌊·⌋ is held. No weight is above one.

A cumulative sum A of log a_t, with gates a_t, is what a recurrence h_t = a_t h_{t-1} + v_t needs in log space: h_t =
exp(A_t + log Σ_{i≤t} exp(log v_i - A_i)). Its gates are credited as the products a_t h_{t-1} of a loop would be: with
γ_t what a_t is at zero and p the share of the content, the state is credited with γ_t + p (a_t - γ_t) times the state
before, and the gate with (1 - p) ⌊h_{t-1}⌋ times a_t - γ_t.

Source:
    Ours. The recurrence in log space is that of Heinsen (2023, arXiv:2311.06281), as minGRU and minLSTM use it (Feng et
    al. 2024, arXiv:2410.01201).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from unrolled.held_forward.operations.operands import carries, operands
from unrolled.held_forward.rules.logarithm_moves import stand_in
from unrolled.held_forward.tensor_facts.gates import Gate
from unrolled.held_forward.tensor_facts.logarithms import Decays, Logarithm, LogarithmCall, beside, of_nothing

__all__: list[str] = []


@beside("log")
def log(call: LogarithmCall) -> Any:
    """Begin with what the logarithm is taken of."""
    result, (z,) = call.plain(), call.bind("input")
    return call.mode.logarithms.keep(result, Logarithm(z)) if carries(z) else result


@beside("log_sigmoid")
def logsigmoid(call: LogarithmCall) -> Any:
    """Begin with a gate."""
    result, (x,) = call.plain(), call.bind("input")
    if not carries(x):
        return result
    with call.mode:
        z = torch.sigmoid(x)
    return call.mode.logarithms.keep(result, Logarithm(call.exact(z, torch.sigmoid(x.detach()))))


@beside("softplus")
def softplus(call: LogarithmCall) -> Any:
    """Begin with the gate σ(-x), of which softplus x is the negative logarithm."""
    result = call.plain()
    x, beta, _ = call.bind("input", "beta", "threshold")
    if not carries(x) or beta not in (None, 1):
        return result
    with call.mode:
        z = torch.sigmoid(-x)
    return call.mode.logarithms.keep(result, Logarithm(call.exact(z, torch.sigmoid(-x.detach())), -1))


@beside("neg")
def neg(call: LogarithmCall) -> Any:
    """Turn the sign."""
    result, found = call.plain(), call.of(call.bind("input")[0])
    return result if found is None else call.mode.logarithms.keep(result, replace(found, sign=-found.sign))


@beside("mul", "div")
def scale(call: LogarithmCall) -> Any:
    """Turn the sign for -1; another power of a value is held."""
    result, (a, b) = call.plain(), call.bind("input", "other")
    found, other = (call.of(a), b) if call.of(a) is not None else (call.of(b), a)
    if found is None or carries(other) or call.of(other) is not None or call.kwargs.get("rounding_mode"):
        return result
    if isinstance(other, int | float) and other in (1, -1) and (call.name == "mul" or other is b):
        return call.mode.logarithms.keep(result, replace(found, sign=int(found.sign * other)))
    return call.mode.logarithms.keep(result, Logarithm(None))


@beside("complex")
def signed(call: LogarithmCall) -> Any:
    """Turn a value by what stands for its sign: the logarithm of -x is log x + iπ."""
    result, (size, angle) = call.plain(), call.bind("real", "imag")
    found = call.of(size)
    if found is None or found.value is None or carries(angle) or call.of(angle) is not None:
        return result
    turned = torch.polar(torch.ones_like(angle), found.sign * angle)
    with call.mode:
        value = found.value * turned
    return call.mode.logarithms.keep(result, Logarithm(value, found.sign))


@beside("add", "sub")
def add(call: LogarithmCall) -> Any:
    """Multiply or divide values; what is held, as any other exponential, leaves a value as it is."""
    result, (a, b, factor) = call.plain(), call.bind("input", "other", "alpha")
    first, second = call.of(a), call.of(b)
    if (first is None and second is None) or factor not in (None, 1):
        return result
    first, second = first or Logarithm(None), second or Logarithm(None)
    if call.name == "sub":
        second = replace(second, sign=-second.sign)
    if first.value is None and (second.value is not None or first.decays is None):
        found = _beside_held(second, first)
    elif first.value is None or second.value is None:
        found = _beside_held(first, second)
    elif first.sign != second.sign:
        found = first if first.sign > 0 else second  # a divisor is held
    else:
        with call.mode:
            product = first.value * second.value
        exact = first.value.detach() * second.value.detach()
        found = Logarithm(call.exact(product, exact), first.sign)
    if found.value is not None and found.value.shape != result.shape:
        with call.mode:
            found = replace(found, value=found.value.expand(result.shape))
    return call.mode.logarithms.keep(result, found)


def _beside_held(found: Logarithm, factor: Logarithm) -> Logarithm:
    """A value times a held factor; one that is divided by a product of gates remembers these."""
    if found.value is None:  # a product of gates, unless both are
        return found if factor.decays is None else Logarithm(None)
    return replace(found, decays=factor.decays if factor.decays and factor.sign != found.sign else found.decays)


@beside("cumsum")
def cumsum(call: LogarithmCall) -> Any:
    """A product of all values so far is held; of gates it is remembered."""
    result, found = call.plain(), call.of(call.bind("input")[0])
    if found is None:
        return result
    x, dim = call.bind("input", "dim")
    gates, decays = call.mode.gates, None
    if found.value is not None and gates.of(found.value) is not None:
        logs = found.sign * x.detach()
        gate = gates.of(_scaled(call, found.value, logs.exp()))
        decays = None if gate is None else Decays(gate.risen, gate.at_zero, logs, int(dim) % x.dim())
    return call.mode.logarithms.keep(result, Logarithm(None, found.sign, decays))


@beside(*"sum mean max min amax amin maximum minimum fmax fmin cummax cummin".split())
def held(call: LogarithmCall) -> Any:
    """Hold a product over an axis, and what a sum of exponentials is kept from overflowing by."""
    result = call.plain()
    given = operands((*call.args, *call.kwargs.values()))
    if any(call.of(each) for each in given) and all(call.of(each) or not carries(each) for each in given):
        call.mode.logarithms.keep(result if isinstance(result, Tensor) else result[0], Logarithm(None))
    return result


@beside("exp")
def exp(call: LogarithmCall) -> Any:
    """Give the value itself; an inverse is held, as a divisor is."""
    result, found = call.plain(), call.of(call.bind("input")[0])
    if found is None or found.value is None or found.sign < 0:
        return result
    return _scaled(call, found.value, call.bind("input")[0].detach().exp())


@beside("logsumexp")
def logsumexp(call: LogarithmCall) -> Any:
    """Sum values over axes."""
    result, found = call.plain(), _positive(call, call.bind("input")[0])
    if found is None:
        return result
    x, dim, keep = call.bind("input", "dim", "keepdim")
    whole = torch.logsumexp(x.detach(), dim, keepdim=True)
    parts = _part(call, found.value, x.detach(), whole)
    return _keep_whole(call, result, parts.sum(dim, keepdim=bool(keep)))


@beside("logaddexp")
def logaddexp(call: LogarithmCall) -> Any:
    """Add two values; a constant among them becomes a row."""
    result, given = call.plain(), call.bind("input", "other")
    sign = next((found.sign for each in given if (found := call.of(each)) is not None), 0)
    values = [stand_in(call, each, sign) for each in given]
    if sign < 1 or any(each is None for each in values):
        return result
    parts = [
        _part(call, z if carries(z) else call.mode.rows.constant(z), u.detach(), result.detach())
        for z, u in zip(values, given, strict=True)
    ]
    return _keep_whole(call, result, parts[0] + parts[1])


@beside("logcumsumexp")
def logcumsumexp(call: LogarithmCall) -> Any:
    """Sum all values so far: a recurrence, whose gates are shared with the state where they are known."""
    result, found = call.plain(), _positive(call, call.bind("input")[0])
    if found is None:
        return result
    x, dim = call.bind("input", "dim")
    dim, whole = int(dim) % x.dim(), result.detach()
    written = _part(call, found.value, x.detach(), whole)
    before = _later(whole, 1, dim, -torch.inf)
    kept, decays = _ratio(before, whole), found.decays
    if decays is not None and decays.dim == dim and decays.risen.shape == x.shape:
        p, at_zero = call.mode.share, decays.at_zero
        state = _ratio(before, whole + decays.logs)  # ⌊h_{t-1} / h_t⌋
        written = written + (1 - p) * state * decays.risen
        kept = state * (at_zero + p * decays.risen.detach())
    return _keep_whole(call, result, _recurrence(kept, written, dim))


def _recurrence(kept: Tensor, written: Tensor, dim: int) -> Tensor:
    """Compute z_t = k_t z_{t-1} + w_t in log₂ T steps: sums over 2, 4, 8, … terms."""
    reach = 1
    while reach < written.shape[dim]:
        written = written + kept * _later(written, reach, dim)
        kept = kept * _later(kept, reach, dim)
        reach *= 2
    return written


def _later(x: Tensor, steps: int, dim: int, fill: float = 0.0) -> Tensor:
    """Shift along an axis."""
    before = torch.full_like(x.detach().narrow(dim, 0, steps), fill)
    return torch.cat((before, x.narrow(dim, 0, x.shape[dim] - steps)), dim)


def _ratio(part: Tensor, whole: Tensor) -> Tensor:
    """Divide by the whole; nothing of nothing is nothing."""
    return torch.where(of_nothing(part), 0.0, (part - whole).exp())


def _part(call: LogarithmCall, z: Tensor, u: Tensor, whole: Tensor) -> Tensor:
    """The value of which u is the logarithm, in parts of the whole."""
    return _scaled(call, z, _ratio(u, whole))


def _keep_whole(call: LogarithmCall, u: Tensor, parts: Tensor) -> Tensor:
    """Remember the sum of all parts of a whole, which is one, or nothing where there is nothing."""
    one = (~of_nothing(u.detach())).to(u.dtype)
    whole: Tensor = call.mode.logarithms.keep(u, Logarithm(call.exact(parts, one)))
    return whole


def _positive(call: LogarithmCall, u: Tensor) -> Any:
    """Return what u is the logarithm of, unless that is held or its inverse is meant."""
    found = call.of(u)
    return found if found is not None and found.value is not None and found.sign > 0 else None


def _scaled(call: LogarithmCall, z: Tensor, size: Tensor) -> Tensor:
    """Multiply z by what is held, so that its size is the given one; where z is nothing, the size is a constant."""
    gate, value = call.mode.gates.of(z), z.detach()
    nothing = value.abs() < torch.finfo(value.dtype).tiny
    factor = torch.where(nothing, 0.0, size / value)
    rest = torch.where(nothing, size, 0.0)
    result = z * factor + _row(call, rest)
    if gate is not None:
        call.mode.gates.keep(result, Gate(gate.risen * factor, gate.at_zero * factor + rest, gate.of_gates))
    return result


def _row(call: LogarithmCall, rest: Tensor) -> Tensor:
    """A row of what a logarithm holds and its value does not show."""
    call.mode.rows.mark(rest, "held", call.name)
    row: Tensor = call.mode.rows.constant(rest)
    return row
