"""The five-parameter model of the Dyck language: what it counts, what it computes, and that it learns."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import ShapeError, UsageError
from unrolled.models.brackets import (
    ClosingBracket,
    accuracy_by_distance,
    fixed_brackets,
    learned_brackets,
    worst_case_accuracy,
)

# indices: ( is 0, [ is 1, ) is 2, ] is 3
PREFIXES = {(0,): 0, (1,): 1, (0, 1): 1, (1, 0, 2): 1, (0, 1, 3): 0, (1, 0, 0, 2): 0, (1, 0, 2, 0, 2): 1}


def trained(model):
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def ready_made(depth=4):
    """Weights set by hand: a hard gate, and a threshold between the two openings' scalars."""
    model = ClosingBracket(fixed_brackets(2), depth)
    with torch.no_grad():
        model.stack.cell(0, 0).weight.fill_(40.0)
        model.head.weight.copy_(torch.tensor([[0.0], [20.0]]))
        model.head.bias.copy_(torch.tensor([30.0, 0.0]))
    return model


def test_five_parameters():
    assert trained(ClosingBracket(fixed_brackets(2), 4)) == 5
    assert trained(ClosingBracket(fixed_brackets(2), 8)) == 5
    assert trained(ClosingBracket(fixed_brackets(3), 8)) == 1 + 3 + 3
    assert trained(ClosingBracket(learned_brackets(2, 2), 4)) == 4 * 2 + 2 + 2 * 2 + 2
    assert ClosingBracket(learned_brackets(2, 2), 4).stack.hidden_size == 8


def test_the_embedding_by_hand():
    assert fixed_brackets(3).weight[:, 0].tolist() == [1, 2, 3, -1, -2, -3]
    assert not fixed_brackets(3).weight.requires_grad


def test_with_a_hard_gate_it_closes_what_was_opened_last():
    model = ready_made()
    for prefix, closing in PREFIXES.items():
        probability = model(torch.tensor([prefix])).detach().softmax(-1)[0]
        assert float(probability[closing]) > 0.99
    soft = ready_made()
    with torch.no_grad():  # the control: a gate that is half open mixes what lies on the stack
        soft.stack.cell(0, 0).weight.zero_()
    assert any(soft(torch.tensor([p])).detach().softmax(-1)[0][c] < 0.8 for p, c in PREFIXES.items())


def test_padding_is_not_read():
    model = ready_made()
    words = list(PREFIXES)
    padded = nn.utils.rnn.pad_sequence([torch.tensor(word) for word in words], batch_first=True, padding_value=1)
    together = model(padded, [len(word) for word in words])
    for b, word in enumerate(words):
        torch.testing.assert_close(together[b], model(torch.tensor([word]))[0])


def test_after_every_prefix_it_says_what_it_says_after_that_prefix_alone():
    torch.manual_seed(0)
    model = ClosingBracket(fixed_brackets(2), 4)
    strings = torch.tensor([[1, 0, 2, 0, 2, 3], [0, 0, 1, 3, 2, 2]])
    everywhere = model.after_every(strings)
    assert everywhere.shape == (2, 6, 2)
    for t in range(6):
        torch.testing.assert_close(everywhere[:, t], model(strings[:, : t + 1]))


def logits_of(*probabilities):
    """Two kinds, the first with these probabilities."""
    first = torch.tensor(probabilities, dtype=torch.float64)
    return torch.stack((first, 1 - first), dim=-1).log()


def test_the_accuracy_is_taken_at_each_distance_and_the_worst_counts():
    logits = logits_of(0.9, 0.1, 0.9, 0.9, 0.9, 0.1)
    closing = torch.tensor([0, 1, 0, 1, 0, 0])
    distances = torch.tensor([1, 1, 1, 7, 7, 3])
    assert accuracy_by_distance(logits, closing, distances) == {1: 1.0, 3: 0.0, 7: 0.5}
    assert worst_case_accuracy(logits, closing, distances) == 0.0
    # the control: without the distance that is always wrong, the next worst; and the mean is another number
    kept = distances != 3
    assert worst_case_accuracy(logits[kept], closing[kept], distances[kept]) == 0.5


def test_right_is_more_than_four_fifths_not_merely_the_most():
    closing, distances = torch.tensor([0, 0]), torch.tensor([1, 2])
    assert accuracy_by_distance(logits_of(0.79, 0.81), closing, distances) == {1: 0.0, 2: 1.0}


@pytest.mark.parametrize(("hard", "worst"), [(40.0, 1.0), (1.0, 0.0)])
def test_a_gate_that_leaks_is_wrong_where_it_is_far(hard, worst):
    string = torch.tensor([[1] + [0, 2] * 40 + [3]])
    model = ready_made()
    with torch.no_grad():
        model.stack.cell(0, 0).weight.fill_(hard)
        logits = model.after_every(string)[0, [-2]]
    assert worst_case_accuracy(logits, torch.tensor([1]), torch.tensor([81])) == worst


@pytest.mark.parametrize(
    ("logits", "closing", "distances"),
    [
        (torch.zeros(3, 2), torch.zeros(3, dtype=torch.long), torch.zeros(2, dtype=torch.long)),
        (torch.zeros(3, 2), torch.zeros(2, dtype=torch.long), torch.zeros(2, dtype=torch.long)),
        (torch.zeros(3), torch.zeros(3, dtype=torch.long), torch.zeros(3, dtype=torch.long)),
        (torch.zeros(0, 2), torch.zeros(0, dtype=torch.long), torch.zeros(0, dtype=torch.long)),
    ],
)
def test_predictions_that_do_not_belong_together(logits, closing, distances):
    with pytest.raises(ShapeError, match="expected \\(n, k\\), \\(n,\\) and \\(n,\\) with n at least 1"):
        accuracy_by_distance(logits, closing, distances)


@pytest.mark.parametrize("make", [lambda: fixed_brackets(2), lambda: learned_brackets(2, 2)])
def test_gradient_descent_lowers_the_loss(make):
    torch.manual_seed(0)
    model = ClosingBracket(make(), 4)
    words, closing = list(PREFIXES), torch.tensor(list(PREFIXES.values()))
    padded = nn.utils.rnn.pad_sequence([torch.tensor(word) for word in words], batch_first=True)
    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.05)
    losses = []
    for _ in range(300):
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(padded, [len(word) for word in words]), closing)
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.5 * losses[0]


def test_it_is_linear_in_its_stack_so_every_bracket_is_accounted_for():
    found = unrolled.explain(ready_made().double(), torch.tensor([[1, 0, 2]]), target=1, expansion="zero")
    assert abs(found.ledger.remainder) < 1e-9
    # what decides is the bracket that was opened first and lies on top again
    assert found.contribution(0, 3) == pytest.approx(40.0, abs=1e-6)
    assert found.contribution(1, 3) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fixed_brackets(0), "kinds is 0; expected a positive integer"),
        (lambda: learned_brackets(2, 0), "size is 0; expected a positive integer"),
        (lambda: learned_brackets(1.5, 2), "kinds is 1.5"),
        (lambda: ClosingBracket(fixed_brackets(2), 0), "hidden_size is 0; expected a positive integer"),
    ],
)
def test_sizes_that_cannot_be(make, message):
    with pytest.raises(UsageError, match=message):
        make()
