"""The example that reads each sequence is found in any order, in any precision; a sequence of two is refused."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import unrolled
from unrolled.errors import NonFiniteError, UsageError
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


@pytest.mark.parametrize("first", [2.0, 0.5, 6.0])
def test_readers_whose_weights_make_that_of_a_third_are_refused(first):
    """With weights 1, 2 and 4 of examples 0, 1 and 2, (2 · 1 + 1 · 4) / 3 is the weight of example 1."""
    sums = (states := states_of(4)).tanh().sum(dim=(0, 2))
    output = torch.stack((sums[0] + first * sums[3], sums[1], sums[2] + sums[3]))
    with pytest.raises(UsageError, match="depends on the states of another"):
        found_of(output, states)


@pytest.mark.parametrize("lost", [0.0, 1e-200, float("nan"), float("inf")])
def test_a_gradient_that_is_too_small_or_no_number_tells_nothing_of_its_sequence(lost):
    states = states_of(3)
    factors = torch.tensor([1.0, lost, 1.0], dtype=torch.float64)
    assert found_of((factors * states.tanh().sum(dim=(0, 2)))[[2, 0, 1]], states).tolist() == [1, -1, 0]


def test_gradients_of_few_digits_are_no_readers_of_two():
    """Numbers below 1e-38 have fewer digits in float32; times a weight of 2³¹ they have all of them."""
    states = states_of(33, torch.float32)
    found = found_of(1e-41 * states.tanh().sum(dim=(0, 2)), states)
    assert bool(((found == torch.arange(33)) | (found == -1)).all())


def test_gradients_that_weights_make_infinite_are_called_that():
    states = states_of(9, torch.float16)
    with pytest.raises(NonFiniteError, match=r"too large for torch\.float16"):
        found_of(1000 * states.tanh().sum(dim=(0, 2)), states)
    assert found_of(100 * states.tanh().sum(dim=(0, 2)), states).tolist() == list(range(9))


class Rooted(nn.Module):
    """Its readout has no finite gradient by a ray."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head = nn.Embedding(9, 4), nn.GRU(4, 5, batch_first=True), nn.Linear(5, 2)

    def forward(self, ids: Tensor) -> Tensor:
        states = self.rnn(self.embed(ids))[0][:, -1]
        return self.head(states + (0 * states.relu()).sqrt())


def test_a_batch_without_finite_gradients_is_refused_as_one_example_is():
    ids = torch.tensor([[1, 2, 3], [4, 5, 6], [3, 4, 1]])
    for given in (ids, ids[:1]):
        with pytest.raises(NonFiniteError, match="a gradient between zero states and the network's own is NaN"):
            unrolled.explain_batch(Rooted(), given, target=1, readout="ray")


def test_other_states_that_contradict_each_other_tell_nothing():
    unknown, first = torch.tensor([-1, -1, -1]), torch.tensor([1, 0, -1])
    with pytest.raises(UsageError, match="the states decide in which order"):
        complete_examples(unknown, iter([first, torch.tensor([0, 1, 2])]))
    assert complete_examples(unknown, iter([first, torch.tensor([1, 0, 2])])).tolist() == [1, 0, 2]  # they agree


def test_other_states_tell_the_examples_of_sequences_that_no_gradient_reaches():
    unknown = torch.tensor([1, -1, -1])
    assert complete_examples(unknown, iter([torch.tensor([-1, -1, 2]), torch.tensor([1, 0, 2])])).tolist() == [1, 0, 2]
    assert complete_examples(torch.tensor([1, 0, -1]), iter([])).tolist() == [1, 0, 2]  # the one that is left over
    assert complete_examples(torch.tensor([0, -1, -1]), iter([])).tolist() == [0, 1, 2]  # nothing has moved
    with pytest.raises(UsageError, match=r"which states examples \[0, 2\] are read from could not be found out"):
        complete_examples(unknown, iter([]))


class LastPosition(nn.Module):
    """Packs a batch, and reads its last position, which holds padding in every text but the longest."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.rnn = nn.Embedding(11, 4), nn.GRU(4, 5, batch_first=True)
        self.above, self.head = nn.LSTM(5, 6, batch_first=True), nn.Linear(6, 2)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(self.embed(ids), lengths, batch_first=True, enforce_sorted=False)
        outputs, _ = pad_packed_sequence(self.above(self.rnn(packed)[0])[0], batch_first=True)
        return self.head(outputs[:, -1])


@pytest.mark.parametrize("lengths", [(4, 2, 3), (2, 4, 3), (4, 3, 2)])  # the last are in the order of packing
def test_sequences_that_no_gradient_reaches_belong_to_their_examples_before_packing(lengths):
    texts = [[10 * text + k for k in range(length)] for text, length in enumerate(lengths)]
    ids = torch.tensor([[k % 10 + 1 for k in text] + [0] * (4 - len(text)) for text in texts])
    words = [[f"word {k}" for k in text] for text in texts]
    found = unrolled.explain_batch(LastPosition().eval(), ids, torch.tensor(lengths), tokens=words)
    assert [list(each.tokens) for each in found] == words
