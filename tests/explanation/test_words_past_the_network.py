"""What words contribute past the recurrent network is in the bias, and a note says so."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import unrolled

IDS = torch.tensor([[3, 1, 4, 1, 5]])


class Skips(nn.Module):
    """Adds the mean of the vectors to the last state.

    Args:
        part: With what factor.
    """

    def __init__(self, part):
        super().__init__()
        torch.manual_seed(0)
        self.part, self.embed, self.head = part, nn.Embedding(9, 4), nn.Linear(4, 2)
        self.rnn = nn.GRU(4, 4, batch_first=True)
        self.double()

    def last(self, vectors):
        return self.rnn(vectors)[0][:, -1]

    def forward(self, ids):
        vectors = self.embed(ids)
        return self.head(self.last(vectors) + self.part * vectors.mean(1))


class SkipsByCells(Skips):
    def __init__(self, part):
        super().__init__(part)
        self.rnn = nn.GRUCell(4, 4).double()

    def last(self, vectors):
        state = None
        for x in vectors.unbind(1):
            state = self.rnn(x, state)
        return state


@pytest.mark.parametrize("kind", [Skips, SkipsByCells])
def test_a_note_names_the_table(kind):
    model = kind(1.0)
    found = unrolled.explain(model, IDS, target=1)
    noted = [note for note in found.notes if "past its recurrent network: embed.weight" in note]
    assert len(noted) == 1
    assert "unrolled.account says what each token contributes" in noted[0]
    past = (model.head.weight[1] @ model.embed(IDS).mean(1)[0]).item()
    assert found.biases["embed.weight"] == pytest.approx(past)
    assert any("embed.weight" in part.why for part in unrolled.check(model, IDS, target=1).parts)


@pytest.mark.parametrize("kind", [Skips, SkipsByCells])
def test_where_all_words_go_through_the_network_there_is_no_such_note(kind):
    found = unrolled.explain(kind(0.0), IDS, target=1)
    assert not any("past" in note for note in found.notes)
    assert "embed.weight" not in found.biases


def _without_gradients(states):
    with torch.no_grad():
        states.numpy()


LOGS = {
    "nothing": type,
    "detached": lambda states: states.detach().numpy(),
    "an array": lambda states: np.asarray(states.detach()),
    "no_grad": _without_gradients,
}


@pytest.mark.parametrize("log", LOGS.values(), ids=LOGS)
@pytest.mark.parametrize("part", [1.0, 0.0])
def test_a_ray_has_the_note_where_a_model_takes_its_states_for_a_log_as_well(log, part):
    class Logs(Skips):
        def last(self, vectors):
            last = super().last(vectors)
            log(last)
            return last

        def forward(self, ids):
            return super().forward(ids).softmax(-1)

    notes = unrolled.explain(Logs(part), IDS, target=1, readout="ray").notes
    assert any("states of zero, is made of vectors of embed.weight" in note for note in notes) == (part != 0)
