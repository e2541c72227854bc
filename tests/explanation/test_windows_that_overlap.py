"""Windows that overlap read the same numbers and tokens: an output of one of them is explained by its own."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import unrolled
from unrolled.errors import UsageError

SERIES = torch.randn(2, 5, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
IDS = torch.tensor([[7, 3, 9, 4, 8], [2, 5, 6, 1, 3]])


class Windows(nn.Module):
    """Gives one number for each window of three steps."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head = nn.Embedding(11, 2), nn.GRU(2, 4, batch_first=True), nn.Linear(4, 1)
        self.double()

    def forward(self, given: Tensor) -> Tensor:
        steps = given if given.is_floating_point() else self.embed(given)
        return torch.cat([self.head(self.rnn(each)[1][0]) for each in self.windows(steps)], dim=1)

    def windows(self, steps: Tensor) -> list[Tensor]:
        return [steps[:, first : first + 3] for first in range(3)]


class AtOnce(Windows):
    def forward(self, given: Tensor) -> Tensor:
        steps = given if given.is_floating_point() else self.embed(given)
        windows = steps.unfold(1, 3, 1).transpose(2, 3)
        return self.head(self.rnn(windows.flatten(0, 1))[1][0]).view(len(given), -1)


@pytest.mark.parametrize("target", [0, 1, 2])
@pytest.mark.parametrize("given", [SERIES, IDS], ids=["numbers", "ids"])
def test_windows_of_one_call_are_explained_as_those_of_several_calls(given, target):
    words = [list("abcde"), list("vwxyz")] if given is SERIES else [list(map(str, row)) for row in IDS.tolist()]
    named = words if given is SERIES else None  # ids name themselves
    found, expected = (unrolled.explain_batch(kind(), given, target=target, tokens=named) for kind in (AtOnce, Windows))
    for one, other in zip(found, expected, strict=True):
        assert one.tokens == other.tokens
        assert one.notes == other.notes
        torch.testing.assert_close(one.token_scores, other.token_scores)
        if given is SERIES:
            torch.testing.assert_close(one.feature_scores, other.feature_scores)
            torch.testing.assert_close(one.features.values, other.features.values)
    assert [list(each.tokens) for each in found] == [row[target : target + 3] for row in words]


@pytest.mark.parametrize("given", [SERIES, IDS], ids=["numbers", "ids"])
def test_an_example_that_reads_several_windows_has_the_steps_of_each(given):
    found, expected = (
        unrolled.explain_batch(kind(), given, target=lambda out: out.mean(1)) for kind in (AtOnce, Windows)
    )
    for one, other in zip(found, expected, strict=True):
        assert [each.tokens for each in one.sequences] == [each.tokens for each in other.sequences]
        assert len({each.tokens for each in one.sequences}) == 3
        for mine, theirs in zip(one.sequences, other.sequences, strict=True):
            torch.testing.assert_close(mine.token_scores, theirs.token_scores)
    assert found[0].sequences[1].tokens == (("x1", "x2", "x3") if given is SERIES else ("3", "9", "4"))
    with pytest.raises(UsageError, match="the example reads several sequences of one call"):
        unrolled.explain(AtOnce(), SERIES[:1], target=lambda out: out.mean(1), features=["a", "b"])


@pytest.mark.parametrize("given", [SERIES[0], IDS[0]], ids=["numbers", "ids"])
def test_each_window_may_be_an_example(given):
    class Examples(AtOnce):
        def forward(self, given: Tensor) -> Tensor:
            steps = given if given.is_floating_point() else self.embed(given)
            return self.head(self.rnn(steps.unfold(0, 3, 1).transpose(1, 2))[1][0])

    found = unrolled.explain_batch(Examples(), given, target=0, tokens=[list("abcde")] * 3)
    for number, each in enumerate(found):
        alone = unrolled.explain(Examples(), given[number : number + 3], target=0)
        assert each.tokens == tuple("abcde"[number : number + 3])
        torch.testing.assert_close(each.token_scores, alone.token_scores)
        if given.is_floating_point():
            torch.testing.assert_close(each.feature_scores, alone.feature_scores)
            torch.testing.assert_close(each.features.values, given[number : number + 3])
    assert not torch.allclose(found[0].token_scores, found[1].token_scores)  # the control


def test_windows_of_steps_that_are_mixed_are_numbered():
    class Mixed(AtOnce):
        def forward(self, given: Tensor) -> Tensor:
            return super().forward(given + given.mean(1, keepdim=True))

    found = unrolled.explain(Mixed(), SERIES[:1], target=lambda out: out.mean(1))
    assert [each.tokens for each in found.sequences] == [("x0", "x1", "x2")] * 3
