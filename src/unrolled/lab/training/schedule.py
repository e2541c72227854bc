"""How the learning rate moves: a function of the step, so that a training which is resumed need not remember it."""

from __future__ import annotations

import math

from unrolled.lab.training.settings import TrainingSettings

__all__ = ["learning_rate"]


def learning_rate(settings: TrainingSettings, step: int, steps: int, cuts: int) -> float:
    r"""Give the learning rate of a step.

    .. math::
        \eta_t = \eta \cdot \begin{cases}
            (t + 1)/w                       & t < w \\
            1                               & \text{constant} \\
            1 - p                           & \text{linear} \\
            \tfrac12 (1 + \cos \pi p)       & \text{cosine} \\
            f^{\,\text{cuts}}               & \text{plateau}
        \end{cases}
        \qquad p = \frac{t - w}{T - w}

    Args:
        settings: lr η, schedule, warmup w and factor f.
        step: t, how many steps were made before this one.
        steps: T, how many there will be at most.
        cuts: how many epochs so far were not the best.

    Returns:
        The learning rate.

    Source:
        Cosine: Loshchilov and Hutter (2017), arXiv:1608.03983, equation 5, without restarts. Plateau: as in
        PyTorch's word_language_model.
    """
    if step < settings.warmup:
        return settings.lr * (step + 1) / settings.warmup
    part = min((step - settings.warmup) / max(steps - settings.warmup, 1), 1.0)
    match settings.schedule:
        case "linear":
            return settings.lr * (1 - part)
        case "cosine":
            return settings.lr * (1 + math.cos(math.pi * part)) / 2
        case "plateau":
            return float(settings.lr * settings.factor**cuts)
    return settings.lr
