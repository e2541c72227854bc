"""The example that reads each sequence is found in any order, in any precision; a sequence of two is refused."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from unrolled.errors import UsageError
from unrolled.explanation.example_of_sequence import complete_examples, example_of_sequence, weighed_sums


def found_of(output: Tensor, states: Tensor) -> Tensor:
    """Find the example of each sequence of states, shape (time, batch, state), that an output was made of."""
    passes = [
        torch.autograd.grad(each, [states], retain_graph=True, allow_unused=True)
        for each in weighed_sums(output, states.dtype)
    ]
    rows = [torch.arange(states.shape[1])]
    return example_of_sequence(passes, rows, states.shape[1], len(output), states.dtype)


def states_of(batch: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(3, batch, 2, generator=torch.Generator().manual_seed(0)).to(dtype).requires_grad_()


@pytest.mark.parametrize("batch", [1, 2, 9, 33, 300, 1025])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_examples_are_found_in_any_order_and_precision(batch, dtype):
    states, order = states_of(batch, dtype), torch.randperm(batch, generator=torch.Generator().manual_seed(1))
    output = states.tanh().sum(dim=(0, 2))[order]
    assert torch.equal(found_of(output, states), order.argsort())


def test_an_example_may_read_several_sequences_or_none():
    states = states_of(4)
    sums = states.tanh().sum(dim=(0, 2))
    output = torch.stack((sums[3], 0 * sums[2], sums[0] - 2 * sums[2]))
    assert found_of(output, states).tolist() == [2, -1, 2, 0]


@pytest.mark.parametrize("share", [1e-6, -1.0, 1.0])
@pytest.mark.parametrize("reader", [0, 2])
def test_a_sequence_that_two_examples_read_is_refused(share, reader):
    states = states_of(3)
    sums = states.tanh().sum(dim=(0, 2))
    other = torch.zeros(3, dtype=torch.float64)
    other[reader] = share
    with pytest.raises(UsageError, match="depends on the states of another"):
        found_of(sums + other * sums[1], states)
    assert found_of(sums + 1e-12 * other * sums[1], states).tolist() == [0, 1, 2]  # rounding is not a share


def test_other_states_tell_the_examples_of_sequences_that_no_gradient_reaches():
    unknown = torch.tensor([1, -1, -1])
    assert complete_examples(unknown, iter([torch.tensor([-1, -1, 2]), torch.tensor([0, 0, 0])])).tolist() == [1, 0, 2]
    assert complete_examples(torch.tensor([1, 0, -1]), iter([])).tolist() == [1, 0, 2]  # the one that is left over
    assert complete_examples(torch.tensor([0, -1, -1]), iter([])).tolist() == [0, 1, 2]  # nothing has moved
    with pytest.raises(UsageError, match=r"which states examples \[0, 2\] are read from could not be found out"):
        complete_examples(unknown, iter([]))
