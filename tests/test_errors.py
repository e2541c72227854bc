"""What messages of errors are made of."""

from __future__ import annotations

from collections import OrderedDict, UserDict

import pytest
import torch
from torch import nn

from unrolled.errors import UnknownNameError, kind_of

NAMED = [
    (3, "an int"),
    (OrderedDict(), "an OrderedDict"),
    (UserDict(), "a UserDict"),
    (torch.zeros(1), "a Tensor"),
    (nn.RNN(1, 1), "an RNN"),
    (nn.LSTM(1, 1), "an LSTM"),
    (nn.GRU(1, 1), "a GRU"),
    (nn.Identity(), "an Identity"),
]


@pytest.mark.parametrize(("value", "named"), NAMED, ids=[named for _, named in NAMED])
def test_a_type_is_named_with_its_article(value, named):
    assert kind_of(value) == named


def test_numbers_among_known_names_stand_by_their_size_and_words_by_their_letters():
    message = str(UnknownNameError("class", "film", map(str, range(12))))
    assert message.startswith("unknown class 'film'; expected one of: 0, 1, 2, 3")
    assert "expected one of: 9, 10, a, b" in str(UnknownNameError("class", "film", ["b", "10", "a", "9"]))
