"""Entries that a step of the user's own chooses by their order: topk, sort, medians, and places that move."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import unrolled
from layered_steps import SERIES, judge_same_n_grams, model_with
from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.increments.increments import SecantIncrements, ShareIncrements
from unrolled.held_forward.increments.order_on_a_line import OrderOnALine, one_hot, ranks_beside


def points(seed, *shape):
    return torch.randn(2, *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


BY_RANK = {
    "topk": (lambda z: z.topk(3, 1).values, (-1, -2, -3)),
    "topk of the smallest": (lambda z: torch.topk(z, 2, dim=-1, largest=False)[0], (0, 1)),
    "sort": (lambda z: z.sort(1)[0], range(5)),
    "sort from the largest": (lambda z: torch.sort(z, dim=1, descending=True).values, range(-1, -6, -1)),
    "msort": (lambda z: torch.msort(z.T).T, range(5)),
    "kthvalue": (lambda z: z.kthvalue(2, 1, keepdim=True).values, (1,)),
    "kthvalue without its axis": (lambda z: z.kthvalue(4).values[:, None], (3,)),
    "median": (lambda z: z.median(1).values[:, None], (2,)),
    "nanmedian": (lambda z: z.nanmedian(1, keepdim=True)[0], (2,)),
    "gather by argsort": (lambda z: z.gather(1, z.argsort(1)), range(5)),
    "take along argsort": (lambda z: z.take_along_dim(torch.argsort(z, descending=True)[:, :2], 1), (-1, -2)),
    "gather of the largest": (lambda z: z.gather(1, z.max(1, keepdim=True).indices), (-1,)),
    "read by rows": (lambda z: z[torch.arange(len(z)), z.argmin(1)][:, None], (0,)),
}


@pytest.mark.parametrize("name", BY_RANK)
def test_an_entry_has_the_part_of_the_line_along_which_it_has_the_rank(name):
    function, ranks = BY_RANK[name]
    base, end = points(0, 3, 5)
    mode, found = SecantIncrements(), []
    for kept in torch.eye(5, dtype=torch.float64):
        with mode:
            found.append(function(mode.follow(kept * (end - base), base, end)))
    places = (torch.arange(20000, dtype=torch.float64) + 0.5)[:, None, None] / 20000
    order = (base + places * (end - base)).argsort(-1)
    parts = F.one_hot(order, 5).double().mean(0)[:, list(ranks)]  # (row, rank, entry)
    torch.testing.assert_close(torch.stack(found, -1), parts * (end - base)[:, None], atol=1e-3, rtol=0)
    torch.testing.assert_close(torch.stack(found).sum(0), function(end) - function(base))
    assert float(((parts > 0.02) & (parts < 0.98)).sum()) > 0  # the control: some have a rank for a while


@pytest.mark.parametrize("name", BY_RANK)
def test_by_shares_the_choice_is_held(name):
    function, ranks = BY_RANK[name]
    _, end = points(1, 3, 5)
    block, mode = points(2, 3, 5)[0], ShareIncrements()
    with mode:
        found = function(mode.follow(block.clone(), torch.zeros_like(end), end))
    chosen = block.gather(1, end.argsort(1)[:, list(ranks)])
    torch.testing.assert_close(found, chosen, rtol=0, atol=0)
    assert float((chosen - function(block)).abs().max()) > 0.1  # the control: the order of the increments is another


SAME = {
    "cummax": (
        lambda z: z - 0.3 * z.cummax(1)[0],
        lambda z: z - 0.3 * torch.stack([z[:, : k + 1].amax(1) for k in range(6)], 1),
    ),
    "cummin": (
        lambda z: z - 0.3 * torch.cummin(z, 1).values,
        lambda z: z + 0.3 * torch.stack([(-z)[:, : k + 1].amax(1) for k in range(6)], 1),
    ),
    "aminmax": (
        lambda z: z - torch.aminmax(z, dim=1, keepdim=True).max + z.aminmax(dim=1, keepdim=True)[0],
        lambda z: z - z.amax(1, keepdim=True) + z.amin(1, keepdim=True),
    ),
    "topk": (lambda z: z - z.topk(2, 1).values.sum(1)[:, None], lambda z: z - z.sort(1)[0][:, 4:].sum(1)[:, None]),
    "the first of topk": (lambda z: z - z.topk(1, 1)[0], lambda z: z - z.amax(1, keepdim=True)),
    "median of all": (lambda z: z - z.median(), lambda z: z - z.kthvalue(3, 1, keepdim=True)[0]),
}


@pytest.mark.slow
@pytest.mark.parametrize("expansion", ["secant", "shares"])
@pytest.mark.parametrize("name", SAME)
def test_a_choice_by_order_has_the_n_grams_of_the_same_choice_in_other_words(name, expansion):
    judge_same_n_grams([model_with(function) for function in SAME[name]], expansion)


def one_of_two(first, second):
    return torch.cat((first, second), 1).repeat(1, 3)


def test_the_place_of_the_largest_of_two_moves_as_a_comparison_does():
    models = [
        model_with(lambda z: F.one_hot(z[:, :2].argmax(1), 2).to(z).repeat(1, 3) + 0.1 * z),
        model_with(lambda z: one_of_two(*((z[:, a] > z[:, 1 - a])[:, None].to(z) for a in (0, 1))) + 0.1 * z),
    ]
    judge_same_n_grams(models)


def by_threshold(z, scores):
    sorted_scores = scores.sort(1).values
    return (scores > 0.5 * (sorted_scores[:, -3:-2] + sorted_scores[:, -4:-3])).to(z)


def scattered(z, scores):
    return torch.zeros_like(z).scatter(1, scores.topk(3, 1).indices, 1.0)


def scattered_in_place(z, scores):
    result = torch.zeros_like(z)
    result.scatter_(1, scores.topk(3, 1).indices, 1.0)
    return result


def written_by_rows(z, scores):
    result, chosen = torch.zeros_like(z), torch.topk(scores, 3, dim=1).indices
    result[torch.arange(len(z)).repeat_interleave(3), chosen.reshape(-1)] = 1
    return result


def one_hots(z, scores):
    return F.one_hot(scores.argsort(1, descending=True)[:, :3], 6).sum(1).to(z)


def compared(z, scores):
    chosen = scores.topk(3).indices
    return (chosen.unsqueeze(-1) == torch.arange(6)).to(z).sum(1)


def all_but_the_others(z, scores):
    others = torch.topk(scores, 3, largest=False).indices
    return torch.ones_like(z).scatter(1, others, torch.zeros(len(z), 3, dtype=z.dtype))


def scattered_by_name(z, scores):
    return torch.scatter(torch.zeros_like(z), dim=1, index=scores.topk(3, 1).indices, value=1.0)


def looked_up(z, scores):
    return F.embedding(scores.topk(3).indices, torch.eye(6, dtype=z.dtype)).sum(1)


def table_rows(z, scores):
    return torch.eye(6, dtype=z.dtype)[scores.topk(3).indices].sum(1)


MASKS = (
    scattered_in_place,
    scattered_by_name,
    written_by_rows,
    one_hots,
    compared,
    all_but_the_others,
    looked_up,
    table_rows,
)


def modules(mask):
    """A step in which the three units of the highest scores are updated, as in recurrent independent mechanisms."""

    def function(z, scorer):
        active = mask(z, scorer(z))
        return active * z.sin() + (1 - active) * z

    torch.manual_seed(1)
    return model_with(function, torch.nn.Linear(6, 6))


@pytest.mark.parametrize("mask", MASKS)
def test_units_chosen_by_their_scores_have_the_same_n_grams_however_the_choice_is_written(mask):
    judge_same_n_grams([modules(mask), modules(scattered)])


def test_modules_that_compete_by_what_they_remember_have_n_grams_that_sum():
    def function(z, h):  # without a state all scores are equal
        return z * torch.zeros_like(z).scatter(1, h.topk(3, 1).indices, 1.0)

    class Competing(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.x, self.h = torch.nn.Linear(3, 6), torch.nn.Linear(6, 6, bias=False)

        def forward(self, x, h):
            return torch.tanh(function(self.x(x) + self.h(h), self.h(h)))

    model = model_with(torch.nn.Identity())
    model.cell = Competing().double()
    found = unrolled.explain(model, SERIES[:1], target=1)
    assert abs(found.ledger.remainder) < 1e-12
    assert not any("quadrature" in note for note in found.notes)
    assert abs(unrolled.explain(model, SERIES[:1], target=1, expansion="zero").ledger.remainder) > 1e-4


@pytest.mark.parametrize("expansion", ["secant", "shares"])
def test_units_chosen_by_a_threshold_have_n_grams_that_sum(expansion):
    model = modules(by_threshold)
    found = unrolled.explain(model, SERIES[:1], target=1, expansion=expansion)
    expected = unrolled.explain(modules(scattered), SERIES[:1], target=1, expansion=expansion)
    assert abs(found.ledger.remainder) < 1e-12
    assert found.ledger.logit == pytest.approx(expected.ledger.logit, rel=1e-12)
    assert not any("quadrature" in note for note in found.notes)


def test_a_choice_does_not_move_where_the_order_changes_within_it():
    mode = SecantIncrements()
    base, end = torch.tensor([[3.0, 2.0, 0.0, -1.0], [3.0, 0.0, 2.0, -1.0]]).double(), None
    end = torch.tensor([[2.0, 4.0, -1.0, 0.0], [2.0, 4.0, -1.0, 0.0]]).double()
    with mode:
        scores = mode.follow(torch.randn(2, 4, dtype=torch.float64), base, end)
        moved = torch.zeros_like(scores).scatter(1, scores.topk(2, 1).indices, 1.0)
        constant = torch.full((2, 4), 5.0, dtype=torch.float64).gather(1, scores.topk(2, 1).indices)
    assert float(moved[0].abs().max()) < 1e-15
    assert float(moved[1].abs().max()) > 1e-3  # the control: the second unit takes the place of the third
    assert float(constant.abs().max()) < 1e-14


def test_entries_that_all_begin_equal_pass_each_other_in_one_order():
    _, end = points(3, 40, 6)
    start = torch.zeros_like(end)
    ranks = [ranks_beside(each, [], end[:, :0].long()) for each in (start, end)]
    order = OrderOnALine.of(start, end, *ranks)
    found = order.increments(points(4, 40, 6)[0])
    assert float(found.sum(-1).abs().max()) < 1e-12  # one entry has each rank, and each entry has one
    assert float(found.sum(-2).abs().max()) < 1e-12
    exchanged = one_hot(ranks[1], end) - one_hot(ranks[0], end)
    torch.testing.assert_close(order.increments(end - start), exchanged)
    assert float(exchanged.abs().max()) == 1


def test_masked_entries_are_never_chosen():
    base, end = points(5, 2, 6)
    for each in (base, end):
        each[:, 1:3] = -torch.inf
    block, mode = (end - base).nan_to_num(0.0), SecantIncrements()
    with mode:
        scores = mode.follow(block, base, end)
        values, chosen = scores.topk(3, 1)
        again = scores.gather(1, chosen)
    expected = end.topk(3, 1).values - base.topk(3, 1).values
    torch.testing.assert_close(values, expected)
    torch.testing.assert_close(again, expected)


def test_equal_entries_that_change_places_are_refused():
    equal = torch.zeros(1, 2)
    ranks = torch.tensor([[0, 1]]), torch.tensor([[1, 0]])
    with pytest.raises(UnsupportedOperationError, match="equal or infinite"):
        OrderOnALine.of(equal, equal, *ranks)
    OrderOnALine.of(equal, torch.tensor([[1.0, 0.0]]), *ranks)  # the control: they move


@pytest.mark.parametrize("kind", [torch.sign, torch.relu])
def test_equal_entries_of_which_none_is_chosen_keep_their_order(kind):
    base, end = kind(points(8, 200, 6))
    mode = SecantIncrements()
    with mode:
        found = F.one_hot(mode.follow(end - base, base, end).argmax(1), 6).to(end)
    change = F.one_hot(end.argmax(1), 6) - F.one_hot(base.argmax(1), 6)
    torch.testing.assert_close(found, change.double())
    alone = [ranks_beside(each, [5], each.argmax(1, keepdim=True)) for each in (base, end)]
    with pytest.raises(UnsupportedOperationError, match="equal or infinite"):  # the control: ranks of one end by itself
        OrderOnALine.of(base, end, *alone)


WITHOUT_AXES = {
    "sort": lambda z: z.sort()[0],
    "topk": lambda z: z.topk(1)[0][()],
    "argsort": lambda z: z + z.argsort(),
    "kthvalue": lambda z: z.kthvalue(1)[0],
    "median": lambda z: z.median(0)[0],
    "cummax": lambda z: z.cummax(0)[0],
}


@pytest.mark.parametrize("name", WITHOUT_AXES)
def test_the_order_of_a_number_without_axes_is_refused_by_name(name):
    base, end = points(2, 6)
    with SecantIncrements() as mode:
        moving = mode.follow(end - base, base, end)
        with pytest.raises(UnsupportedOperationError, match="without axes"):
            WITHOUT_AXES[name](moving.sum())
        assert WITHOUT_AXES["sort"](moving).shape == (6,)  # the control: it has an axis


LARGE = {
    "sort": lambda z: z.sort(1)[0],
    "topk": lambda z: z.topk(2, 1)[0],
    "gather of the largest": lambda z: z.gather(1, z.argmax(1, keepdim=True)),
}


@pytest.mark.parametrize("name", LARGE)
def test_an_order_of_more_pairs_than_fit_into_memory_is_refused_by_name(name):
    """As the largest of a vocabulary."""
    base, end = points(2, 2, 3000)
    with SecantIncrements() as mode:
        with pytest.raises(UnsupportedOperationError, match="too many pairs"):
            LARGE[name](mode.follow(end - base, base, end))
        few = [each[:, :300] for each in (end - base, base, end)]
        assert LARGE[name](mode.follow(*few)).shape == LARGE[name](few[2]).shape  # the control: fewer fit
