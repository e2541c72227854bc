"""A sparse argument, such as a graph, whose numbers would be sources, is refused by its place or name."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UsageError

NODES = 4
GRAPH = torch.tensor([[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0.2, 0.8, 0], [0, 0, 0.3, 0.7]]).double()
IDS, NUMBERS = torch.tensor([[1, 2, 3], [4, 1, 2]]), torch.linspace(-1, 1, 24).reshape(2, 3, NODES).double()
LAYOUTS = {"coo": torch.Tensor.to_sparse, "csr": torch.Tensor.to_sparse_csr}
pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR")  # torch warns once that it is in beta


class Mixed(nn.Module):
    """Mix the numbers of neighbours in each step, in front of a GRU."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn = nn.Embedding(6, NODES), nn.GRU(NODES, 5, batch_first=True)
        self.head = nn.Linear(5, 2)

    def forward(self, x, graph):
        x = x if x.is_floating_point() else self.embed(x)
        mixed = (graph @ x.flatten(0, 1).T).T.reshape(x.shape)
        return self.head(self.rnn(mixed)[0][:, -1])


@pytest.mark.parametrize("read", [IDS, NUMBERS], ids=["ids", "numbers"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_sparse_argument_is_refused(read, layout):
    model, graph = Mixed().double(), LAYOUTS[layout](GRAPH)
    for call in (unrolled.explain_batch, unrolled.account):
        with pytest.raises(UsageError, match=r"^argument 1 is sparse; pass a dense tensor: x\.to_dense\(\)$"):
            call(model, read, graph, target=1)
        assert call(model, read, GRAPH, target=1)[0].closes  # the control
    with pytest.raises(UsageError, match=r"^argument graph is sparse; pass a dense tensor: x\.to_dense\(\)$"):
        unrolled.explain(model, read[:1], graph=graph, target=1)
    checked = unrolled.check(model, read, graph, target=1)
    assert not any(part.opens for part in checked.parts)
    assert all(part.opens for part in unrolled.check(model, read, GRAPH, target=1).parts)
