"""A tree whose nodes know their parents is an argument as any other, and one node is one object for the model."""

from __future__ import annotations

from collections import UserDict
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import unrolled

VECTORS = torch.randn(3, 1, 4, generator=torch.Generator().manual_seed(0))


@dataclass(eq=False)
class Node:
    vector: Tensor
    children: list[Node] = field(default_factory=list)
    parent: Node | None = None
    state: Tensor | None = None


def tree() -> list[Node]:
    """Make the nodes of a tree, its leaves first."""
    first, second, root = (Node(vector) for vector in VECTORS)
    for child in (first, second):
        root.children.append(child)
        child.parent = root
    return [first, second, root]


class TreeGRU(nn.Module):
    """Reads the nodes in their order, and writes into each its state, for its parent to read."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.cell, self.head = nn.GRUCell(4, 5), nn.Linear(5, 2)

    def forward(self, nodes: list[Node]) -> Tensor:
        for node in nodes:
            below = [child.state for child in node.children if child.state is not None]
            node.state = self.cell(node.vector, sum(below) if below else None)
        parent = nodes[0].parent
        assert parent is not None
        assert parent.state is not None
        logits: Tensor = self.head(parent.state)
        return logits


class ByHand(TreeGRU):
    """Reads the vectors of the same tree."""

    def forward(self, first: Tensor, second: Tensor, root: Tensor) -> Tensor:  # type: ignore[override] # tensors
        logits: Tensor = self.head(self.cell(root, self.cell(first) + self.cell(second)))
        return logits


@pytest.mark.parametrize("opens", [unrolled.explain, unrolled.account])
def test_a_tree_of_nodes_that_know_their_parents_is_opened(opens: object) -> None:
    assert callable(opens)
    nodes = tree()
    found, plain = opens(TreeGRU(), nodes, target=1), opens(ByHand(), *VECTORS, target=1)
    assert dict(found.ledger) == pytest.approx(dict(plain.ledger), abs=1e-6)
    assert all(node.state is None for node in nodes)  # the caller's nodes are as they were
    assert nodes[2].children == nodes[:2]


def test_each_node_of_a_tree_is_a_source_once() -> None:
    found, plain = unrolled.account(TreeGRU(), tree(), target=1), unrolled.account(ByHand(), *VECTORS, target=1)
    assert len(found.features) == 3
    each = {tuple(part.flatten().tolist()) for part in plain.features.values()}
    assert {tuple(part.flatten().tolist()) for part in found.features.values()} == each


def test_a_list_that_stands_in_two_places_is_two_arguments() -> None:
    class Both(nn.Module):
        def forward(self, one: list[Tensor], other: list[Tensor]) -> Tensor:
            return one[0] - 2 * other[0]

    pair = [torch.tensor([[1.0, 2.0]])]
    found = unrolled.account(Both(), pair, pair, target=1)
    assert {name: float(part.sum()) for name, part in found.features.items()} == {"0.0": 2.0, "1.0": -4.0}


class ReadsTheRoot(TreeGRU):
    """Receives the root beside the nodes, of which it is one."""

    def forward(self, nodes: list[Node], root: Node) -> Tensor:  # type: ignore[override] # the root as well
        super().forward(nodes)
        assert root.state is not None
        logits: Tensor = self.head(root.state)
        return logits


@pytest.mark.parametrize("opens", [unrolled.explain, unrolled.account])
@pytest.mark.parametrize("named", [False, True])
def test_a_node_that_stands_in_two_arguments_is_one_object(opens: object, named: bool) -> None:
    assert callable(opens)
    nodes = tree()
    given = ((nodes,), {"root": nodes[-1]}) if named else ((nodes, nodes[-1]), {})
    found, plain = opens(ReadsTheRoot(), *given[0], **given[1], target=1), opens(ByHand(), *VECTORS, target=1)
    assert dict(found.ledger) == pytest.approx(dict(plain.ledger), abs=1e-6)


def test_the_root_of_another_tree_is_another_object() -> None:
    class ReadsAnother(ReadsTheRoot):
        def forward(self, nodes: list[Node], root: Node) -> Tensor:  # type: ignore[override] # the root as well
            return super().forward(nodes, nodes[-1]) if root.state is None else root.vector

    found = unrolled.account(ReadsAnother(), tree(), Node(VECTORS[0]), target=1)
    assert len(found.features) == 3


class MadeAnew(UserDict[str, Any]):
    """A dictionary that makes a node of a vector whenever it is asked for one, as readers of records do."""

    def __getitem__(self, key: str) -> Any:
        vector = self.data[key]
        return vector if isinstance(vector, Node) else Node(vector)


class OfDictionaries(nn.Module):
    """Weighs the vectors of several dictionaries."""

    def forward(self, given: list[MutableMapping[str, Node]]) -> Tensor:
        nodes = (node for each in given for node in each.values())
        return sum((number * node.vector for number, node in enumerate(nodes, 1)), torch.zeros(1, 4))


def test_parts_that_a_dictionary_makes_anew_are_told_apart() -> None:
    anew = [MadeAnew({"a": VECTORS[0] + number, "b": VECTORS[1] - number}) for number in range(20)]
    plain = [{key: Node(vector) for key, vector in each.data.items()} for each in anew]
    found, expected = (unrolled.account(OfDictionaries(), each, target=1) for each in (anew, plain))
    assert [*found.features] == [*expected.features]
    assert len(found.features) == 40
    for ours, theirs in zip(found.features.values(), expected.features.values(), strict=True):
        assert torch.equal(ours, theirs)
