"""The zoo of encoders: n-gram composition models and their baselines, one a file, found by listing."""

from unrolled.composition.base import Encoder
from unrolled.registry import Zoo

__all__ = ["ENCODERS"]

ENCODERS: Zoo[Encoder] = Zoo(__name__, Encoder, "encoder")  # type: ignore[type-abstract]  # members are concrete
