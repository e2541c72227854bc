r"""Networks whose weights are written by hand, so that what decides their answer is known exactly.

- Automata: a network of relu units, one for each pair of a state q and a word x. The unit of (q, x) is 1 where the last
  word was x, read in q: relu(Σ_{δ(p, y) = q} h_{(p, y)} + [x] - 1). The pairs of the start state are
  relu([x] - Σ_{δ(p, y) ≠ start} h_{(p, y)}), because no unit is 1 before the first word.
- Counters: a relu unit that adds, and an LSTM with open gates.
- Memories: a GRU and an LSTM whose gates let a written value replace the old one, and a GRU that keeps the first value.
- The Dyck-RNN and the memorising RNN of this library.

All are classifiers in float64 that read their last state. Gates are saturated: σ(±20), so they are open or closed to
2e-9.

Source:
    Minsky (1967), Computation, for automata; Weiss et al. (2018), arXiv:1805.04908, for counters in LSTMs.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import cast

import torch
from torch import Tensor, nn

from unrolled.cells import recurrent
from unrolled.cells.second_order import Dyck
from unrolled.lab.models.classifier import Classifier
from unrolled.lab.models.pooling import LastState
from unrolled.lab.papers.analyses.known_truth.truth_tasks import ROLES, VOCABULARY

__all__ = ["COMPILED"]

_A, _B, _C = ROLES, ROLES + 1, ROLES + 2
_VALUES = 4
_OPEN = 20.0
"""The pre-activation of an open gate; that of a closed one is the negative."""
_WRITTEN = 3.0
"""The pre-activation of a value that is written: tanh(3) = 0.995."""
_NONE = 0.3
"""The logit of "no value": above 0, which an empty memory reads, and below what a stored value reads, at least 0.75."""


def _classifier(embedding: Tensor, encoder: nn.Module, readout: Tensor, bias: Tensor) -> Classifier:
    """Assemble a classifier from its word vectors, encoder and head."""
    table = nn.Embedding.from_pretrained(embedding.double(), freeze=False)
    head = nn.Linear(readout.shape[1], readout.shape[0])
    with torch.no_grad():
        head.weight.copy_(readout)
        head.bias.copy_(bias)
    return Classifier(table, encoder, LastState(), head).double().eval()


def _write(network: nn.Module, **weights: Tensor) -> nn.Module:
    """Set the weights of a network of one layer; those that are not named are zero."""
    for name, parameter in network.named_parameters():
        with torch.no_grad():
            parameter.copy_(weights.get(name, torch.zeros_like(parameter)))
    return network


def _binary(threshold: float) -> tuple[Tensor, Tensor]:
    """A head on one unit: class 1 above the threshold, else class 0."""
    return torch.tensor([[-1.0], [1.0]]), torch.tensor([threshold, -threshold])


def _automaton(states: int, step: Callable[[int, int], int], answer: Callable[[int], int], classes: int) -> Classifier:
    """Compile an automaton that starts in state 0."""
    pairs = list(product(range(states), range(VOCABULARY)))
    after = [step(state, word) for state, word in pairs]
    w, u, b = torch.zeros(len(pairs), VOCABULARY), torch.zeros(len(pairs), len(pairs)), torch.zeros(len(pairs))
    for unit, (state, word) in enumerate(pairs):
        w[unit, word] = 1.0
        b[unit] = -1.0 if state else 0.0
        for other, reached in enumerate(after):
            u[unit, other] = float(reached == state) if state else -float(reached != 0)
    encoder = nn.RNN(VOCABULARY, len(pairs), nonlinearity="relu", batch_first=True)
    _write(encoder, weight_ih_l0=w, weight_hh_l0=u, bias_ih_l0=b)
    readout = torch.zeros(classes, len(pairs))
    for unit, reached in enumerate(after):
        readout[answer(reached), unit] = 1.0
    return _classifier(torch.eye(VOCABULARY), encoder, readout, torch.zeros(classes))


def _value(word: int) -> int | None:
    return word - ROLES if ROLES <= word < ROLES + _VALUES else None


def _written(state: int, word: int) -> int:
    value = _value(word)
    return state if value is None else value + 1


def _kept(state: int, word: int) -> int:
    """State 0 before the first word, 1 to 4 for its value, 5 if it had none."""
    value = _value(word)
    return state or (5 if value is None else value + 1)


def _after_mark(state: int, word: int) -> int:
    """State 0 before the mark, 1 directly after it, 2 to 5 for the value, 6 if there was none."""
    if state == 1:
        value = _value(word)
        return 6 if value is None else value + 2
    return state or int(word == ROLES + _VALUES)


def _bigram(state: int, word: int) -> int:
    return 2 if state == 2 or (state == 1 and word == _B) else int(word == _A)


def _in_order(state: int, word: int) -> int:
    return 2 if state == 2 or (state == 1 and word == _B) else int(state == 1 or word == _A)


def _value_vectors() -> Tensor:
    """Word vectors of 5 numbers: which value a word has, and whether it has any."""
    table = torch.zeros(VOCABULARY, _VALUES + 1)
    for value in range(_VALUES):
        table[ROLES + value, value] = table[ROLES + value, _VALUES] = 1.0
    return table


def _value_head() -> tuple[Tensor, Tensor]:
    """A class for each value, and one for none."""
    return torch.cat((torch.eye(_VALUES), torch.zeros(1, _VALUES))), torch.tensor([0.0] * _VALUES + [_NONE])


def _relu_counter() -> Classifier:
    table = torch.zeros(VOCABULARY, 1)
    table[_A] = 1.0
    encoder = nn.RNN(1, 1, nonlinearity="relu", batch_first=True)
    _write(encoder, weight_ih_l0=torch.ones(1, 1), weight_hh_l0=torch.ones(1, 1))
    return _classifier(table, encoder, *_binary(2.5))


def _lstm_counter() -> Classifier:
    """Each word of the kind adds 1/4 to c."""
    table = torch.zeros(VOCABULARY, 1)
    table[_A] = 1.0
    step = torch.tensor(0.25, dtype=torch.float64).atanh()
    weight = torch.tensor([[0.0], [0.0], [float(step)], [0.0]])
    gates = torch.tensor([_OPEN, _OPEN, 0.0, _OPEN])  # i, f, g, o
    encoder = _write(nn.LSTM(1, 1, batch_first=True), weight_ih_l0=weight, bias_ih_l0=gates)
    return _classifier(table, encoder, *_binary(float(torch.tensor(0.625).tanh())))


def _lstm_memory() -> Classifier:
    """A written value replaces the old one: i = 1 and f = 0 at a write, else i = 0 and f = 1."""
    d = _VALUES
    w, b = torch.zeros(4 * d, d + 1), torch.zeros(4 * d)
    w[:d, d], b[:d] = 2 * _OPEN, -_OPEN
    w[d : 2 * d, d], b[d : 2 * d] = -2 * _OPEN, _OPEN
    w[2 * d : 3 * d, :d] = _WRITTEN * torch.eye(d)
    b[3 * d :] = _OPEN
    encoder = _write(nn.LSTM(d + 1, d, batch_first=True), weight_ih_l0=w, bias_ih_l0=b)
    return _classifier(_value_vectors(), encoder, *_value_head())


def _gru_memory() -> Classifier:
    """A written value replaces the old one: z = 0 at a write, else z = 1."""
    d = _VALUES
    w, b = torch.zeros(3 * d, d + 1), torch.zeros(3 * d)
    w[d : 2 * d, d], b[d : 2 * d] = -2 * _OPEN, _OPEN
    w[2 * d :, :d] = _WRITTEN * torch.eye(d)
    encoder = _write(nn.GRU(d + 1, d, batch_first=True), weight_ih_l0=w, bias_ih_l0=b)
    return _classifier(_value_vectors(), encoder, *_value_head())


def _gru_latch() -> Classifier:
    """The first value stays: z = 1 as soon as any unit holds one."""
    d = _VALUES
    w, u, b = torch.zeros(3 * d, d + 1), torch.zeros(3 * d, d), torch.zeros(3 * d)
    u[d : 2 * d], b[d : 2 * d] = 2 * _OPEN, -_OPEN
    w[2 * d :, :d] = _WRITTEN * torch.eye(d)
    encoder = _write(nn.GRU(d + 1, d, batch_first=True), weight_ih_l0=w, weight_hh_l0=u, bias_ih_l0=b)
    return _classifier(_value_vectors(), encoder, *_value_head())


def _dyck() -> Classifier:
    """A stack of four brackets, of which the head reads the top one."""
    table = torch.zeros(VOCABULARY, 3)
    table[_A, 0] = table[_B, 1] = table[_C, 2] = 1.0
    encoder = recurrent("dyck", 3, 12, batch_first=True)
    with torch.no_grad():
        cast("Dyck", encoder.cell(0, 0)).weight.copy_(2 * torch.tensor([[_OPEN, _OPEN, -_OPEN]]))
    readout = torch.zeros(3, 12)
    readout[0, 0] = readout[1, 1] = 1.0
    return _classifier(table, encoder, readout, torch.tensor([0.0, 0.0, _NONE]))


def _memorising() -> Classifier:
    """A memory of four words, of which the head reads the oldest."""
    encoder = recurrent("memorising", _VALUES, 4 * _VALUES, batch_first=True)
    readout, bias = _value_head()
    return _classifier(
        _value_vectors()[:, :_VALUES], encoder, torch.cat((torch.zeros(5, 3 * _VALUES), readout), dim=1), bias
    )


COMPILED: dict[str, tuple[str, Callable[[], Classifier]]] = {
    "counter, relu": ("at least three", _relu_counter),
    "counter, LSTM": ("at least three", _lstm_counter),
    "automaton of parity": ("parity", lambda: _automaton(2, lambda q, x: q ^ (x == _A), int, 2)),
    "automaton of a bigram": ("bigram", lambda: _automaton(3, _bigram, lambda q: int(q == 2), 2)),
    "automaton of an order": ("two words in order", lambda: _automaton(3, _in_order, lambda q: int(q == 2), 2)),
    "automaton of the last write": ("last write", lambda: _automaton(5, _written, lambda q: (q - 1) % 5, 5)),
    "automaton of the first word": ("first word of 12", lambda: _automaton(6, _kept, lambda q: min(q - 1, 4) % 5, 5)),
    "automaton of a mark": ("word after a mark", lambda: _automaton(7, _after_mark, lambda q: max(q - 2, -1) % 5, 5)),
    "memory, LSTM": ("last write", _lstm_memory),
    "memory, GRU": ("last write", _gru_memory),
    "latch, GRU": ("first word of 12", _gru_latch),
    "stack, Dyck-RNN": ("open bracket", _dyck),
    "shift register, memorising RNN": ("fourth last word", _memorising),
}
"""For each network its task and how it is made."""
