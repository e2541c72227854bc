"""Gates of complex numbers, as GateLoop has them: the size is a sigmoid, and the angle is held."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled

IDS = torch.tensor([[3, 1, 4, 1, 5, 2], [2, 6, 5, 3, 5, 0]])


def of_abs(size, angle):
    """As GateLoop writes it."""
    number = torch.view_as_complex(torch.stack((size.logit(), angle), dim=-1))
    return torch.polar(number.abs().sigmoid(), number.angle())


DECAYS = {
    "polar": torch.polar,
    "polar of a constant angle": lambda size, angle: torch.polar(size, torch.ones_like(angle)),
    "times exp": lambda size, angle: size * torch.exp(1j * angle),
    "complex of gates": lambda size, _: torch.complex(size, 0.5 - size),
    "complex of a gate and a number": lambda size, _: torch.complex(size, torch.full_like(size, 0.2)),
    "conjugate": lambda size, angle: torch.polar(size, angle).conj(),
    "imaginary part": lambda size, angle: torch.polar(size, angle).imag + 0j,
    "the size by abs": of_abs,
}
SIN_IS_NO_GATE = {"complex of a gate and a content": lambda size, angle: size * torch.cos(angle) + 1j * angle}


class Model(nn.Module):
    """h_t = a_t h_{t-1} + v_t with complex a_t, in a loop or by doubling."""

    def __init__(self, decay, scan):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.project, self.head = nn.Embedding(7, 5), nn.Linear(5, 15), nn.Linear(5, 2)
        self.decay, self.scan = decay, scan
        self.double().eval()

    def forward(self, ids):
        size, angle, value = self.project(self.embed(ids)).chunk(3, dim=-1)
        a, h = self.decay(size.sigmoid(), angle), value.to(torch.complex128)
        if self.scan:
            step = 1
            while step < ids.shape[1]:
                h = torch.cat([h[:, :step], h[:, step:] + a[:, step:] * h[:, :-step]], dim=1)
                a = torch.cat([a[:, :step], a[:, step:] * a[:, :-step]], dim=1)
                step *= 2
            return self.head(h[:, -1].real)
        state = torch.zeros_like(h[:, 0])
        for t in range(ids.shape[1]):
            state = a[:, t] * state + h[:, t]
        return self.head(state.real)


def both(decay):
    models = Model(decay, scan=False), Model(decay, scan=True)
    torch.testing.assert_close(models[0](IDS), models[1](IDS))
    found = [unrolled.account(model, IDS, target=1) for model in models]
    for model, each in zip(models, found, strict=True):
        torch.testing.assert_close(each.output, model(IDS)[:, 1].detach())
        assert float(each.remainder.abs().max()) < 1e-12
    return found


@pytest.mark.parametrize("name", DECAYS)
def test_a_scan_of_complex_gates_has_the_account_of_the_loop(name):
    loop, scan = both(DECAYS[name])
    torch.testing.assert_close(scan.tokens, loop.tokens, rtol=0, atol=1e-13)
    for name, part in loop.biases.items():
        torch.testing.assert_close(scan.biases[name], part, rtol=0, atol=1e-13)


def test_polar_is_the_size_times_the_turn():
    by_polar, by_exp = (both(DECAYS[name])[0] for name in ("polar", "times exp"))
    torch.testing.assert_close(by_polar.tokens, by_exp.tokens, rtol=0, atol=1e-13)


@pytest.mark.parametrize("decay", [*SIN_IS_NO_GATE.values(), lambda z, a: torch.complex(z * a.cos(), z * a.sin())])
def test_a_gate_beside_a_content_in_one_complex_number_is_no_gate(decay):
    """The control: both accounts are complete, and differ, as products of contents do in another order."""
    loop, scan = both(decay)
    assert float((loop.tokens - scan.tokens).abs().max()) > 1e-4
