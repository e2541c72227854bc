"""Whether a run of an earlier version, which kept no checksums, goes on with its own data.

Its ``config.json`` has a digest of a sample of the examples.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from torch import Tensor

from unrolled.errors import DataError
from unrolled.lab.data.batches.base import Batch
from unrolled.lab.data.corpus import Corpus
from unrolled.lab.training.run_config import RunConfig
from unrolled.lab.training.run_names import DATA
from unrolled.lab.training.task import Split

__all__ = ["check_sample", "sample_digest"]

_SAMPLES = 16
"""Batches of a split that enter the digest."""


def check_sample(folder: Path, config: RunConfig, corpus: Corpus[Any], splits: Mapping[str, Split[Any]]) -> None:
    """Compare the digest of the sample; a run that has checksums instead is not checked.

    Raises:
        DataError: If the sample is another one.
    """
    if (folder / DATA).is_file():
        return
    if sample_digest(config.settings.batch, splits["train"], splits["dev"]) != config.fingerprint:
        sizes = ", ".join(f"{size:,} {name}" for name, size in config.sizes.items())
        raise DataError(
            f"{folder} was started with another corpus than {corpus.name!r}; give the one it was started with "
            f"({sizes} examples)"
        )


def sample_digest(size: int, *splits: Split[Batch]) -> str:
    """Compute a digest of some splits: their sizes, and 16 batches of each, from its beginning to its end."""
    digest = hashlib.sha256()
    for split in splits:
        plan = split.plan(size)
        digest.update(f"{len(split)} {len(plan)}".encode())
        for sample in range(_SAMPLES):
            batch = split.select(plan[sample * (len(plan) - 1) // (_SAMPLES - 1)])
            for field in fields(batch):
                value = getattr(batch, field.name)
                if isinstance(value, Tensor):
                    digest.update(value.numpy(force=True).tobytes())
    return digest.hexdigest()[:16]
