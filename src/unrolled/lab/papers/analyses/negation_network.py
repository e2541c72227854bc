"""Networks that learn the negation corpus, as sequence-level features were first looked for in them.

Source:
    Sun and Lu, Sequence-level features (2020), section 5.1.2 and appendix A.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unrolled.lab.data.corpus import Classification
from unrolled.lab.data.datasets.negation import Negation
from unrolled.lab.papers.framework.experiment import Bench, Scale
from unrolled.lab.papers.framework.trial_training import learn_once
from unrolled.lab.training.run_folder import Run

__all__ = ["NEGATION_SIZES", "PUBLISHED", "learn_negation", "negation_corpus"]

NEGATION_SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"train": 240, "size": 8, "epochs": 1},
    # The paper does not say: sizes, rate, epochs. After four epochs every test sentence is told rightly; more of them
    # make all weights larger, and the approximation worse.
    "cpu": {"train": 4120, "size": 100, "epochs": 4},
    "paper": {"train": 4120, "size": 100, "epochs": 4},
}
"""How many sentences, how large word vectors and state, and how often every sentence is learned."""
_RATE, _BATCH = 0.01, 32
PUBLISHED: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]] = {
    "gru": {
        "positive": ((4.25, 0.13), (-6.13, 0.15), (12.45, 0.33)),
        "negative": ((-3.72, 0.06), (4.82, 0.11), (-11.29, 0.23)),
    },
    "lstm": {
        "positive": ((4.79, 0.27), (-9.32, 0.31), (21.39, 0.74)),
        "negative": ((-4.49, 0.24), (3.13, 0.27), (-7.65, 0.66)),
    },
}
"""Table 1: mean scores of tokens, negation phrases and double negation phrases by the activation expansion, each with
what stands behind its ±; the paper does not say what that is."""


def negation_corpus(train: int, seed: int, double_negation: bool = True) -> Classification:
    """Generate the corpus, or some of it.

    Args:
        train: how many sentences are learned from.
        seed: which.
        double_negation: whether double negations occur.

    Returns:
        The corpus.
    """
    return Negation(double_negation=double_negation, seed=seed).read().sample(train, seed)


def learn_negation(bench: Bench, corpus: Classification, encoder: str, size: int, epochs: int, seed: int) -> Run:
    """Train a classifier that reads its last state, with Adagrad, unless another trial has.

    Args:
        bench: of the trial.
        corpus: what is learned.
        encoder: ``"gru"``, ``"lstm"``.
        size: of word vectors and state.
        epochs: passes over the corpus.
        seed: of the weights.

    Returns:
        The run, measured on dev and test.
    """
    model = {"encoder": encoder, "hidden": size, "embedding": size, "dropout": 0.0, "word_dropout": 0.0}
    training = {"optimiser": "adagrad", "lr": _RATE, "batch": _BATCH, "epochs": epochs, "seed": seed}
    return learn_once(bench, "classify", corpus, model, training)
