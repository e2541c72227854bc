"""The laboratory: data, models, metrics, tasks, training and the papers. It imports the instrument."""
