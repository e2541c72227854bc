"""How the line of an explanation writes an n-gram with a blank in it, as models of characters have them."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

import unrolled
from unrolled import Explanations

_KINDS = 9


class Reader(nn.Module):
    """Reads the last state."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.rnn = nn.Embedding(_KINDS, 5), nn.GRU(5, 6, batch_first=True)
        self.head = nn.Linear(6, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.head(self.rnn(self.embed(tokens))[0][:, -1])
        return logits


def test_a_blank_within_an_ngram_is_shown_as_in_its_text():
    torch.manual_seed(0)
    reader = Reader()
    for middle, shown in ((" ", "␣"), ("not", "not")):
        found = [
            unrolled.explain(reader, torch.tensor([[k, 1, 2]]), target=target, tokens=["a", middle, "b"])
            for k in range(_KINDS)
            for target in range(3)
        ]
        largest = [each.top(1)[0] for each in found]
        assert any(ngram.order > 1 for ngram in largest)
        for each, ngram in zip(found, largest, strict=True):
            words = " ".join(["a", shown, "b"][ngram.start : ngram.stop])
            assert f"  ({words} " in str(Explanations((each,))).splitlines()[0]


def test_a_blank_within_a_phrase_of_many_texts_is_shown(tmp_path: Path) -> None:
    torch.manual_seed(0)
    ids = torch.tensor([[1, 2, 3], [4, 2, 3]])
    for middle, shown in ((" ", "␣"), ("not", "not")):
        found = unrolled.explain_batch(Reader(), ids, target=1, tokens=[["a", middle, "b"], ["c", middle, "b"]])
        phrases = found.phrases(least=2)
        records = phrases.to_records()
        assert sorted(str(each["text"]) for each in records) == sorted(("b", middle, f"{middle} b"))  # as it is
        assert {each["order"] for each in records} == {1, 2}
        ends = {line.split("  ")[-1] for line in str(phrases).splitlines()}
        assert {"b", shown, f"{shown} b"} <= ends
        page = found.save_html(tmp_path / "page.html", phrases=phrases).read_text()
        assert f"<bdi>{shown} b</bdi>" in page


class Pair(nn.Module):
    """Reads the last states of two networks."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(_KINDS, 5)
        self.first, self.second = nn.GRU(5, 6, batch_first=True), nn.GRU(5, 6, batch_first=True)
        self.head = nn.Linear(12, 3)

    def forward(self, one: Tensor, other: Tensor) -> Tensor:
        states = [net(self.embed(ids))[0][:, -1] for net, ids in ((self.first, one), (self.second, other))]
        logits: Tensor = self.head(torch.cat(states, dim=-1))
        return logits


def test_a_blank_within_an_ngram_of_one_of_several_sequences_is_shown():
    ids = torch.tensor([[1, 2, 3]])
    for middle, shown in ((" ", "␣"), ("not", "not")):
        torch.manual_seed(0)  # weights with which both n-grams have rows of their own
        tokens = [["a", middle, "b"], ["c", middle, "d"]]
        found = unrolled.explain(Pair(), ids, ids + 3, target=1, tokens=tokens)
        table = str(found).split("n-gram\n")[-1].splitlines()
        assert f"c {middle} d" in [each.text for each in found.top(12)]  # as it is
        assert any(line.rstrip().endswith(f"second    c {shown} d") for line in table)
