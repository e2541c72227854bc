# ruff: noqa: E741, B905  # the models are written as users write them
"""Taggers: scores of a conditional random field, characters within words, states read at offsets, losses beside."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence as pack
from torch.nn.utils.rnn import pad_packed_sequence as unpack
from torch.nn.utils.rnn import pad_sequence

import unrolled
from outside_judge import Model, ids, judge_account, judge_explanation, numbers, one_of

V = 30


class CRF(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.trans = nn.Parameter(torch.randn(k, k))
        self.start = nn.Parameter(torch.randn(k))
        self.end = nn.Parameter(torch.randn(k))

    def score(self, em, tags, mask):
        T, b = tags.shape
        mask = mask.to(em.dtype)
        ar = torch.arange(b)
        s = self.start[tags[0]] + em[0, ar, tags[0]]
        for i in range(1, T):
            s = s + self.trans[tags[i - 1], tags[i]] * mask[i]
            s = s + em[i, ar, tags[i]] * mask[i]
        last = mask.long().sum(0) - 1
        return s + self.end[tags[last, ar]]

    def norm(self, em, mask):
        s = self.start + em[0]
        for i in range(1, len(em)):
            n = torch.logsumexp(s.unsqueeze(2) + self.trans + em[i].unsqueeze(1), dim=1)
            s = torch.where(mask[i].unsqueeze(1).bool(), n, s)
        return torch.logsumexp(s + self.end, 1)


class BiLSTMCRF(nn.Module):
    def __init__(self, what="llh"):
        super().__init__()
        self.what = what
        self.e = nn.Embedding(V, 5, padding_idx=0)
        self.lstm = nn.LSTM(5, 4, bidirectional=True, batch_first=True)
        self.fc = nn.Linear(8, 4)
        self.crf = CRF(4)

    def forward(self, ids, tags=None):
        mask = ids != 0
        p = pack(self.e(ids), mask.sum(1).cpu(), batch_first=True, enforce_sorted=False)
        h, _ = unpack(self.lstm(p)[0], batch_first=True, total_length=ids.size(1))
        em = self.fc(h)
        if self.what == "em":
            return em
        em = em.transpose(0, 1)
        tags = tags.t()
        m = mask.t()
        s = self.crf.score(em, tags, m)
        return s if self.what == "score" else s - self.crf.norm(em, m)


class CharTagger(nn.Module):
    """char BiLSTM final states + word, packed, sorted by length within"""

    def __init__(self):
        super().__init__()
        self.ce = nn.Embedding(V, 3, padding_idx=0)
        self.we = nn.Embedding(V, 4, padding_idx=0)
        self.ch = nn.LSTM(3, 3, bidirectional=True, batch_first=True)
        self.wl = nn.LSTM(10, 5, num_layers=2, bidirectional=True, batch_first=True, dropout=0.3)
        self.out = nn.Linear(10, 4)

    def forward(self, batch):
        w, c, cl = (batch["words"], batch["chars"], batch["char_lengths"])
        b, t, k = c.shape
        cl = cl.view(-1)
        s, order = cl.sort(descending=True)
        _, back = order.sort()
        e = self.ce(c.view(b * t, k))[order]
        _, (h, _) = self.ch(pack(e, s.cpu(), batch_first=True))
        h = torch.cat([h[0], h[1]], -1)[back].view(b, t, -1)
        x = torch.cat([self.we(w), h], -1)
        lens = (w != 0).sum(1)
        o, _ = self.wl(pack(x, lens.cpu(), batch_first=True, enforce_sorted=False))
        o, _ = unpack(o, batch_first=True)
        return {"logits": self.out(o), "lengths": lens}


class ConvTagger(nn.Module):
    """characters by a convolution and a maximum, read before the word that they stand in"""

    def __init__(self, of_words=True):
        super().__init__()
        self.ce, self.we = nn.Embedding(V, 3), nn.Embedding(V, 4)
        self.conv = nn.Conv1d(3, 4, 2, padding=1)
        self.lstm = nn.LSTM(8, 4, batch_first=True)
        self.out = nn.Linear(4, 3)
        self.of_words = of_words

    def forward(self, w, c):
        b, t, k = c.shape
        h = self.conv(self.ce(c.view(b * t, k)).transpose(1, 2)).max(-1)[0].view(b, t, -1)
        x = torch.cat([h, self.we(w) if self.of_words else torch.zeros_like(h)], -1)
        return self.out(self.lstm(x)[0])


class FlairLM(nn.Module):
    """character LMs forward and backward over the joined text; states gathered by offsets; then word BiLSTM"""

    def __init__(self):
        super().__init__()
        self.ef = nn.Embedding(V, 4)
        self.eb = nn.Embedding(V, 4)
        self.f = nn.LSTM(4, 5)
        self.b = nn.LSTM(4, 5)
        self.rp = nn.Linear(10, 6)
        self.rnn = nn.LSTM(6, 4, bidirectional=True, batch_first=True)
        self.linear = nn.Linear(8, 3)

    def forward(self, chars, starts, ends):
        with torch.no_grad():
            hf, _ = self.f(self.ef(chars.t()))
            hb, _ = self.b(self.eb(chars.flip(1).t()))
        n = chars.size(1)
        words = []
        for s, e in zip(starts, ends):
            words.append(torch.cat([hf[e], hb[n - 1 - s]], -1))
        x = self.rp(torch.stack(words, 1))
        o, _ = self.rnn(x)
        return self.linear(o)


class Unbatched(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(V, 4)
        self.lstm = nn.LSTM(4, 5)
        self.tag = nn.Linear(5, 3)

    def forward(self, s):
        e = self.e(s)
        o, _ = self.lstm(e.view(len(s), 1, -1))
        return F.log_softmax(self.tag(o.view(len(s), -1)), dim=1)


class OneHot(nn.Module):
    """char RNN with one_hot and hidden carried"""

    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(V, 6, nonlinearity="relu", batch_first=True)
        self.fc = nn.Linear(6, V)

    def forward(self, x, h=None):
        x = F.one_hot(x, V).to(self.fc.weight.dtype)
        o, h = self.rnn(x, h)
        return (self.fc(o.reshape(-1, 6)), h)


class Lightning(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.ModuleDict({"enc": nn.LSTM(3, 4, batch_first=True), "head": nn.Linear(4, 2)})
        self.loss = nn.CrossEntropyLoss()
        self.log_ = {}

    def forward(self, batch):
        x, y = (batch["x"], batch["y"])
        o = self.model["head"](self.model["enc"](x)[0][:, -1])
        self.log_["loss"] = self.loss(o, y)
        return {"logits": o, "loss": self.log_["loss"]}


class Padded(nn.Module):
    """list of tensors padded inside; last valid state gathered"""

    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(V, 4, padding_idx=0)
        self.rnn = nn.GRU(4, 5)
        self.fc = nn.Linear(5, 2)

    def forward(self, seqs):
        l = torch.tensor([len(s) for s in seqs])
        x = pad_sequence(seqs)
        o, _ = self.rnn(self.e(x))
        i = (l - 1).view(1, -1, 1).expand(1, -1, 5)
        return self.fc(o.gather(0, i).squeeze(0))


ONE, TAGS = torch.tensor([[4, 9, 7, 3, 12], [8, 2, 6, 0, 0]]), torch.tensor([[1, 2, 0, 3, 1], [2, 2, 1, 0, 0]])
BATCH = {
    "words": torch.tensor([[4, 9, 7]]),
    "chars": torch.tensor([[[3, 5, 6, 0], [10, 11, 0, 0], [12, 0, 0, 0]]]),
    "char_lengths": torch.tensor([[3, 2, 1]]),
}
TEXT = ids(2, 5)
MODELS = {
    "conditional random field": Model(BiLSTMCRF, (ONE, TAGS), lambda out: out, (0,), (8, 9), one_of(ONE, TAGS)),
    "score of tags": Model(lambda: BiLSTMCRF("score"), (ONE, TAGS), lambda out: out, (0,), (8, 9), one_of(ONE, TAGS)),
    "characters in words": Model(CharTagger, (BATCH,), lambda out: out["logits"][:, 1, 2]),
    "states at offsets": Model(FlairLM, (ids(1, 9), [0, 3, 6], [2, 5, 8]), lambda out: out[:, 1, 2], (0,)),
    "one text of one axis": Model(Unbatched, (TEXT[0],), lambda out: out[2, 1], (0,), (3, 4)),
    "one-hot characters": Model(OneHot, (TEXT[:1],), lambda out: out[0][-1, 3].reshape(1), (0,)),
    "a loss beside": Model(
        Lightning, ({"x": numbers(2, 5, 3), "y": torch.tensor([0, 1])},), lambda out: out["logits"][:, 1]
    ),
    "a list of texts": Model(Padded, ([TEXT[0]],), 1),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_account_is_right(name):
    judge_account(MODELS[name])


@pytest.mark.parametrize("name", [name for name in MODELS if name != "a loss beside"])
def test_the_explanation_is_right(name):
    judge_explanation(MODELS[name])


def test_a_loss_beside_the_logits_stops_no_explanation():
    case = MODELS["a loss beside"]
    for b, found in enumerate(unrolled.explain_batch(case.built(), *case.args, target=case.target)):
        batch = {name: value[b : b + 1] for name, value in case.args[0].items()}
        one = unrolled.explain(case.built(), batch, target=case.target)
        assert found.ledger.ngrams == pytest.approx(one.ledger.ngrams, abs=1e-12)
        assert abs(found.ledger.remainder) < 1e-12
    assert unrolled.account(case.built(), *case.args, target=lambda out: out["loss"]).closes


def test_the_partition_function_is_named_where_it_is_held():
    case = MODELS["conditional random field"]
    found = unrolled.explain(case.built(), *case.alone(0), target=case.target)
    assert any("logsumexp" in note for note in found.notes)


@pytest.mark.parametrize("of_words", [True, False])
def test_a_position_has_the_name_of_its_word_and_not_of_the_characters_that_it_reads_too(of_words):
    words, characters = ids(1, 3), ids(1, 12).view(1, 3, 4)
    torch.manual_seed(1)
    found = unrolled.explain(ConvTagger(of_words).double(), words, characters, target=lambda out: out[:, 2, 1])
    assert abs(found.ledger.remainder) < 1e-12
    if of_words:
        assert found.tokens == tuple(map(str, words[0].tolist()))
    else:  # the control: without the word, those of its characters that are the largest somewhere
        for label, own in zip(found.tokens, characters[0].tolist(), strict=True):
            assert set(map(int, label.split())) <= set(own)
            assert len(label.split()) > 1
