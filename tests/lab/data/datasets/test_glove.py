"""The real GloVe vectors, for the words of a real corpus."""

from __future__ import annotations

import pytest

from unrolled.lab.data.datasets.conll2003 import Conll2003
from unrolled.lab.data.vocabulary import Vocabulary
from unrolled.lab.data.word_vectors import read_vectors


@pytest.mark.data
def test_the_real_vectors_are_found_for_nearly_all_words(data_folder):
    corpus = Conll2003().read(data_folder)
    sentences = [example.tokens for split in (corpus.train, corpus.dev, corpus.test) for example in split]
    words = Vocabulary.from_texts(sentences, lowercase=True)
    found = read_vectors(data_folder / "glove" / "glove.6B.50d.subset.txt.xz", words, size=50)
    assert found.matrix.shape == (len(words), 50)
    assert int(found.found.sum()) == 22_947
    assert len(words) - 2 == 26_869
    assert found.matrix[words.encode(["the"])[0], 0].item() == pytest.approx(0.418, abs=1e-6)
