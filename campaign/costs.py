"""What the lock and the checksums cost, in processor time, beside a training."""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

from toy_tasks import DATA, classify, told
from unrolled.lab.data.checksums import CorpusChecksums
from unrolled.lab.training import run_files
from unrolled.lab.training.engine import train
from unrolled.lab.training.run_lock import RunLock
from unrolled.lab.training.settings import TrainingSettings
from unrolled.weights import checksum

_EXAMPLES = 20_000


def cost(seconds: float) -> str:
    """Train a GRU of 64 on 20,000 texts for about this many seconds, and say what share the checks took."""
    corpus, spent = told(_EXAMPLES), [0.0]

    def timed(function):
        def measured(*words, **options):
            began = time.process_time()
            try:
                return function(*words, **options)
            finally:
                spent[0] += time.process_time() - began

        return measured

    with ExitStack() as patches, tempfile.TemporaryDirectory() as folder:
        for owner, name in (
            (RunLock, "acquire_new"),
            (RunLock, "check"),
            (RunLock, "release"),
            (CorpusChecksums, "of"),
            (checksum, "tensors_checksum"),
            (run_files, "_checksum"),
        ):
            patches.enter_context(mock.patch.object(owner, name, timed(getattr(owner, name))))
        settings = TrainingSettings(epochs=1000, patience=1000, batch=64, device="cpu", checkpoint_every=50, steps=100)
        task = classify(corpus, hidden=64, embedding=32)
        began = time.process_time()
        train(task, corpus, settings, Path(folder) / "warm", data=DATA)
        per_step = (time.process_time() - began) / 100
        steps, spent[0], began = max(100, int(seconds / per_step)), 0.0, time.process_time()
        train(task, corpus, settings.model_copy(update={"steps": steps}), Path(folder) / "run", data=DATA)
        whole = time.process_time() - began
    share = 100 * spent[0] / 60
    return f"{spent[0]:.2f} s of processor time beside a training of {whole:.0f} s: {share:.1f}% of a minute"
