"""Items that begin with the word vectors of another file."""

from __future__ import annotations

import pytest

from unrolled.errors import UsageError
from unrolled.lab.data.data_folder import MissingDataError
from unrolled.lab.papers import EXPERIMENTS
from unrolled.lab.papers.framework.other_vectors import begin_with
from unrolled.lab.papers.implicit_ngrams.intensification import Intensification
from unrolled.lab.papers.sequence_level_features.bidirectional import Bidirectional
from unrolled.lab.papers.sequence_level_features.table2 import SentimentByCell

BEGINNING = (Intensification, SentimentByCell, Bidirectional)
FILE = "mine/seven.txt"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / FILE).write_text("a 1 2 3 4 5 6 7\nfilm 7 6 5 4 3 2 1\n")
    return tmp_path


def flat(settings):
    """The settings of a trial, those of its model beside the others."""
    model = settings.get("model")
    return {**settings, **model} if isinstance(model, dict) else dict(settings)


@pytest.mark.parametrize("kind", BEGINNING)
@pytest.mark.parametrize("scale", ["cpu", "paper"])
def test_the_file_and_its_size_are_all_that_differs_and_are_in_the_key(kind, scale, folder):
    experiment = kind()
    (other,) = begin_with([experiment], FILE, folder)
    pairs = list(zip(experiment.trials(scale), other.trials(scale), strict=True))
    assert pairs
    for own, replaced in pairs:
        before, after = flat(own.settings), flat(replaced.settings)
        differing = {name for name in before if before[name] != after[name]} - {"model"}
        assert differing in ({"vectors", "embedding"}, {"begins with", "embedding"})
        assert after["embedding"] == 7
        assert FILE in after.values()
        assert FILE in replaced.label
        assert own.key(kind.name, kind.version) != replaced.key(kind.name, kind.version)
    assert (other.name, other.version, other.source) == (kind.name, kind.version, kind.source)


def test_items_without_pretrained_vectors_are_left_out_and_refused_if_there_are_no_others(folder):
    members = [member() for member in EXPERIMENTS.members.values()]
    assert {each.name for each in begin_with(members, FILE, folder)} == {kind.name for kind in BEGINNING}
    others = [each for each in members if not isinstance(each, BEGINNING)]
    with pytest.raises(UsageError, match="none of these items begins with pretrained"):
        begin_with(others, FILE, folder)
    (smoke,) = begin_with([Intensification()], FILE, folder)
    assert smoke.at("smoke") == []
    with pytest.raises(MissingDataError, match=r"mine/eight\.txt"):
        begin_with(members, "mine/eight.txt", folder)
