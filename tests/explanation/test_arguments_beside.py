"""A target that reads an argument itself is told that the numbers are constants there, and how they are sources."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import unrolled

CALLS = {
    "explain": lambda *given, **named: unrolled.explain(*given, **named),
    "explain_batch": lambda *given, **named: unrolled.explain_batch(*given, **named)[0],
    "account": lambda *given, **named: unrolled.account(*given, **named),
}
SAID = "itself, which are constants there; to see what they contribute by it, give a model whose forward returns"
SERIES = torch.linspace(-1.0, 1.0, 12).reshape(1, 4, 3)


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.encoder, self.decoder = nn.GRU(3, 5, batch_first=True), nn.GRU(5, 5, batch_first=True)
        self.head = nn.Linear(5, 3)

    def forward(self, x: Tensor, weights: Tensor | None = None) -> Tensor:
        code = self.encoder(x)[1][0].unsqueeze(1).expand(-1, x.shape[1], -1)
        made: Tensor = self.head(self.decoder(code)[0])
        return made if weights is None else made * weights


class Error(Autoencoder):
    """Returns the error itself."""

    def forward(self, x: Tensor, weights: Tensor | None = None) -> Tensor:
        return (super().forward(x, weights) - x).square().mean(dim=(1, 2))


def _said(found) -> list[str]:
    return [note for note in found.notes if SAID in note]


def _targets(x: Tensor):
    """Targets that read it in different ways."""
    first = x[:, 0]
    yield lambda out: (out - x).square().mean(dim=(1, 2))
    yield lambda out: (out[:, 0] - first).square().mean(dim=1)  # a view
    yield lambda out, given=x: (out - given).square().mean(dim=(1, 2))
    yield lambda out: (out - SERIES).square().mean(dim=(1, 2))  # a global name


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_numbers_that_a_target_reads_itself_are_noted(call):
    for target in _targets(SERIES):
        (note,) = _said(call(Autoencoder(), SERIES, target=target))
        assert note.startswith("the target reads the numbers of argument 0 itself")
    with pytest.raises(unrolled.UnrolledError, match="the target reads the numbers of argument 0 itself"):
        call(Autoencoder(), SERIES, target=next(_targets(SERIES)), strict=True)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_what_is_no_number_of_an_argument_is_not_noted(call):
    labels, mask = SERIES + 1, torch.tensor([[[1.0], [1.0], [0.0], [1.0]]])
    model, places = Autoencoder(), torch.tensor([[2]])

    class OfPlaces(Autoencoder):
        def forward(self, x: Tensor, places: Tensor) -> Tensor:
            return super().forward(x)

    for given, target in [
        ((SERIES,), lambda out: (out - labels).square().mean(dim=(1, 2))),  # right answers
        ((SERIES,), lambda out: out[:, 0, 1]),
        ((SERIES,), lambda out: out[torch.arange(len(SERIES)), 0, 1] + SERIES.shape[1]),  # its shape alone
        ((SERIES,), lambda out: out[:, 0, 1] + torch.zeros_like(SERIES).sum() + SERIES.new_zeros(1)[0]),
        ((SERIES, mask), lambda out: (out * mask).sum(dim=(1, 2))),
    ]:
        assert not _said(call(model, *given, target=target))
    assert not _said(call(OfPlaces(), SERIES, places, target=lambda out: out[:, 0].gather(1, places)[:, 0]))


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_right_answers_that_lie_between_the_numbers_of_an_argument_are_none_of_these(call):
    table = torch.linspace(-1.0, 1.0, 16).reshape(1, 4, 4)
    given, answers = table[..., :3], table[..., 3:]
    assert not _said(call(Autoencoder(), given, target=lambda out: (out - answers).square().mean(dim=(1, 2))))
    common = table[..., 2:]  # the control: its first column is the last of the argument
    assert _said(call(Autoencoder(), given, target=lambda out: (out[..., :2] - common).square().mean(dim=(1, 2))))
    repeated = given[:, :1].expand(-1, 4, -1)
    assert _said(call(Autoencoder(), given, target=lambda out: (out - repeated).square().mean(dim=(1, 2))))


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_advice_makes_them_sources(call):
    x = SERIES
    error = (Autoencoder()(x) - x).square().mean(dim=(1, 2))
    assert torch.allclose(Error()(x), error)
    assert not _said(call(Error(), x))
    by_model = unrolled.account(Error(), x)
    by_target = unrolled.account(Autoencoder(), x, target=lambda out: (out - x).square().mean(dim=(1, 2)))
    assert not by_model.constants
    assert by_model.features["0"].abs().sum() > 10 * by_target.features["0"].abs().sum()
    assert float(by_target.constants["constants"].abs()) > 0.1
