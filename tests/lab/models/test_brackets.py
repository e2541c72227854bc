"""The five-parameter model of the Dyck language: its size, its outputs and its training."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UsageError
from unrolled.lab.metrics.worst_case import accuracy_by_distance
from unrolled.lab.models.brackets import NextBracketModel, dyck_rnn, fixed_brackets, learned_brackets

# indices: ( is 0, [ is 1, ) is 2, ] is 3
PREFIXES = {(0,): 0, (1,): 1, (0, 1): 1, (1, 0, 2): 1, (0, 1, 3): 0, (1, 0, 0, 2): 0, (1, 0, 2, 0, 2): 1}


def trained(model):
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def ready_made(depth=4):
    """Set the weights by hand: a hard gate, and a threshold between the scalars of the two opening brackets."""
    model = dyck_rnn(fixed_brackets(2), depth)
    with torch.no_grad():
        model.encoder.cell(0, 0).weight.fill_(40.0)
        model.head.weight.copy_(torch.tensor([[0.0], [20.0]]))
        model.head.bias.copy_(torch.tensor([30.0, 0.0]))
    return model


def test_five_parameters():
    assert trained(dyck_rnn(fixed_brackets(2), 4)) == 5
    assert trained(dyck_rnn(fixed_brackets(2), 8)) == 5
    assert trained(dyck_rnn(fixed_brackets(3), 8)) == 1 + 3 + 3
    assert trained(dyck_rnn(learned_brackets(2, 2), 4)) == 4 * 2 + 2 + 2 * 2 + 2
    assert dyck_rnn(learned_brackets(2, 2), 4).encoder.hidden_size == 8


def test_the_embedding_by_hand():
    assert fixed_brackets(3).weight[:, 0].tolist() == [1, 2, 3, -1, -2, -3]
    assert not fixed_brackets(3).weight.requires_grad


def test_with_a_hard_gate_it_closes_what_was_opened_last():
    model = ready_made()
    for prefix, closing in PREFIXES.items():
        probability = model(torch.tensor([prefix]))[0, -1].detach().softmax(-1)
        assert float(probability[closing]) > 0.99
    soft = ready_made()
    with torch.no_grad():  # control: a half-open gate mixes the slots of the stack
        soft.encoder.cell(0, 0).weight.zero_()
    assert any(soft(torch.tensor([p]))[0, -1].detach().softmax(-1)[c] < 0.8 for p, c in PREFIXES.items())


def test_padding_is_not_read():
    model = ready_made()
    words = list(PREFIXES)
    padded = nn.utils.rnn.pad_sequence([torch.tensor(word) for word in words], batch_first=True, padding_value=1)
    together = model(padded, torch.tensor([len(word) for word in words]))
    for b, word in enumerate(words):
        torch.testing.assert_close(together[b, : len(word)], model(torch.tensor([word]))[0])


def test_after_every_prefix_it_says_what_it_says_after_that_prefix_alone():
    torch.manual_seed(0)
    model = dyck_rnn(fixed_brackets(2), 4)
    strings = torch.tensor([[1, 0, 2, 0, 2, 3], [0, 0, 1, 3, 2, 2]])
    everywhere = model(strings)
    assert everywhere.shape == (2, 6, 2)
    for t in range(6):
        torch.testing.assert_close(everywhere[:, t], model(strings[:, : t + 1])[:, -1])


@pytest.mark.parametrize(("hard", "worst"), [(40.0, 1.0), (1.0, 0.0)])
def test_a_gate_that_leaks_is_wrong_where_it_is_far(hard, worst):
    string = torch.tensor([[1] + [0, 2] * 40 + [3]])
    model = ready_made()
    with torch.no_grad():
        model.encoder.cell(0, 0).weight.fill_(hard)
        logits = model(string)[0, [-2]]
    assert accuracy_by_distance(logits, torch.tensor([1]), torch.tensor([81])) == {81: worst}


@pytest.mark.parametrize("bidirectional", [False, True])
def test_an_encoder_that_reads_ahead_is_rejected(bidirectional):
    encoder = nn.GRU(2, 3, batch_first=True, bidirectional=bidirectional)
    head = nn.Linear(encoder.hidden_size, 2)
    if not bidirectional:
        assert NextBracketModel(learned_brackets(2, 2), encoder, head)(torch.tensor([[0, 1, 3]])).shape == (1, 3, 2)
        return
    with pytest.raises(UsageError, match=r"the encoder reads ahead, .* bidirectional=false"):
        NextBracketModel(learned_brackets(2, 2), encoder, head)


def test_of_a_stack_only_the_top_is_read():
    torch.manual_seed(0)
    model, other = ready_made(), ready_made()
    strings = torch.tensor([[0, 1, 1]])
    lower = nn.Linear(4, 2)  # control: a head that reads all four slots
    whole = NextBracketModel(other.embedding, other.encoder, lower)

    def reached(of):
        seen = {}
        hook = of.encoder.register_forward_hook(
            lambda *args: seen.update(states=args[2][0]) or args[2][0].retain_grad()
        )
        of(strings)[0, -1].sum().backward()
        hook.remove()
        return seen["states"].grad[0, -1] != 0

    assert reached(model).tolist() == [True, False, False, False]
    assert reached(whole).all()


@pytest.mark.parametrize("make", [lambda: fixed_brackets(2), lambda: learned_brackets(2, 2)])
def test_gradient_descent_lowers_the_loss(make):
    torch.manual_seed(0)
    model = dyck_rnn(make(), 4)
    words, closing = list(PREFIXES), torch.tensor(list(PREFIXES.values()))
    padded = nn.utils.rnn.pad_sequence([torch.tensor(word) for word in words], batch_first=True)
    last = [len(word) - 1 for word in words]
    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.05)
    losses = []
    for _ in range(300):
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(padded)[range(len(words)), last], closing)
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.5 * losses[0]


def test_it_is_linear_in_its_stack_so_every_bracket_is_accounted_for():
    found = unrolled.explain(
        ready_made().double(), torch.tensor([[1, 0, 2]]), target=lambda out: out[:, -1, 1], expansion="zero"
    )
    assert abs(found.ledger.remainder) < 1e-9
    # the bracket opened first decides: it is on top of the stack again
    assert found.contribution(0, 3) == pytest.approx(40.0, abs=1e-6)
    assert found.contribution(1, 3) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fixed_brackets(0), "kinds is 0; expected a positive integer"),
        (lambda: learned_brackets(2, 0), "size is 0; expected a positive integer"),
        (lambda: learned_brackets(1.5, 2), "kinds is 1.5"),
        (lambda: dyck_rnn(fixed_brackets(2), 0), "hidden_size is 0; expected a positive integer"),
    ],
)
def test_invalid_sizes(make, message):
    with pytest.raises(UsageError, match=message):
        make()
