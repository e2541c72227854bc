"""Recurrences in complex numbers and by Fourier transforms, spatial and stabilised cells, and gates in place."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled
from outside_judge import Model, ids, judge_account, judge_explanation, numbers, one_of

V = 30


class S4D(nn.Module):
    """A diagonal state space, as a convolution by FFT."""

    def __init__(self, d=3, n=4):
        super().__init__()
        self.e, self.fc = nn.Embedding(V, d), nn.Linear(d, 2)
        self.C, self.log_dt = nn.Parameter(torch.randn(d, n, 2)), nn.Parameter(torch.rand(d))
        self.A_real = nn.Parameter(torch.rand(d, n))
        self.A_imag, self.D = nn.Parameter(math.pi * torch.arange(n).repeat(d, 1).float()), nn.Parameter(torch.randn(d))

    def discrete(self):
        dt, A = torch.exp(self.log_dt)[:, None], -torch.exp(self.A_real) + 1j * self.A_imag
        return torch.exp(A * dt), torch.view_as_complex(self.C) * (torch.exp(A * dt) - 1) / A

    def forward(self, x):
        u, (step, C) = self.e(x).transpose(1, 2), self.discrete()
        size = u.shape[-1]
        kernel = 2 * torch.einsum("hn,hnl->hl", C, step[..., None] ** torch.arange(size)).real
        y = torch.fft.irfft(torch.fft.rfft(kernel, n=2 * size) * torch.fft.rfft(u, n=2 * size), n=2 * size)[..., :size]
        return self.fc(F.gelu(y + u * self.D[:, None])[..., -1])


class S4DLoop(S4D):
    def forward(self, x):
        u, (step, C) = self.e(x), self.discrete()
        state = torch.zeros(len(x), *step.shape, dtype=step.dtype)
        for t in range(x.shape[1]):
            state = step * state + u[:, t, :, None]
        return self.fc(F.gelu(2 * (C * state).sum(-1).real + self.D * u[:, -1]))


class LinearRecurrentUnit(nn.Module):
    """Weights that are complex parameters, or made of real ones; the numbers of the input become complex first."""

    def __init__(self, complex_weights=True):
        super().__init__()
        kind = torch.complex128
        weights = {
            "a": torch.rand(3, dtype=kind),
            "b": torch.randn(3, 2, dtype=kind),
            "c": torch.randn(2, 3, dtype=kind),
        }
        weights["bias"] = torch.randn(3, dtype=kind)
        for name, each in weights.items():
            self.register_parameter(name, nn.Parameter(each if complex_weights else torch.view_as_real(each)))

    def weight(self, name):
        found = self.get_parameter(name)
        return found if found.is_complex() else torch.view_as_complex(found)

    def forward(self, x):
        state = x.new_zeros(len(x), 3, dtype=torch.complex128)
        for given in x.to(torch.complex128).unbind(1):
            state = self.weight("a") * state + given @ self.weight("b").mT + self.weight("bias")
        return torch.tanh((state @ self.weight("c").mT).real)


class Unitary(nn.Module):
    """Phases, a Fourier transform, and modReLU."""

    def __init__(self):
        super().__init__()
        self.e, self.fc = nn.Embedding(V, 4), nn.Linear(10, 2)
        self.into = nn.Parameter(torch.randn(4, 5, 2))
        self.phase, self.b = nn.Parameter(torch.rand(5)), nn.Parameter(0.2 * torch.rand(5))

    def forward(self, x):
        u, into, turn = (
            self.e(x),
            torch.view_as_complex(self.into),
            torch.polar(torch.ones_like(self.phase), self.phase),
        )
        h = torch.full((len(x), 5), 0.1 - 0.2j, dtype=into.dtype)
        for t in range(u.shape[1]):
            z = torch.fft.ifft(torch.fft.fft(h * turn) * turn.conj()) + u[:, t].to(into.dtype) @ into
            size = z.abs()
            h = F.relu(size + self.b) * z / (size + 1e-6)
        return self.fc(torch.cat([h.real, h.imag], -1))


class Spectrogram(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.fc = nn.GRU(5, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, wave):
        window = torch.hann_window(8, dtype=wave.dtype)
        power = torch.log1p(torch.stft(wave, 8, 4, window=window, return_complex=True).abs() ** 2)
        return self.fc(self.rnn(power.transpose(1, 2))[1][0])


class ConvLSTMCell(nn.Module):
    def __init__(self, channels, hidden):
        super().__init__()
        self.conv = nn.Conv2d(channels + hidden, 4 * hidden, 3, padding=1)

    def forward(self, x, state):
        h, c = state
        i, f, o, g = self.conv(torch.cat([x, h], 1)).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


class ConvLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleList([ConvLSTMCell(1, 2), ConvLSTMCell(2, 2)])
        self.head = nn.Conv2d(2, 1, 1)

    def forward(self, frames):
        states = [tuple(frames.new_zeros(len(frames), 2, *frames.shape[-2:]) for _ in range(2)) for _ in self.cells]
        for x in frames.unbind(1):
            for k, cell in enumerate(self.cells):
                states[k] = cell(x, states[k])
                x = states[k][0]
        return self.head(x)


class Exponential(nn.Module):
    """The sLSTM of xLSTM, with its stabiliser."""

    def __init__(self):
        super().__init__()
        self.W, self.R = nn.Linear(3, 16), nn.Linear(4, 16, bias=False)

    def forward(self, x, state):
        h, c, n, m = state
        i, f, z, o = (self.W(x) + self.R(h)).chunk(4, -1)
        log_f = F.logsigmoid(f)
        new = torch.maximum(log_f + m, i)
        i, f = torch.exp(i - new), torch.exp(log_f + m - new)
        c, n = f * c + i * torch.tanh(z), f * n + i
        h = torch.sigmoid(o) * c / n
        return h, (h, c, n, new)


class XLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.cell, self.fc = nn.Embedding(V, 3), Exponential(), nn.Linear(4, 2)

    def forward(self, ids):
        state = (self.fc.weight.new_zeros(len(ids), 4),) * 4
        for x in self.e(ids).unbind(1):
            h, state = self.cell(x, state)
        return self.fc(h)


class Written(nn.Module):
    def __init__(self, sigmoid=torch.sigmoid, tanh=torch.tanh, parts=lambda g: (g[:, :5], g[:, 5:10], g[:, 10:])):
        super().__init__()
        self.e, self.x, self.h, self.fc = nn.Embedding(V, 4), nn.Linear(4, 15), nn.Linear(5, 15), nn.Linear(5, 2)
        self.sigmoid, self.tanh, self.parts = sigmoid, tanh, parts

    def forward(self, ids):
        c = h = self.fc.weight.new_zeros(len(ids), 5)
        for x in self.e(ids).unbind(1):
            f, o, g = self.parts(self.x(x) + self.h(h))
            f, o, g = self.sigmoid(f), self.sigmoid(o), self.tanh(g)
            c = f * c + (1 - f) * g
            h = o * torch.tanh(c)
        return self.fc(h)


FRAMES, WAVE, SERIES = numbers(2, 3, 1, 3, 3), numbers(2, 32), numbers(2, 4, 2)
ACCOUNTS = {
    "S4D": Model(S4D, (ids(2, 5),), 1, (0,), alone=one_of(ids(2, 5))),
    "unitary": Model(Unitary, (ids(2, 5),), 1, (0,), alone=one_of(ids(2, 5))),
    "complex parameters": Model(LinearRecurrentUnit, (SERIES,), 1, alone=one_of(SERIES)),
    "spectrogram": Model(Spectrogram, (WAVE,), 1, alone=one_of(WAVE)),
}
NETWORKS = {
    "ConvLSTM": Model(ConvLSTM, (FRAMES,), lambda out: out[:, 0, 1, 2], alone=one_of(FRAMES)),
    "xLSTM": Model(XLSTM, (ids(2, 4),), 1, (0,), alone=one_of(ids(2, 4))),
}


@pytest.mark.parametrize("name", [*ACCOUNTS, *NETWORKS])
def test_the_account_is_right(name):
    judge_account({**ACCOUNTS, **NETWORKS}[name])


@pytest.mark.parametrize("name", NETWORKS)
def test_the_explanation_is_right_without_quadrature(name):
    case = NETWORKS[name]
    for found, given in zip(judge_explanation(replace(case, texts=())), case.args[0], strict=True):
        assert not any("quadrature" in note for note in found.notes)
        assert list(found.tokens) == ([str(each) for each in given.tolist()] if case.texts else ["x0", "x1", "x2"])


def test_the_convolution_has_the_account_of_the_loop():
    case = ACCOUNTS["S4D"]
    loop = S4DLoop().double()
    loop.load_state_dict(case.built().state_dict())
    found, expected = (unrolled.account(model, *case.args, target=1) for model in (case.built(), loop))
    torch.testing.assert_close(found.tokens, expected.tokens, atol=1e-12, rtol=0)


def test_complex_parameters_have_the_account_of_pairs_of_real_ones():
    found, expected = LinearRecurrentUnit(), LinearRecurrentUnit(complex_weights=False)
    for name, weight in found.named_parameters():
        expected.get_parameter(name).data = torch.view_as_real(weight.data)
    found, expected = (unrolled.account(model, SERIES, target=1) for model in (found, expected))
    assert float(found.biases["bias"].abs().min()) > 1e-3
    torch.testing.assert_close(found.features["0"], expected.features["0"], atol=1e-14, rtol=0)
    torch.testing.assert_close(found.biases["bias"], expected.biases["bias"], atol=1e-14, rtol=0)


def test_gates_in_place_have_the_account_of_gates():
    torch.manual_seed(0)
    plain, changed = Written().double(), Written(torch.Tensor.sigmoid_, torch.Tensor.tanh_).double()
    changed.load_state_dict(plain.state_dict())
    found, expected = (unrolled.account(model, ids(2, 4), target=1) for model in (changed, plain))
    assert found.closes
    torch.testing.assert_close(found.tokens, expected.tokens, atol=1e-14, rtol=0)
    of_chunks = Written(torch.Tensor.sigmoid_, torch.Tensor.tanh_, lambda g: g.chunk(3, 1))
    with pytest.raises(unrolled.UsageError, match=r"in place \(sigmoid_\) that chunk, split or unbind gave"):
        unrolled.account(of_chunks, ids(2, 4), target=1)
