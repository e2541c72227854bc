from __future__ import annotations

import torch

from unrolled.lab.data.vocabulary import UNKNOWN
from unrolled.lab.models.classifier import WordDropout

TOKENS = torch.randint(2, 100, (200, 50), generator=torch.Generator().manual_seed(0))


def test_in_training_that_share_of_words_is_unknown_and_the_rest_untouched():
    torch.manual_seed(0)
    seen = WordDropout(0.3)(TOKENS)
    hidden = seen == UNKNOWN
    assert 0.27 < hidden.float().mean() < 0.33
    assert torch.equal(seen[~hidden], TOKENS[~hidden])


def test_in_eval_mode_and_at_rate_zero_nothing_is_hidden_and_nothing_drawn():
    before = torch.get_rng_state()
    assert WordDropout(0.3).eval()(TOKENS) is TOKENS
    assert WordDropout(0.0)(TOKENS) is TOKENS
    assert torch.equal(torch.get_rng_state(), before)
