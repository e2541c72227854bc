"""The real files, held to the manifest."""

from __future__ import annotations

import pytest

from unrolled.lab.data.collection.manifest import check_dataset, read_manifest
from unrolled.lab.data.datasets import DATASETS


@pytest.mark.data
@pytest.mark.parametrize(
    "name", ["ag_news", "conll2003", "glove", "multi30k", "ptb", "uci-imdb", "war_and_peace", "wikiqa"]
)
def test_the_real_files_are_what_the_manifest_says(data_folder, name):
    manifest = read_manifest()
    lines = list(check_dataset(name, manifest, data_folder))
    assert len(lines) == len(manifest.source(name).files) + (name in DATASETS.names())
    assert all(line.endswith(("sha256 correct", "as expected")) for line in lines)
