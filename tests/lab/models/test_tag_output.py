"""The conditional random field against the sum over all sequences, and independent tags."""

from __future__ import annotations

import itertools
import sys

import pytest
import torch

from unrolled.errors import UsageError
from unrolled.lab.data.spans import TagGrammar, find_invalid_tag, iobes_tags
from unrolled.lab.models.tag_output import IndependentTags, LinearChainCRF

TAGS = iobes_tags(["S-A"])
GRAMMARS = {"iobes": TagGrammar.iobes(TAGS), "free": TagGrammar.free(5)}
LENGTHS = (4, 1, 3)
INSIDE = torch.arange(4) < torch.tensor(LENGTHS)[:, None]


def field(name):
    torch.manual_seed(0)
    chain = LinearChainCRF(GRAMMARS[name]).double()
    for parameter in chain.parameters():  # the library initialises them close to 0
        torch.nn.init.normal_(parameter)
    return chain


def emissions():
    return 3 * torch.randn(3, 4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def sequences(name, length):
    for tags in itertools.product(range(5), repeat=length):
        if name == "free" or find_invalid_tag([TAGS[tag] for tag in tags], "IOBES") is None:
            yield tags


def score(chain, emission, tags):
    start, end, after = chain.crf.start_transitions, chain.crf.end_transitions, chain.crf.transitions
    total = start[tags[0]] + end[tags[-1]] + sum(emission[t, tag] for t, tag in enumerate(tags))
    return total + sum(after[one, other] for one, other in itertools.pairwise(tags))


@pytest.mark.parametrize("name", GRAMMARS)
def test_the_likelihood_is_normalised_over_all_sequences_that_there_may_be(name):
    chain, emission = field(name), emissions()
    tags = torch.tensor([[1, 3, 4, 0], [4, 2, 2, 2], [0, 1, 3, 2]])
    total = 0.0
    for b, length in enumerate(LENGTHS):
        scores = torch.stack([score(chain, emission[b], each) for each in sequences(name, length)])
        total = total + scores.logsumexp(0) - score(chain, emission[b], tags[b, :length].tolist())
    torch.testing.assert_close(chain.cost(emission, tags, INSIDE), total, rtol=0, atol=1e-10)
    naive = torch.autograd.grad(total, list(chain.parameters()))
    fast = torch.autograd.grad(chain.cost(emission, tags, INSIDE), list(chain.parameters()))
    for one, other in zip(fast, naive, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_what_stands_in_the_padding_changes_nothing_and_what_stands_before_it_does():
    chain, emission = field("iobes"), emissions()
    tags = torch.tensor([[1, 3, 4, 0], [4, 2, 2, 2], [0, 1, 3, 2]])
    cost = chain.cost(emission, tags, INSIDE)
    other = emission.masked_fill(~INSIDE[..., None], 50.0)
    assert torch.equal(chain.cost(other, tags.masked_fill(~INSIDE, 0), INSIDE), cost)
    assert chain.decode(other, INSIDE) == chain.decode(emission, INSIDE)
    assert not torch.allclose(chain.cost(emission, tags, torch.ones_like(INSIDE)), cost)


@pytest.mark.parametrize("name", GRAMMARS)
def test_viterbi_finds_the_best_sequence_that_there_may_be(name):
    chain, found = field(name), {}
    for seed in range(10):
        emission = 3 * torch.randn(3, 4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        found[seed] = chain.decode(emission, INSIDE)
        for b, length in enumerate(LENGTHS):
            with torch.no_grad():
                scores = {each: score(chain, emission[b], each).item() for each in sequences(name, length)}
            assert found[seed][b] == list(max(scores, key=scores.__getitem__))
    faults = [find_invalid_tag([TAGS[tag] for tag in row], "IOBES") for rows in found.values() for row in rows]
    # control: without the grammar the best sequence often spells no whole entity
    assert any(faults) == (name == "free")


def test_what_cannot_be_costs_nearly_all():
    chain = field("iobes")
    illegal = torch.tensor([[2, 2, 2, 2], [0, 0, 0, 0], [0, 0, 0, 0]])
    assert chain.cost(emissions(), illegal, INSIDE) > 1e4 > chain.cost(emissions(), torch.zeros_like(illegal), INSIDE)


def test_its_weights_are_those_of_the_library_and_nothing_beside_them():
    chain = field("iobes")
    assert set(chain.state_dict()) == {"crf.start_transitions", "crf.end_transitions", "crf.transitions"}
    before = {name: value.clone() for name, value in chain.state_dict().items()}
    chain.decode(emissions(), INSIDE)
    assert all(torch.equal(value, before[name]) for name, value in chain.state_dict().items())


def test_each_tag_by_itself():
    emission, tags = emissions(), torch.tensor([[1, 3, 4, 0], [4, 9, 9, 9], [0, 1, 3, 9]])
    output = IndependentTags()
    logs = emission.log_softmax(-1)
    cost = -sum(logs[b, t, tags[b, t]] for b, length in enumerate(LENGTHS) for t in range(length))
    torch.testing.assert_close(output.cost(emission, tags, INSIDE), cost)
    assert output.predictions(INSIDE) == 8
    assert field("free").predictions(INSIDE) == 3
    best = emission.argmax(-1).tolist()
    assert output.decode(emission, INSIDE) == [row[:length] for row, length in zip(best, LENGTHS, strict=True)]


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchcrf", None)
    with pytest.raises(UsageError, match=r'pip install "unrolled\[tasks\]", or do without: crf=false'):
        LinearChainCRF(TagGrammar.free(2))
