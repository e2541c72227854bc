"""What a command is told of its trials, kept for tests."""

from __future__ import annotations


class WatchedTrials:
    """Keeps what it is told of each trial, and each line that is said."""

    def __init__(self):
        self.seen, self.said = [], []

    def trial(self, trial, number, total, found):
        self.seen.append((trial.label, number, total, found))

    def say(self, line):
        self.said.append(line)
