# ruff: noqa: ARG001, ARG005  # every way takes the model and its ids
"""Token ids that a model computes with: who reads a row of a table is the token whose id it was, and no bias."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled
from unrolled.errors import StrictError, UsageError

V, E = 40, 4
IDS = torch.tensor([[4, 9, 21], [12, 4, 3]])
ONE = torch.ones(1, dtype=torch.float64)
HISTORY = torch.tensor([[3, 7, 5, 2], [4, 4, 2, 9]])


class Reads(nn.Module):
    """Reads ids by a way of its own, beside a text that a recurrent network reads."""

    def __init__(self, way):
        super().__init__()
        torch.manual_seed(0)
        self.way = way
        self.table = nn.Embedding(V * V, E)
        self.of_one_hot, self.over_time = nn.Linear(V, E, bias=False), nn.Conv1d(V, E, 1, bias=False)
        self.number = nn.Linear(1, E)
        self.words, self.rnn = nn.Embedding(30, E), nn.GRU(E, E, batch_first=True)
        self.scalar = nn.Parameter(torch.randn(V))
        self.head = nn.Linear(E, 2)
        self.register_buffer("offsets", torch.tensor([0, 30, 60]))
        self.register_buffer("renamed", torch.randperm(V))
        self.register_buffer("cap", torch.tensor(9))
        self.of_one_hot.weight.data = self.over_time.weight.data[..., 0]
        self.double()

    def forward(self, ids, history):
        return self.head(torch.tanh(self.way(self, ids).sum(1) + self.rnn(self.words(history))[0][:, -1]))


def look_up(change):
    return lambda m, ids: m.table(change(m, ids))


def account(way, ids=IDS, **options):
    return unrolled.account(Reads(way), ids, HISTORY[: len(ids)], target=1, **options)


def assert_equal_parts(found, expected):
    assert found.closes
    assert not [note for note in found.notes if "several tokens" in note or "held" in note]
    for name in ("texts", "features", "biases", "constants"):
        mine, other = getattr(found, name), getattr(expected, name)
        assert set(mine) == set(other), name
        for key, part in other.items():
            torch.testing.assert_close(mine[key], part, rtol=1e-9, atol=1e-12)


def changed_in_place(m, ids):
    ids = ids.clone()
    ids += m.offsets
    ids //= 2
    return ids.clamp_(max=35)


def unknown_words(m, ids):
    ids = ids.clone()
    ids[ids >= 20] = 1
    return ids


KEPT = {
    "offsets of fields": lambda m, ids: ids + m.offsets,
    "offsets of a list": lambda m, ids: ids + ids.new_tensor([0, 30, 60]),
    "multiplied": lambda m, ids: 3 * ids,
    "subtracted from a number": lambda m, ids: 100 - ids,
    "divided": lambda m, ids: ids // 4,
    "divided by torch.div": lambda m, ids: torch.div(ids, 4, rounding_mode="floor"),
    "shifted bits": lambda m, ids: ids >> 1,
    "magnitude": lambda m, ids: (-ids).abs(),
    "hashed": lambda m, ids: (ids * 7 + 3) % 31,
    "limited by a tensor": lambda m, ids: torch.minimum(ids, m.cap),
    "limited": lambda m, ids: ids.clamp(max=9),
    "replaced by where": lambda m, ids: torch.where(ids > 20, 1, ids),
    "replaced by masked_fill": lambda m, ids: ids.masked_fill(ids > 20, 1),
    "replaced in place": unknown_words,
    "changed in place": changed_in_place,
    "renamed by a table": lambda m, ids: m.renamed[ids],
    "renamed by index_select": lambda m, ids: m.renamed.index_select(0, ids.reshape(-1)).view_as(ids),
    "renamed by take": lambda m, ids: m.renamed.take(ids),
    "sorted into ranges": lambda m, ids: torch.bucketize(ids, torch.tensor([5, 15, 25])),
    "answered": lambda m, ids: (ids > 10).long(),
    "a Variable": lambda m, ids: torch.autograd.Variable(ids),
    "a new tensor": lambda m, ids: torch.as_tensor(ids).clone(),
    "multiplied by its mask": lambda m, ids: ids * (ids != 3),
}


@pytest.mark.parametrize("way", KEPT, ids=str)
def test_ids_that_are_computed_one_by_one_keep_their_tokens(way):
    change = KEPT[way]
    found, model = account(look_up(change)), Reads(None)
    assert_equal_parts(found, account(look_up(lambda m, ids: ids), change(model, IDS)))
    assert found.texts["0"].abs().min() > 0  # and not by chance


VECTORS = {
    "rows picked by gather": lambda m, ids: m.table.weight.gather(0, ids.reshape(-1, 1).expand(-1, E)).view(
        *ids.shape, E
    ),
    "rows picked by index_select": lambda m, ids: m.table.weight.index_select(0, ids.reshape(-1)).view(*ids.shape, E),
    "columns picked": lambda m, ids: m.table.weight.t()[:, ids].permute(1, 2, 0),
    "rows picked with a slice": lambda m, ids: m.table.weight[ids, :],
}
ONE_HOT = {
    "one_hot": lambda m, ids: m.of_one_hot(F.one_hot(ids, V).double()),
    "one_hot with channels first": lambda m, ids: m.over_time(F.one_hot(ids, V).transpose(1, 2).double()).mT,
    "a part of one_hot": lambda m, ids: F.one_hot(ids, V)[..., 1:].double() @ m.of_one_hot.weight.T[1:],
    "written by scatter": lambda m, ids: m.of_one_hot(
        torch.zeros(*ids.shape, V).double().scatter_(2, ids[..., None], 1)
    ),
    "written into integers": lambda m, ids: m.of_one_hot(
        torch.zeros(*ids.shape, V, dtype=torch.int64).scatter(2, ids[..., None], 1).double()
    ),
    "compared": lambda m, ids: m.of_one_hot((ids[..., None] == torch.arange(V)).double()),
    "of the type of a value": lambda m, ids: m.of_one_hot(F.one_hot(ids, V).to(m.words(ids))),
    "of the type of a value by type_as": lambda m, ids: m.of_one_hot(F.one_hot(ids, V).type_as(m.words(ids))),
    "mixed with a number": lambda m, ids: m.of_one_hot(F.one_hot(ids, V) * ONE),
}


@pytest.mark.parametrize("way", VECTORS, ids=str)
def test_rows_of_a_table_belong_to_their_tokens_however_they_are_picked(way):
    assert_equal_parts(account(VECTORS[way]), account(look_up(lambda m, ids: ids)))


@pytest.mark.parametrize("way", ONE_HOT, ids=str)
def test_one_hot_vectors_belong_to_their_tokens_however_they_are_made(way):
    assert_equal_parts(account(ONE_HOT[way]), account(lambda m, ids: F.embedding(ids, m.of_one_hot.weight.T)))


def test_numbers_of_a_table_with_one_for_each_id_belong_to_their_tokens():
    found = account(lambda m, ids: m.scalar[ids][..., None].expand(-1, -1, E))
    taken = account(lambda m, ids: m.scalar.take(ids)[..., None].expand(-1, -1, E))
    assert_equal_parts(found, account(lambda m, ids: F.embedding(ids, m.scalar[:, None]).expand(-1, -1, E)))
    assert_equal_parts(taken, found)


def distinct(m, ids):
    return ids.unique(return_inverse=True)[1]


SEVERAL = {
    "add": lambda m, ids: ids[:, :-1] * V + ids[:, 1:],
    "unique": distinct,
    "cumsum": lambda m, ids: ids.cumsum(1),
    "tolist": lambda m, ids: torch.tensor(ids.tolist()),
    "long": lambda m, ids: (ids / 4).long(),
    "maximum": lambda m, ids: torch.maximum(ids[:, :-1], ids[:, 1:]),
}


@pytest.mark.parametrize("operation", SEVERAL)
def test_ids_of_several_tokens_are_named_and_noted_and_are_no_bias(operation):
    change = SEVERAL[operation]
    found, model = account(look_up(change)), Reads(None)
    given = account(look_up(lambda m, ids: ids), change(model, IDS))
    name = f"table.weight at ids that {operation} made"
    assert set(found.texts) == {"1"}
    assert set(found.constants) == {name}
    assert "table.weight" not in found.biases
    torch.testing.assert_close(found.constants[name], given.texts["0"].sum(1), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(found.texts["1"], given.texts["1"], rtol=1e-9, atol=1e-12)
    (note,) = (note for note in found.notes if name in note)
    assert "belong to no single one" in note
    with pytest.raises(StrictError, match=operation):
        account(look_up(change), strict=True)


COUNTS = {
    "bincount": lambda m, ids: m.of_one_hot(torch.stack([torch.bincount(each, minlength=V) for each in ids]).double()),
    "scatter": lambda m, ids: m.of_one_hot(torch.zeros(len(ids), V).double().scatter_(1, ids, 1.0)),
    "getitem": lambda m, ids: m.of_one_hot.weight[ids[:, 0] % E, ids[:, 1]][:, None].expand(-1, E),
}


@pytest.mark.parametrize("operation", COUNTS)
def test_numbers_of_several_tokens_are_named_and_noted(operation):
    found = account(lambda m, ids: COUNTS[operation](m, ids)[:, None])
    (name,) = found.constants
    assert f"that {operation} made" in name
    assert any(name in note for note in found.notes)
    assert set(found.texts) == {"1"}
    assert "of_one_hot.weight" not in found.biases


@pytest.mark.parametrize("operation", ["add", "unique", "bincount", "scatter"])
def test_a_model_that_reads_such_ids_only_is_refused_for_that(operation):
    class Alone(Reads):
        def forward(self, ids):
            return self.head(self.way(self, ids).sum(1))

    way = look_up(SEVERAL[operation]) if operation in SEVERAL else lambda m, ids: COUNTS[operation](m, ids)[:, None]
    with pytest.raises(UsageError, match=rf"at most by ids or numbers that {operation} made of several tokens"):
        unrolled.account(Alone(way), IDS, target=1)
    with pytest.raises(UsageError, match="by more than masks, which are held; check the target"):
        unrolled.account(Alone(lambda m, ids: m.number((ids == 4).double()[..., None])), IDS, target=1)


PYTHON = {
    "int": lambda m, ids: torch.stack([m.table.weight[int(row[0])] for row in ids]),
    "item": lambda m, ids: torch.stack([m.table.weight[row[0].item(), :] for row in ids]),
    "tolist": lambda m, ids: torch.stack([m.table.weight[row[0]] for row in ids.tolist()]),
    "and back": lambda m, ids: m.table(torch.tensor([int(row[0]) for row in ids])),
    "numpy and back": lambda m, ids: m.table(torch.from_numpy(ids.numpy()[:, 0].copy())),
}


@pytest.mark.parametrize("way", PYTHON)
def test_a_table_that_is_read_at_pythons_numbers_is_noted(way):
    found = account(lambda m, ids: m.table(ids) + PYTHON[way](m, ids)[:, None])
    assert [note for note in found.notes if "reads table.weight at such numbers" in note]
    others = account(lambda m, ids: m.table(ids) + m.table.weight[ids[:, 0].max().item() * 0 + 1])
    assert not [note for note in others.notes if "at such numbers" in note]


def test_numbers_of_the_code_are_no_ids_where_ids_were_counted_in_python():
    def way(number):
        def counted(m, ids):
            return m.table(ids) * len(ids.tolist()) + number(m)

        return counted

    plain = account(way(lambda m: torch.full_like(m.table.weight[0], 0.25)))
    assert set(plain.constants) == {"constants"}
    for number in (torch.tensor(0.25), torch.tensor([0.25, 0.25, 0.25, 0.25]), torch.from_numpy(np.full(E, 0.25))):
        found = account(way(lambda m, data=number: torch.as_tensor(data.tolist(), dtype=torch.float64)))
        assert_equal_parts(found, plain)
    ids = account(way(lambda m: torch.tensor([1, 2, 3, 4])))
    assert any("tolist made of ids" in note for note in ids.notes)


NUMBERS = {
    "converted": lambda m, x: m.number(x.double()[..., None]),
    "scaled": lambda m, x: m.number(x[..., None] * (0.5 * ONE)),
    "normalised": lambda m, x: m.number((x.double()[..., None] - 3) / 7),
    "a part": lambda m, x: torch.stack([x[:, 1:].double() @ m.of_one_hot.weight.T[:2]], 1),
    "root": lambda m, x: m.number(x.double().sqrt()[..., None]),
}


@pytest.mark.parametrize("way", NUMBERS, ids=str)
def test_integers_that_are_used_as_numbers_are_features_as_floats_are(way):
    assert_equal_parts(account(NUMBERS[way]), account(NUMBERS[way], IDS.double()))


def test_an_argument_of_ids_and_numbers_has_one_part_for_each_entry():
    def way(m, x):
        return torch.cat([m.table(x[:, 0])[:, :2], x[:, 1:].double()], 1)[:, None]

    class Apart(Reads):
        def forward(self, ids, numbers, history):
            self.way = lambda m, x: torch.cat([m.table(x)[:, :2], numbers], 1)[:, None]
            return super().forward(ids, history)

    found = account(way)
    apart = unrolled.account(Apart(None), IDS[:, 0], IDS[:, 1:].double(), HISTORY, target=1)
    together = torch.cat([apart.texts["0"][:, None], apart.features["1"]], 1)
    torch.testing.assert_close(found.texts["0"], together, rtol=1e-9, atol=1e-12)
    assert not found.features
    assert not found.constants


MASK = torch.tensor([[1, 1, 0], [1, 1, 1]])


@pytest.mark.parametrize("factors", [MASK, MASK.bool(), 3 * MASK], ids=["mask", "truth", "counts"])
@pytest.mark.parametrize("own", [False, True], ids=["given", "made of ids"])
@pytest.mark.parametrize("in_place", [False, True], ids=["product", "in place"])
def test_integers_that_multiply_are_held_as_factors(factors, own, in_place):
    class Masked(Reads):
        def forward(self, ids, history, factors):
            given = (ids != 21) * int(factors.max()) if own else factors
            given = given.double()[..., None]
            self.way = lambda m, x: (m.table(x) * 1.0).mul_(given) if in_place else (1 - (1 - given)) * m.table(x)
            return super().forward(ids, history)

    found = unrolled.account(Masked(None), IDS, HISTORY, factors, target=1)
    assert_equal_parts(found, account(lambda m, x: m.table(x) * factors.double()[..., None]))


def test_a_mask_of_integers_that_is_added_adds_no_parts():
    class Masked(Reads):
        def forward(self, ids, history, mask):
            self.way = lambda m, x: (m.table(x) - (1 - mask.double())[..., None] * 1e9).amax(1, keepdim=True)
            return super().forward(ids, history)

    found = unrolled.account(Masked(None), IDS, HISTORY, MASK, target=1)
    assert_equal_parts(found, account(lambda m, x: m.table(x).masked_fill(MASK[..., None] == 0, -1e9).amax(1, True)))
    assert float(found.cancellation.max()) < 1e3


def test_a_mask_that_is_a_feature_by_itself_is_named():
    found = account(lambda m, x: m.table(x) + (x == 4).double()[..., None])
    assert set(found.constants) == {"masks"}


def test_places_in_a_text_belong_to_the_table_though_a_mask_counts_them():
    places = (IDS != 21).long().cumsum(1)
    found = account(lambda m, x: m.table(x) + m.scalar[(x != 21).long().cumsum(1)][..., None])
    assert_equal_parts(found, account(lambda m, x: m.table(x) + m.scalar[places][..., None]))
    assert found.biases["scalar"].abs().min() > 0


def test_ids_that_no_token_stands_for_belong_to_the_table():
    dropped = torch.tensor([[False, True, False], [False, False, True]])
    found = account(look_up(lambda m, ids: ids.masked_fill(dropped, 1)))
    assert not found.texts["0"][dropped].any()
    assert found.texts["0"][~dropped].abs().min() > 0
    assert found.biases["table.weight"].abs().min() > 0


def test_the_bias_of_a_first_step_from_zeros_has_its_own_name():
    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.x, self.h, self.out = nn.Linear(3, E, bias=False), nn.Linear(E, E), nn.Linear(E, 2, bias=False)
            self.double()

        def forward(self, x):
            h = x.new_zeros(len(x), E)
            for step in x.unbind(1):
                h = self.x(step) + self.h(h)
            return self.out(h)

    model, x = Loop(), torch.randn(2, 3, 3, dtype=torch.float64)
    found = unrolled.account(model, x, target=1)
    u, bias = model.h.weight, model.h.bias
    expected = model.out.weight[1] @ (bias + u @ bias + u @ u @ bias)
    assert set(found.biases) == {"h.bias"}
    torch.testing.assert_close(found.biases["h.bias"], expected.expand(2).detach())
