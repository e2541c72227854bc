"""Small classifiers of texts of 10 to 150 words, for measurements of explanations, and the texts that are explained.

They differ in cell, number of layers, directions, pooling, data and length of text. All have 128 units in each layer
and direction and start from GloVe's 50-dimensional vectors. A text is cut to the network's number of words.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from unrolled.lab.data.corpus import Classification, Example
from unrolled.lab.data.data_folder import find_file
from unrolled.lab.papers.analyses.sentiment_networks import GLOVE
from unrolled.lab.papers.framework.experiment import TrialSetup, pick
from unrolled.lab.papers.framework.trial_corpora import read_or_make_up
from unrolled.lab.papers.framework.trial_training import train_once
from unrolled.lab.training.run_folder import Run

__all__ = ["KINDS", "OVER_TRAINED", "SMOKE_NETWORKS", "draw_texts", "learn", "read"]

# Rates and numbers of epochs are our choices; a small corpus is read more often.
_PHRASES = {"data": "sst2", "train": 40_000, "words": 60, "epochs": 4}
_NEWS = {"data": "ag_news", "train": None, "words": 100, "epochs": 5, "lr": 0.002}
_REVIEWS = {"data": "imdb(reviews=8000)", "train": None, "words": 150, "epochs": 5, "lr": 0.002}
_SHORT = {"data": "uci-yelp", "train": None, "words": 40, "epochs": 12, "lr": 0.002, "batch": 16}
_SENTENCES = {"data": "sst2-sentences", "train": None, "words": 60, "epochs": 20, "lr": 0.002}
_OVER = {"judged on": "train", "patience": 20}
"""Of an over-trained network: the epoch is kept that is best on training texts, so training goes on past the best one
on dev."""

_NETWORKS: dict[str, Mapping[str, Any]] = {
    "SST-2, LSTM, last": {**_PHRASES, "encoder": "lstm"},
    "Yelp, GRU both ways, last": {**_SHORT, "encoder": "gru", "bidirectional": True},
    "AG News, LSTM both ways, mean": {**_NEWS, "encoder": "lstm", "bidirectional": True, "pooling": "mean"},
    "SST-2, GRU, last": {**_PHRASES, "encoder": "gru"},
    "IMDB, LSTM, mean": {**_REVIEWS, "encoder": "lstm", "pooling": "mean"},
    "AG News, 2-layer GRU, last": {**_NEWS, "encoder": "gru", "layers": 2},
    "SST-2, 2-layer LSTM, mean": {**_PHRASES, "encoder": "lstm", "layers": 2, "pooling": "mean"},
    "IMDB, GRU both ways, mean": {**_REVIEWS, "encoder": "gru", "bidirectional": True, "pooling": "mean"},
    "AG News, mLSTM, mean": {**_NEWS, "encoder": "mlstm", "pooling": "mean"},
    "SST-2 sentences, LSTM over-trained, last": {**_SENTENCES, "encoder": "lstm", **_OVER},
    "AG News, 2-layer LSTM both ways, last": {**_NEWS, "encoder": "lstm", "layers": 2, "bidirectional": True},
}
"""The networks, the most different first; the first eight are those of the comparison that chose the default."""

_LONG = {"SST-2": 10, "Yelp": 40, "AG News": 12, "IMDB": 12}
"""Epochs of an over-trained network: more than twice as many as above."""
OVER_TRAINED: dict[str, Mapping[str, Any]] = {
    f"{name}, over-trained": {**kind, **_OVER, "epochs": _LONG[name.partition(",")[0]]}
    for name, kind in list(_NETWORKS.items())[:8]
}
"""The same eight, each trained for more epochs without a look at dev."""

_MADE_UP = {"data": "made-up negation", "train": None, "words": 60, "epochs": 1}
SMOKE_NETWORKS: dict[str, Mapping[str, Any]] = {
    "made-up, LSTM, last": {**_MADE_UP, "encoder": "lstm"},
    "made-up, GRU both ways, mean": {**_MADE_UP, "encoder": "gru", "bidirectional": True, "pooling": "mean"},
}
"""Tiny networks on generated data."""
KINDS: dict[str, Mapping[str, Any]] = {**_NETWORKS, **OVER_TRAINED, **SMOKE_NETWORKS}
"""All of them: their data, architecture and training."""

_EVALUATED_TEXTS = 1000
"""Training texts that an over-trained network is evaluated on."""
_TRAINING = ("epochs", "patience", "lr", "batch")
_MODEL = ("encoder", "layers", "bidirectional", "pooling", "hidden", "embedding")


def read(network: Mapping[str, Any], setup: TrialSetup) -> Classification:
    """Read the corpus of a network; every text is cut to the network's number of words."""
    corpus = read_or_make_up(network["data"], Classification, setup.data, (200, 30, 30))
    if network["train"] is not None:
        corpus = corpus.sample(network["train"])
    return corpus.map_splits(lambda split: _cut(split, network["words"]))


def _cut(examples: Sequence[Example], words: int) -> tuple[Example, ...]:
    return tuple(Example(each.tokens[:words], each.label) for each in examples)


def learn(network: Mapping[str, Any], corpus: Classification, seed: int, setup: TrialSetup) -> Run:
    """Train a network, or load it where another trial has trained it."""
    made_up = network["data"] == "made-up negation"
    sizes = {"hidden": 8, "embedding": 8} if made_up else {"hidden": 128, "embedding": 50}
    model = sizes | pick(network, _MODEL)
    training = pick(network, _TRAINING) | {"seed": seed}
    if not made_up:
        training["vectors"] = find_file(GLOVE, setup.data)
    if network.get("judged on") == "train":
        corpus = replace(corpus, dev=corpus.train[:_EVALUATED_TEXTS])
    return train_once(setup, "classify", corpus, model, training)


def draw_texts(examples: Sequence[Example], count: int, fewest: int = 5) -> list[tuple[str, ...]]:
    """Draw texts of at least ``fewest`` words; fewer texts are the first of more."""
    long = [each.tokens for each in examples if len(each.tokens) >= fewest]
    random.Random(0).shuffle(long)  # noqa: S311  # no secret
    return long[:count]
