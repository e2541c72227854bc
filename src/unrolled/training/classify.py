"""From a dataset to a trained classifier."""

from __future__ import annotations

from unrolled.catalogue import Architecture, ClassifierConfig, build
from unrolled.text.batching import EncodedTexts
from unrolled.text.corpus import Classification
from unrolled.text.vocabulary import Vocabulary
from unrolled.training.loop import TrainingSettings, Watcher, evaluate, fit, seeded
from unrolled.training.run_folder import Run

__all__ = ["train_classifier"]


def train_classifier(
    dataset: Classification, architecture: Architecture, settings: TrainingSettings, watcher: Watcher | None = None
) -> Run:
    """Train a classifier and measure it on the test texts.

    The vocabulary is that of the training texts, lower-cased. Everything random comes from ``settings.seed``;
    torch's global generator is left as it was.

    Args:
        dataset: what to learn.
        architecture: what the classifier is made of, but for the sizes that the dataset decides.
        settings: how it is trained.
        watcher: told of every step and epoch.

    Returns:
        The run, with the weights of its best epoch on the dev texts.
    """
    vocabulary = Vocabulary.from_texts((example.tokens for example in dataset.train), lowercase=True)
    train, dev, test = (EncodedTexts.encode(split, vocabulary) for split in (dataset.train, dataset.dev, dataset.test))
    config = ClassifierConfig(vocabulary=len(vocabulary), classes=len(dataset.labels), **architecture.model_dump())
    with seeded(settings.seed):
        model = build(config)
    trained = fit(model, train, dev, settings, watcher)
    score = evaluate(model, test)
    metrics = {
        "test_accuracy": score.accuracy,
        "test_loss": score.loss,
        "dev_accuracy": trained.best.dev_accuracy,
        "dev_loss": trained.best.dev_loss,
        "best_epoch": trained.best.number,
        "epochs": len(trained.history),
        "seconds": sum(epoch.seconds for epoch in trained.history),
        "train_texts": len(train),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }
    return Run(
        model=model,
        config=config,
        vocabulary=vocabulary,
        labels=dataset.labels,
        data=dataset.name,
        settings=settings,
        metrics=metrics,
        history=trained.history,
    )
