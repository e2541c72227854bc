"""What words do to their neighbours, against operators written out; slopes against numpy; ranks made by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from unrolled.decomposition.decomposition import decompose
from unrolled.lab.papers.analyses.word_operators import (
    Occurrences,
    RankedWords,
    WordSlope,
    fit_slope,
    neighbour_readouts,
)


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
@pytest.mark.parametrize("expansion", ["path", "operating", "zero"])
def test_what_words_do_is_what_the_written_out_operators_do(kind, expansion):
    torch.manual_seed(0)
    rnn = kind(3, 4, batch_first=True).double()
    inputs, readout = torch.randn(2, 5, 3, dtype=torch.float64), torch.randn(4, dtype=torch.float64)
    tokens, lengths = torch.tensor([[5, 6, 7, 8, 9], [6, 6, 7, 0, 0]]), torch.tensor([5, 3])
    ((sequence,),) = decompose(rnn, inputs, lengths, expansion=expansion).sequences
    found = neighbour_readouts(sequence, tokens, lengths, readout)

    size = sequence.g.shape[-1]
    weight = torch.zeros(size, dtype=torch.float64)
    weight[sequence.hidden] = readout
    (operator,), (layer,) = sequence.operators, sequence.layers
    unit = torch.eye(size, dtype=torch.float64)[:, None].expand(size, 2, size).contiguous()
    before, after = [], []
    for time in range(1, 5):
        dense = operator.at(time).apply(unit).permute(1, 2, 0)  # (batch, to, from)
        for row in range(2):
            if time < lengths[row]:
                state, g = layer.states[time, row], sequence.g[:, row]
                before.append((tokens[row, time], weight @ state, weight @ dense[row] @ state))
                after.append((tokens[row, time - 1], weight @ g[time], weight @ (g[time] + dense[row] @ g[time - 1])))
    for side, expected in (("before", before), ("after", after)):
        for column, each in enumerate(found[side]):
            assert each.tolist() == pytest.approx([float(row[column]) for row in expected], abs=1e-12)


def test_a_words_slope_is_the_regressions_and_its_interval_holds_what_was_put_in():
    generator = torch.Generator().manual_seed(0)
    held = 0
    for _ in range(300):
        x = torch.randn(60, generator=generator, dtype=torch.float64)
        noise = torch.randn(60, generator=generator, dtype=torch.float64) * (0.2 + x.abs())  # not alike everywhere
        y = 2 - 0.7 * x + noise
        found = fit_slope(x, y)
        held += abs(found.value + 0.7) <= found.half
    assert found.value == pytest.approx(np.polyfit(x.numpy(), y.numpy(), 1)[0])
    assert 0.9 < held / 300 < 0.99
    # residuals that do not grow with x: the usual standard error says the same
    y = 2 - 0.7 * x + 0.1 * torch.randn(60, generator=generator, dtype=torch.float64)
    usual = np.polyfit(x.numpy(), y.numpy(), 1, cov=True)[1][0, 0] ** 0.5
    assert fit_slope(x, y).half == pytest.approx(1.96 * usual, rel=0.3)


def test_no_slope_is_fitted_where_nothing_varies():
    assert fit_slope(torch.ones(9), torch.randn(9)) is None
    assert fit_slope(torch.tensor([0.0, 1.0]), torch.tensor([0.0, 1.0])) is None


def test_places_are_sorted_by_word_and_dealt_out_without_loss():
    places = Occurrences(torch.tensor([4, 5, 4, 4, 5, 6]), torch.arange(6.0), torch.tensor([0.0, 9, 4, 6, 3, 1]))
    slopes = places.slopes(2)
    assert slopes.keys() == {4}  # of 5 there are two places, too few for a line; of 6 one
    count, slope = slopes[4]
    assert (count, slope.value) == (3, pytest.approx(2))
    assert places.slopes(4) == {}
    both = Occurrences.joined([places, places])
    assert both.slopes(1)[4][0] == 6
    dealt = both.shuffled(0)
    assert sorted(dealt.words.tolist()) == sorted(both.words.tolist())
    assert dealt.words.tolist() != both.words.tolist()
    assert torch.equal(dealt.alone, both.alone)


def test_words_are_ranked_by_what_their_intervals_say():
    words = [
        WordSlope("turns", 9, -0.5, 0.2), WordSlope("may turn", 9, -0.1, 0.2), WordSlope("erases", 9, 0.1, 0.1),
        WordSlope("as usual", 9, 0.9, 0.1), WordSlope("usual", 9, 0.8, 0.1), WordSlope("may grow", 9, 1.2, 0.3),
        WordSlope("grows", 9, 1.5, 0.1),
    ]  # fmt: skip
    ranked = RankedWords.of(reversed(words))
    assert [each.slope for each in ranked.words] == sorted(each.slope for each in words)
    assert [each.word for each in ranked.reversing] == ["turns"]
    assert [each.word for each in ranked.erasing] == ["erases", "may turn"]
    assert [each.word for each in ranked.amplifying] == ["grows"]
    assert ranked.area_under_curve({"turns", "never met"}) == 1
    assert ranked.area_under_curve({"grows"}) == 0
    assert ranked.area_under_curve({"turns", "grows"}) == 0.5
    assert ranked.area_under_curve(set()) is ranked.area_under_curve({each.word for each in words}) is None
