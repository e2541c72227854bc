r"""Decompose the states of a recurrent network into sums of n-gram terms.

.. math:: h_t = \sum_{i \le t} v_{i:t} + A_t … A_1 s_0, \qquad v_{i:t} = A_t … A_{i+1} g_i
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from unrolled.cells.base import Cell
from unrolled.cells.batch_layout import InitialState, Lengths
from unrolled.cells.recurrent import Recurrent
from unrolled.decomposition.arguments import (
    checked_order,
    checked_tolerance,
    refuse_devices_without_float64,
    refuse_meta,
    refuse_transformed,
)
from unrolled.decomposition.deep_result import DeepBidirectionalDecomposition
from unrolled.decomposition.opening.network_cells import Network, cell_type
from unrolled.decomposition.opening.open_network import OpenedNetwork, network_outputs, open_network
from unrolled.decomposition.opening.recurrent_twin import scripted_network
from unrolled.decomposition.recurrences.affine_sequence import expand_directions
from unrolled.decomposition.recurrences.bidirectional_stack import expand_stack
from unrolled.decomposition.result import Decomposition
from unrolled.errors import ParityError, UnrolledError, UsageError
from unrolled.expansions import resolve
from unrolled.expansions.base import TOLERANCE, Expansion
from unrolled.linalg.freed_memory import keep_freed_memory
from unrolled.model_runs.determinism import TwoRuns
from unrolled.model_runs.eval_mode import run_pre_hooks
from unrolled.model_runs.model_state import ModelState
from unrolled.model_runs.nested_tensors import copy_tensors
from unrolled.model_runs.random_generators import RandomGenerators
from unrolled.model_runs.unchanged_weights import UnchangedWeights

__all__ = ["decompose"]


@torch.no_grad()
def decompose(
    rnn: Network | Cell,
    inputs: Tensor | PackedSequence,
    lengths: Lengths = None,
    state: InitialState = None,
    *,
    expansion: str | Expansion = "secant",
    max_order: int | None = None,
    tolerance: float = TOLERANCE,
) -> Decomposition:
    r"""Decompose every hidden state of a recurrent network into n-gram terms.

    .. math:: h_t = \sum_{i \le t} A_t … A_{i+1} g_i + A_t … A_1 s_0

    Stacks are decomposed down to their inputs. In a bidirectional stack a token reaches the positions on both sides:
    the term of a pair (end, start) sums all n-grams that enter at token start and are read at end. They are not told
    apart by their order here; :func:`unrolled.explain` tells them apart by their span. The network is run in evaluation
    mode without autocast, and is left as it was. Its forward pre-hooks are run, its other hooks are not. Half-precision
    networks are decomposed in float32.

    Args:
        rnn: A ``torch.nn.RNN``, ``GRU`` or ``LSTM``, a network of :func:`unrolled.cells.recurrent`, or one cell.
        inputs: Token vectors as the network takes them: padded, unbatched or packed.
        lengths: Lengths of the sequences in a padded batch, shape (batch,).
        state: The initial state as the network takes it; for a cell, flat, shape (batch, state).
        expansion: ``"secant"``, ``"path"``, ``"operating"``, ``"gates"``, ``"shares"``, ``"shares(p)"`` or a mean of
            some, such as ``"mean(operating,path)"``, for terms that sum to the state; ``"zero"`` or ``"activation"``
            for terms that depend on their own tokens alone, which do not sum to it; ``"taylor(K)"`` for neither.
        max_order: Length of the longest n-gram to keep separate; None for no limit. Longer ones are summed up in
            :meth:`Decomposition.older`.
        tolerance: Relative error over the sequence that ``path`` integrates to.

    Returns:
        The decomposition, whose terms are computed when they are asked for.

    Raises:
        ShapeError: If inputs, lengths or state do not fit the network.
        UnknownNameError: If there is no such expansion.
        NonFiniteError: If a weight or an input is NaN or infinite.
        ConvergenceError: If the quadrature of ``path`` does not reach the tolerance.
        UnsupportedOperationError: If the step of a cell takes numbers out of torch by which its state contributes.
        ParityError: If the recomputed states differ from the network's own by more than rounding.
        ChangedWeightsError: If another thread changes the weights meanwhile.
        RandomOperationError: If the network gives another output at each call; the message names what draws.
        UsageError: If ``rnn`` is no recurrent network, a type does not fit, or an argument is out of its range.

    Example:
        >>> import torch, unrolled
        >>> rnn, inputs = torch.nn.GRU(8, 16, batch_first=True), torch.randn(2, 5, 8)
        >>> found = unrolled.decompose(rnn, inputs)
        >>> found.vectors().shape  # (batch, end, start, hidden)
        torch.Size([2, 5, 5, 16])
        >>> bool(torch.allclose(found.vectors().sum(dim=2), rnn(inputs)[0], atol=1e-5))
        True
        >>> bool(found.residual().max() < 1e-5)
        True

    Source:
        Expansions at zero and of the activations: Sun and Lu 2020 and 2022 (arXiv:2205.02724). Gates: Murdoch and
        Szlam 2017 (arXiv:1702.02540). Path: ours, after Sundararajan et al. 2017 (arXiv:1703.01365). Secant and
        shares: ours.
    """
    chosen = resolve(expansion)
    refuse_transformed({"inputs": inputs, "state": state})  # inside of a transform, copies belong to it as well
    keep_freed_memory()
    order, per_sequence = checked_order(max_order), checked_tolerance(tolerance)
    rnn = scripted_network(rnn)
    if isinstance(rnn, Network):
        inputs, state = run_pre_hooks(rnn, inputs, state)
    # the terms are computed when they are asked for, and the caller may have written to its tensors by then
    opened = _opened(rnn, copy_tensors(inputs), lengths, copy_tensors(state))
    result = _expanded(opened, chosen, order, per_sequence)
    opened.weights.check()
    return result


def _expanded(opened: OpenedNetwork, chosen: Expansion, order: int | None, per_sequence: float) -> Decomposition:
    """Expand an open network by all members of an expansion."""
    if opened.coupled:
        if order is not None:
            raise UsageError(
                f"max_order is {order}, but a term of a deep bidirectional network is that of a token; leave it out, "
                "or use unrolled.explain(max_order=), which tells n-grams apart by span"
            )
        stacks = tuple(
            expand_stack(opened.directions, opened.layout, member, per_sequence) for member in chosen.members()
        )
        _refuse(stack.failure for stack in stacks)
        return DeepBidirectionalDecomposition(chosen, opened, (), None, stacks)
    sequences = expand_directions(opened.directions, chosen.members(), per_sequence)
    _refuse(sequence.failure for members in sequences for sequence in members)
    # no n-gram is longer than the sequences: a wider window would only hold zeros
    return Decomposition(chosen, opened, sequences, order if order is None else min(order, opened.layout.time))


def _opened(
    rnn: Network | Cell, inputs: Tensor | PackedSequence, lengths: Lengths, state: InitialState
) -> OpenedNetwork:
    """Open a network, and run it once more where it draws random numbers."""
    if not isinstance(rnn, Cell | Recurrent):
        cell_type(rnn)  # refuses any other module
    tensors = dict(rnn.named_parameters()) | {"inputs": inputs, "lengths": lengths, "state": state}
    refuse_transformed(dict(rnn.named_parameters()))
    refuse_meta(tensors)
    refuse_devices_without_float64(tensors)
    generators, weights = RandomGenerators(ModelState(rnn).generators), UnchangedWeights(rnn)
    weights.run_starts()
    runs = TwoRuns(rnn, (), partial(network_outputs, rnn, inputs, lengths, state), generators, seeded=None)
    try:
        opened = open_network(rnn, inputs, lengths, state)
        if runs.draws:
            runs.second(torch.cat(opened.outputs, dim=-1), _comparable)
    except ParityError:
        runs.second(_comparable(runs.run()), _comparable)  # two runs that differ are refused by name
        raise
    finally:
        generators.restore()
        weights.check()  # a change may be the cause of another error
    return opened


def _comparable(outputs: Tensor) -> Tensor:
    return outputs.float() if outputs.dtype in (torch.bfloat16, torch.float16) else outputs


def _refuse(failures: Iterable[UnrolledError | None]) -> None:
    for failure in failures:
        if failure is not None:
            raise failure
