"""The laboratory: data, models, metrics, tasks, training and the papers. It imports the instrument."""

import unrolled.report  # noqa: F401  # it imports rich without a draw from Python's generator; modules here import rich
