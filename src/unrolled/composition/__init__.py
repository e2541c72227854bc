"""Encoders: n-gram composition models and baselines. A new encoder is a class with a ``name`` in any module here."""

from unrolled.composition.base import Encoder
from unrolled.registry import Registry

__all__ = ["ENCODERS"]

ENCODERS: Registry[Encoder] = Registry(__name__, Encoder, "encoder")  # type: ignore[type-abstract]  # members are concrete
