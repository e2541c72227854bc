"""Every switch of the translator does what it says, and nothing else."""

from __future__ import annotations

import pytest

from toy_translation import BASE, backwards, built, task_of
from unrolled.errors import UnknownNameError, UsageError
from unrolled.lab.data.corpus import Translation
from unrolled.lab.tasks.translate import Translate, TranslateSettings


@pytest.fixture(scope="module")
def corpus() -> Translation:
    return Translation(name="told", train=backwards(60, 0), dev=backwards(10, 1), test=backwards(10, 2))


def weights(task: Translate) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in built(task).state_dict().items()}


def test_the_base_model_is_one_network_and_two_vocabularies(corpus):
    names = {name.split(".")[0] for name in weights(task_of(corpus, **BASE))}
    assert names == {"source", "encoder", "head"}


@pytest.mark.parametrize(
    ("switch", "new", "other"),
    [
        ({"separate": True}, {"decoder"}, set()),
        ({"fed": True}, {"target"}, {"encoder"}),
        ({"layers": 2}, {"encoder"}, set()),
        ({"attention": True}, {"attention"}, set()),
        ({"reverse": True}, set(), set()),
    ],
    ids=str,
)
def test_a_switch_changes_its_part_alone(corpus, switch, new, other):
    before, after = weights(task_of(corpus, **BASE)), weights(task_of(corpus, **(BASE | switch)))
    assert {name.split(".")[0] for name in after.keys() - before.keys()} == new
    assert {name.split(".")[0] for name in before if after.get(name) != before[name]} == other


def test_an_encoder_that_reads_both_ways_has_a_bridge_to_its_decoder(corpus):
    one_way = BASE | {"separate": True}
    before, after = weights(task_of(corpus, **one_way)), weights(task_of(corpus, **(one_way | {"bidirectional": True})))
    assert {name.split(".")[0] for name in after.keys() - before.keys()} == {"encoder", "bridge"}
    assert all(after[name] == shape for name, shape in before.items())


@pytest.mark.parametrize("reverse", [False, True])
def test_a_reversed_source_is_read_from_its_end_and_the_target_is_not(corpus, reverse):
    task = task_of(corpus, reverse=reverse)
    pair = corpus.train[0]
    (source,), (target,) = task.encode([pair]).sources, task.encode([pair]).targets
    assert task.source.decode(source.tolist()) == list(pair.source[::-1] if reverse else pair.source)
    assert task.target.decode(target.tolist()) == [*pair.target, "<eos>"]


def test_what_cannot_be_is_refused():
    with pytest.raises(UsageError, match="bidirectional is True, but separate is False"):
        TranslateSettings(separate=False)
    with pytest.raises(UsageError, match="encoder is vm, which has no hidden state for a decoder"):
        TranslateSettings(encoder="vm")
    with pytest.raises(UnknownNameError, match="did you mean 'gru'"):
        TranslateSettings(encoder="gruu")
    with pytest.raises(UnknownNameError, match="did you mean 'attention'"):
        TranslateSettings(atention=True)
