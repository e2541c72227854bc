"""Agglomerative contextual decomposition: words are taken in the order of what they add to the group beside them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.lab.models.classifier import Classifier
from unrolled.lab.models.pooling import LastState
from unrolled.lab.papers.analyses.attribution_methods.agglomerative_decomposition import agglomerate
from unrolled.lab.papers.analyses.attribution_methods.explained_texts import predict
from unrolled.lab.papers.analyses.attribution_methods.token_attributions import attribute

LENGTHS = (6, 1, 4)


def table_of(seed):
    """A score for every phrase of every text, drawn at random."""
    return torch.randn(len(LENGTHS), 7, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def one_by_one(scores, length):
    """Take the words of one text one after the other, from sets; ``scores`` has the shape (start, stop)."""
    taken, found = set(), {}

    def group(place, step):
        end = place
        while end + step in taken:
            end += step
        return end

    def gains(word):
        yield scores[word, word + 1]
        if word + 1 in taken:
            stop = group(word + 1, 1) + 1
            yield scores[word, stop] - scores[word + 1, stop]
        if word - 1 in taken:
            start = group(word - 1, -1)
            yield scores[start, word + 1] - scores[start, word]

    while len(taken) < length:
        best = {word: max(map(float, gains(word))) for word in range(length) if word not in taken}
        word = max(best, key=best.__getitem__)
        found[word] = best[word]
        taken.add(word)
    return torch.tensor([found[word] for word in range(length)], dtype=torch.float64)


@pytest.mark.parametrize("seed", range(5))
def test_it_takes_words_as_one_by_one_from_sets(seed):
    scores = table_of(seed)
    found = agglomerate(lambda texts, starts, stops: scores[texts, starts, stops], torch.tensor(LENGTHS))
    for row, of_text, length in zip(found, scores, LENGTHS, strict=True):
        assert torch.allclose(row[:length], one_by_one(of_text, length))
        assert not row[length:].any()


def test_where_phrases_add_up_every_word_keeps_its_own_score():
    own = torch.randn(3, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(9))
    sums = torch.cat((torch.zeros(3, 1), own.cumsum(dim=1)), dim=1)
    found = agglomerate(lambda texts, starts, stops: sums[texts, stops] - sums[texts, starts], torch.tensor(LENGTHS))
    assert torch.allclose(found, own * (torch.arange(6) < torch.tensor(LENGTHS)[:, None]))


def test_a_word_that_counts_beside_another_is_scored_by_what_it_adds():
    """A text of two words whose pair scores 5, its words 2 and -1: the second adds 3."""
    scores = torch.zeros(1, 3, 3, dtype=torch.float64)
    scores[0, 0, 1], scores[0, 1, 2], scores[0, 0, 2] = 2, -1, 5
    found = agglomerate(lambda texts, starts, stops: scores[texts, starts, stops], torch.tensor([2]))
    assert found.tolist() == [[2, 3]]


def test_of_a_network_it_differs_from_contextual_decomposition_only_beside_what_was_taken():
    torch.manual_seed(0)
    model = Classifier(nn.Embedding(9, 4), nn.LSTM(4, 6, batch_first=True), LastState(1), nn.Linear(6, 3))
    for weight in model.parameters():
        nn.init.normal_(weight, 0, 0.6)
    tokens = torch.tensor([[2, 7, 5, 3, 8], [4, 6, 2, 0, 0]])
    texts = predict(model.double().eval(), tokens, torch.tensor([5, 3]))
    words, joined = (
        attribute(method, texts).values
        for method in ("contextual decomposition", "agglomerative contextual decomposition")
    )
    first = words.masked_fill(~texts.inside, -torch.inf).argmax(dim=1, keepdim=True)
    assert torch.equal(joined.gather(1, first), words.gather(1, first))
    assert (joined >= words).all()
    assert (joined - words).abs().max() > 0.01
