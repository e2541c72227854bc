"""A tensor that was made of value's memory carries that value, or is refused; it is never taken for a constant."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn
from torch.autograd import Variable

import unrolled
from unrolled.errors import UnsupportedOperationError

TOKENS = torch.tensor([[3, 7, 25, 1]])


class Chunks(nn.Module):
    """A GRU that reads two tokens at a time, and carries its state on in some way."""

    def __init__(self, carry, wrap=lambda x: x):
        super().__init__()
        torch.manual_seed(0)
        self.carry, self.wrap = carry, wrap
        self.embed, self.rnn, self.head = nn.Embedding(30, 4), nn.GRU(4, 5, batch_first=True), nn.Linear(5, 2)
        self.register_buffer("kept", torch.zeros(1, 1, 5))

    def forward(self, tokens):
        state, outputs = self.kept, []
        for chunk in self.wrap(self.embed(self.wrap(tokens))).split(2, 1):
            output, state = self.rnn(chunk, state)
            state = self.carry(self, state)
            outputs.append(output)
        whole = torch.zeros(1, 4, 5)
        whole.data[:, :] = torch.cat(outputs, 1).data
        return self.head(whole[:, -1])


def kept(model, state):
    model.kept.data.copy_(state)
    return model.kept


def other_memory(state):
    return torch.empty(0).set_(state.untyped_storage(), state.storage_offset(), state.size(), state.stride())


READ = {
    "detach": lambda _, state: state.detach(),
    "data": lambda _, state: state.data,
    "Variable": lambda _, state: Variable(state),
    "Variable of data": lambda _, state: Variable(state.data, requires_grad=False),
    "Parameter of data": lambda _, state: nn.Parameter(state.data, requires_grad=False),
    "new of data": lambda _, state: state.new(state.data),
    "a buffer": kept,
}
REFUSED = {
    "Parameter": lambda _, state: nn.Parameter(state),
    "new": lambda _, state: state.new(state),
    "a storage": lambda _, state: other_memory(state),
}
EXPECTED = unrolled.account(Chunks(lambda _, state: state), TOKENS, target=1)


@pytest.mark.parametrize("name", READ)
def test_a_state_that_is_carried_without_its_history_keeps_its_tokens(name):
    model = Chunks(READ[name])
    found = unrolled.account(model, TOKENS, target=1)
    assert found.exact
    torch.testing.assert_close(found.tokens, EXPECTED.tokens, rtol=1e-5, atol=1e-7)
    assert found.tokens[0, :2].abs().min() > 0  # the tokens of the first chunk
    explained = unrolled.explain(model, TOKENS, target=1)
    assert len(explained.token_scores) == 4


def test_a_model_whose_arguments_are_wrapped_in_variable_is_read_through_it():
    found = unrolled.account(Chunks(READ["Variable"], Variable), TOKENS, target=1)
    torch.testing.assert_close(found.tokens, EXPECTED.tokens, rtol=1e-5, atol=1e-7)
    explained = unrolled.explain(Chunks(READ["detach"], Variable), TOKENS, target=1)
    assert explained.notes == unrolled.explain(Chunks(READ["detach"]), TOKENS, target=1).notes


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_made_of_values_memory_out_of_sight_is_refused(name):
    for open_ in (unrolled.account, unrolled.explain):
        with pytest.raises(UnsupportedOperationError, match="made of the memory of another one"):
            open_(Chunks(REFUSED[name]), TOKENS, target=1)


def test_a_copy_of_other_numbers_is_a_constant():
    found = unrolled.account(Chunks(lambda _, state: torch.ones_like(state)), TOKENS, target=1)
    assert found.tokens[0, :2].abs().max() == 0


def test_variable_is_left_as_it_was_and_other_threads_do_not_notice():
    x = torch.ones(2, requires_grad=True) * 2
    models = [Chunks(READ["Variable"]) for _ in range(8)]  # before a thread restores the state of the generators
    with ThreadPoolExecutor(4) as pool:
        opened = [pool.submit(unrolled.account, model, TOKENS, target=1) for model in models]
        assert not any(Variable(x).requires_grad for _ in range(2000))
        for each in opened:
            torch.testing.assert_close(each.result().tokens, EXPECTED.tokens, rtol=1e-5, atol=1e-7)
    assert Variable(x) is not x
    assert "__new__" not in vars(Variable)
