"""A language that is spoken backwards and in capitals, and a small translator of it."""

from __future__ import annotations

import random

import torch

from unrolled.lab.data.corpus import SentencePair, Translation
from unrolled.lab.tasks.translate import Translate, TranslateSettings

BASE = {"separate": False, "fed": False, "bidirectional": False, "attention": False, "layers": 1}
WORDS = ("ask", "dig", "eat", "fly")


def backwards(count: int, seed: int) -> tuple[SentencePair, ...]:
    """Say the words from the last to the first, each in capitals."""
    draw = random.Random(seed)
    sentences = [tuple(draw.choices(WORDS, k=draw.randint(2, 5))) for _ in range(count)]
    return tuple(SentencePair(each, tuple(word.upper() for word in reversed(each))) for each in sentences)


def task_of(corpus: Translation, **architecture) -> Translate:
    chosen = {"hidden": 32, "embedding": 16, "dropout": 0.0, "min_count": 1, "attention": True} | architecture
    return Translate.from_corpus(corpus, TranslateSettings(**chosen))


def built(task: Translate, seed: int = 0):
    torch.manual_seed(seed)
    return task.build()
