"""Networks that learn labelled phrases of SST, beginning with GloVe's vectors: what several items of a paper train.

At scale cpu a network learns 40,000 of the 98,794 phrases, four times.

Source:
    Sun and Lu, Sequence-level features (2020), section 5.1.3 and 5.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from unrolled.lab.data.corpus import Classification
from unrolled.lab.data.text_files import find_file
from unrolled.lab.papers.analyses.training_choices import GLOVE
from unrolled.lab.papers.framework.corpus_cache import load_once
from unrolled.lab.papers.framework.experiment import Bench, Scale, Trial
from unrolled.lab.papers.framework.synthetic_corpora import negation
from unrolled.lab.papers.framework.trial_training import learn_once
from unrolled.lab.training.run_folder import Run

__all__ = ["learn_phrases", "phrase_trials"]

_SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {"phrases": 240, "hidden": 8, "embedding": 8, "epochs": 1, "vectors": ""},
    "cpu": {"phrases": 40_000, "hidden": 128, "embedding": 50, "epochs": 4, "vectors": GLOVE},
    # The paper does not say: sizes, rate, epochs, dropout, which of GloVe's vectors and how a text's states are read.
    # Sizes are those of its language models; the vectors those at hand; the rest is our task's own.
    "paper": {"phrases": 98_794, "hidden": 128, "embedding": 50, "epochs": 10, "vectors": GLOVE},
}


def phrase_trials(scale: Scale, encoders: Iterable[str], seeds: int) -> Sequence[Trial]:
    """List a training for each encoder, seed by seed; a seed draws phrases and weights.

    Args:
        scale: how large.
        encoders: members of the zoo.
        seeds: how many of each.

    Returns:
        The trials.
    """
    encoders = [*encoders]
    return [
        Trial(f"{encoder.replace('_', ' ')}, seed {seed}", {**_SIZES[scale], "encoder": encoder, "seed": seed})
        for seed in range(seeds)
        for encoder in encoders
    ]


def learn_phrases(trial: Trial, bench: Bench, **model: Any) -> Run:
    """Train the network of a trial; made-up sentences take the phrases' place where there are to be no vectors.

    Args:
        trial: of :func:`phrase_trials`.
        bench: of the trial.
        **model: settings of the architecture beside encoder and sizes.

    Returns:
        The run, measured on dev and test.
    """
    chosen: Mapping[str, Any] = trial.settings
    training = {"epochs": chosen["epochs"], "seed": chosen["seed"]}
    if chosen["vectors"]:
        corpus = load_once("sst2", Classification, bench.data).sample(chosen["phrases"], chosen["seed"])
        training["vectors"] = find_file(chosen["vectors"], bench.data)
    else:
        corpus = negation(seed=chosen["seed"])
    sizes = {name: chosen[name] for name in ("encoder", "hidden", "embedding")}
    return learn_once(bench, "classify", corpus, {**sizes, **model}, training)
