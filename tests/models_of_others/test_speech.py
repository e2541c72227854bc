# the models are written as users write them
"""Speech: convolutions in front, batch normalisation in between, state kept by chunks, normalised last states."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence as pack
from torch.nn.utils.rnn import pad_packed_sequence as unpack

import unrolled
from outside_judge import Model, judge_account, judge_explanation, numbers, one_of

V = 30


class SequenceWise(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        t, n = (x.size(0), x.size(1))
        x = x.view(t * n, -1)
        x = self.module(x)
        return x.view(t, n, -1)


class MaskConv(nn.Module):
    def __init__(self, seq):
        super().__init__()
        self.seq_module = seq

    def forward(self, x, lengths):
        for module in self.seq_module:
            x = module(x)
            mask = torch.BoolTensor(x.size()).fill_(0)
            for i, length in enumerate(lengths):
                length = length.item()
                if mask[i].size(2) - length > 0:
                    mask[i].narrow(2, length, mask[i].size(2) - length).fill_(1)
            x = x.masked_fill(mask, 0)
        return (x, lengths)


class BatchRNN(nn.Module):
    def __init__(self, i, h, kind=nn.LSTM, bidirectional=False, batch_norm=True):
        super().__init__()
        self.bidirectional = bidirectional
        self.batch_norm = SequenceWise(nn.BatchNorm1d(i)) if batch_norm else None
        self.rnn = kind(i, h, bidirectional=bidirectional, bias=True)

    def forward(self, x, lengths):
        if self.batch_norm is not None:
            x = self.batch_norm(x)
        x = pack(x, lengths)
        x, _h = self.rnn(x)
        x, _ = unpack(x)
        if self.bidirectional:
            x = x.view(x.size(0), x.size(1), 2, -1).sum(2).view(x.size(0), x.size(1), -1)
        return x


class Lookahead(nn.Module):
    def __init__(self, n, context):
        super().__init__()
        self.context = context
        self.pad = (0, context - 1)
        self.conv = nn.Conv1d(n, n, kernel_size=context, stride=1, groups=n, padding=0, bias=None)

    def forward(self, x):
        x = x.transpose(0, 1).transpose(1, 2)
        x = F.pad(x, pad=self.pad, value=0)
        x = self.conv(x)
        return x.transpose(1, 2).transpose(0, 1).contiguous()


class DS2(nn.Module):
    def __init__(self, bi=False, layers=3):
        super().__init__()
        self.conv = MaskConv(
            nn.Sequential(
                nn.Conv2d(1, 2, (5, 3), stride=(2, 2), padding=(2, 1)),
                nn.BatchNorm2d(2),
                nn.Hardtanh(0, 20, inplace=True),
            )
        )
        size = 2 * 6
        rnns = [BatchRNN(size, 6, bidirectional=bi, batch_norm=False)] + [
            BatchRNN(6, 6, bidirectional=bi) for _ in range(layers - 1)
        ]
        self.rnns = nn.Sequential(*rnns)
        self.lookahead = nn.Sequential(Lookahead(6, 3), nn.Hardtanh(0, 20, inplace=True)) if not bi else None
        self.fc = nn.Sequential(SequenceWise(nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 7, bias=False))))
        for m in self.modules():
            if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d)):
                m.running_mean.normal_()
                m.running_var.uniform_(0.5, 1.5)

    def forward(self, x, lengths):
        lengths = lengths.cpu().int()
        out_len = (lengths + 1) // 2
        x, _ = self.conv(x, out_len)
        s = x.size()
        x = x.view(s[0], s[1] * s[2], s[3])
        x = x.transpose(1, 2).transpose(0, 1).contiguous()
        for rnn in self.rnns:
            x = rnn(x, out_len)
        if self.lookahead is not None:
            x = self.lookahead(x)
        x = self.fc(x)
        x = x.transpose(0, 1)
        return (F.log_softmax(x, dim=-1) if self.training else F.softmax(x, dim=-1), out_len)


class CRNN(nn.Module):
    def __init__(self, classes=6):
        super().__init__()
        self.cnn = nn.Sequential(
            nn.Conv2d(1, 4, 3, 1, 1),
            nn.ReLU(True),
            nn.MaxPool2d(2, 2),
            nn.Conv2d(4, 6, 3, 1, 1),
            nn.BatchNorm2d(6),
            nn.ReLU(True),
            nn.MaxPool2d((2, 2), (2, 1), (0, 1)),
        )
        self.map_to_seq = nn.Linear(6 * 2, 8)
        self.rnn1 = nn.LSTM(8, 6, bidirectional=True)
        self.rnn2 = nn.LSTM(12, 6, bidirectional=True)
        self.dense = nn.Linear(12, classes)

    def forward(self, images):
        conv = self.cnn(images)
        b, c, h, w = conv.size()
        conv = conv.view(b, c * h, w).permute(2, 0, 1)
        seq = self.map_to_seq(conv)
        r, _ = self.rnn1(seq)
        r, _ = self.rnn2(r)
        return self.dense(r)


class VAD(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("forward_basis_buffer", torch.randn(8, 1, 16))
        self.encoder = nn.Sequential(
            nn.Conv1d(4, 6, 3, padding=1), nn.ReLU(), nn.Conv1d(6, 6, 3, stride=2, padding=1), nn.ReLU()
        )
        self.rnn = nn.LSTMCell(6, 6)
        self.decoder = nn.Sequential(nn.Dropout(0.1), nn.ReLU(), nn.Conv1d(6, 1, 1), nn.Sigmoid())
        self.reset_states()

    def reset_states(self):
        self._state = torch.zeros(0)
        self._context = torch.zeros(0)

    def stft(self, x):
        x = F.pad(x.unsqueeze(1), (0, 4), mode="reflect").squeeze(1)
        f = F.conv1d(x.unsqueeze(1), self.forward_basis_buffer, stride=8)
        return torch.sqrt(f[:, :4] ** 2 + f[:, 4:] ** 2)

    def forward(self, x, sr=16000):
        if x.dim() == 1:
            x = x.unsqueeze(0)
        if not len(self._context):
            self._context = torch.zeros(x.shape[0], 8, dtype=x.dtype)
        x = torch.cat([self._context, x], 1)
        f = self.encoder(self.stft(x)).squeeze(-1)
        f = f.mean(-1) if f.dim() == 3 else f
        if len(self._state):
            h, c = self.rnn(f, (self._state[0], self._state[1]))
        else:
            h, c = self.rnn(f)
        self._state = torch.stack([h, c])
        self._context = x[..., -8:]
        out = self.decoder(h.unsqueeze(-1))
        return out.squeeze(2).mean(1, keepdim=True)


class VADAudio(VAD):
    """audio_forward: chunk by chunk over the whole file"""

    def forward(self, x):
        self.reset_states()
        outs = []
        for i in range(0, x.shape[1], 32):
            outs.append(super().forward(x[:, i : i + 32]))
        return torch.cat(outs, 1)


class SpeakerEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(input_size=5, hidden_size=6, num_layers=3, batch_first=True)
        self.linear = nn.Linear(6, 4)
        self.relu = nn.ReLU()
        self.similarity_weight = nn.Parameter(torch.tensor([10.0]))
        self.similarity_bias = nn.Parameter(torch.tensor([-5.0]))

    def forward(self, utterances, hidden_init=None):
        _out, (hidden, _cell) = self.lstm(utterances, hidden_init)
        raw = self.relu(self.linear(hidden[-1]))
        return raw / (torch.norm(raw, dim=1, keepdim=True) + 1e-05)


class DVector(nn.Module):
    """attentive pooled, sliding windows of one utterance averaged"""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 6, num_layers=2, batch_first=True)
        self.embedding = nn.Linear(6, 4)
        self.linear = nn.Linear(4, 1)
        self.seg_len = 4

    def embed(self, x):
        out, _ = self.lstm(x)
        e = torch.tanh(self.embedding(out))
        w = F.softmax(self.linear(e), dim=1)
        e = torch.sum(e * w, dim=1)
        return e.div(e.norm(p=2, dim=-1, keepdim=True))

    def forward(self, utterance):
        if utterance.size(0) <= self.seg_len:
            e = self.embed(utterance.unsqueeze(0)).squeeze(0)
        else:
            segs = utterance.unfold(0, self.seg_len, self.seg_len // 2).transpose(1, 2)
            e = self.embed(segs).mean(dim=0)
            e = e.div(e.norm(p=2, dim=-1, keepdim=True))
        return e


class LangID(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(5, 6, 3, padding=1)
        self.bn = nn.BatchNorm1d(6)
        self.rnn = nn.GRU(6, 4, num_layers=2, bidirectional=True, batch_first=True, dropout=0.1)
        self.W = nn.Linear(8, 8, bias=False)
        self.v = nn.Parameter(torch.randn(8))
        self.fc = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Dropout(), nn.Linear(8, 4))

    def forward(self, x, lengths):
        z = F.relu(self.bn(self.conv(x.transpose(1, 2)))).transpose(1, 2)
        p = pack(z, lengths.cpu(), batch_first=True, enforce_sorted=False)
        h, _ = unpack(self.rnn(p)[0], batch_first=True)
        mask = torch.arange(h.size(1))[None] < lengths[:, None]
        e = torch.matmul(torch.tanh(self.W(h)), self.v).masked_fill(~mask, float("-inf"))
        a = F.softmax(e, dim=1).unsqueeze(-1)
        mean = (a * h).sum(1)
        std = torch.sqrt((a * (h - mean.unsqueeze(1)) ** 2).sum(1).clamp(min=1e-09))
        return self.fc(torch.cat((mean, std), 1))


class BeatTracker(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 3, (3, 3), padding=(1, 0))
        self.pool = nn.MaxPool2d((1, 3))
        self.elu = nn.ELU()
        self.lstm = nn.LSTM(3 * 4, 5, num_layers=3, bidirectional=True, batch_first=True, dropout=0.1)
        self.beat = nn.Linear(10, 1)
        self.down = nn.Linear(10, 1)

    def forward(self, spec):
        x = spec.unsqueeze(1)
        x = self.pool(self.elu(self.conv1(x)))
        x = x.permute(0, 2, 1, 3).flatten(2)
        x, _ = self.lstm(x)
        return {"beat": torch.sigmoid(self.beat(x)).squeeze(-1), "downbeat": torch.sigmoid(self.down(x)).squeeze(-1)}


LENGTHS = torch.tensor([12, 9])
MODELS = {
    "DeepSpeech2": Model(
        DS2, (numbers(2, 1, 12, 12), LENGTHS), lambda out: out[0][:, 2, 3], alone=one_of(numbers(2, 1, 12, 12), LENGTHS)
    ),
    "DeepSpeech2, both directions": Model(
        lambda: DS2(True, 2),
        (numbers(2, 1, 12, 12), LENGTHS),
        lambda out: out[0][:, 2, 3],
        alone=one_of(numbers(2, 1, 12, 12), LENGTHS),
    ),
    "captcha": Model(CRNN, (numbers(2, 1, 8, 10),), lambda out: out[2, :, 3], alone=one_of(numbers(2, 1, 8, 10))),
    "voice activity by chunks": Model(
        VADAudio, (numbers(2, 96),), lambda out: out[:, -1], alone=one_of(numbers(2, 96))
    ),
    "speaker": Model(SpeakerEncoder, (numbers(2, 6, 5),), lambda out: out.sum(1), alone=one_of(numbers(2, 6, 5))),
    "speaker by windows": Model(DVector, (numbers(10, 5),), lambda out: out[1]),
    "language": Model(LangID, (numbers(2, 12, 5), LENGTHS), 2, alone=one_of(numbers(2, 12, 5), LENGTHS)),
    "beats": Model(BeatTracker, (numbers(2, 6, 14),), lambda out: out["beat"][:, 3], alone=one_of(numbers(2, 6, 14))),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_account_is_right(name):
    judge_account(MODELS[name])


@pytest.mark.parametrize("name", MODELS)
def test_the_explanation_is_right(name):
    judge_explanation(MODELS[name])


def test_a_probability_at_the_end_is_named():
    case = MODELS["DeepSpeech2"]
    for call in (unrolled.account, unrolled.explain):
        found = call(case.built(), *case.alone(0), target=case.target)
        assert any("result of softmax, not a logit" in note for note in found.notes)
    case = MODELS["beats"]
    for call in (unrolled.account, unrolled.explain):
        assert any(
            "result of a sigmoid" in note for note in call(case.built(), *case.alone(0), target=case.target).notes
        )
