"""How a model is trained, whatever the task."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from unrolled.errors import UsageError
from unrolled.lab.settings import Settings

__all__ = ["TrainingSettings"]


class TrainingSettings(Settings):
    """How a model is trained. The defaults were chosen on SST-2's dev set."""

    epochs: int = Field(10, ge=1)
    """Passes over the training split, at most."""
    steps: int | None = Field(None, ge=1)
    """Stop after so many steps, wherever the epoch stands."""
    batch: int = Field(64, ge=1)
    """Examples in a batch; of running text, streams side by side. All processes together learn one batch a step."""
    lr: float = Field(0.001, gt=0.0)
    """Learning rate."""
    optimiser: Literal["adam", "adamw", "adagrad", "sgd"] = "adam"
    """What moves the weights."""
    momentum: float = Field(0.0, ge=0.0, lt=1.0)
    """Momentum of sgd."""
    weight_decay: float = Field(0.0, ge=0.0)
    """Weight decay, of matrices alone."""
    spectral: bool = False
    """Divide every recurrent weight by its largest singular value."""
    clip: float = Field(1.0, ge=0.0)
    """The gradient's norm is cut to this; 0 leaves it."""
    patience: int = Field(3, ge=1)
    """Stop after so many epochs without a better one on dev."""
    schedule: Literal["constant", "linear", "cosine", "plateau"] = "constant"
    """How the learning rate falls: to 0 by the last step, or by the factor after an epoch that was not the best."""
    warmup: int = Field(0, ge=0)
    """Steps in which the learning rate rises from 0."""
    factor: float = Field(0.5, gt=0.0, lt=1.0)
    """What plateau multiplies the learning rate by."""
    precision: Literal["auto", "full", "bf16", "fp16"] = "auto"
    """Numbers on a GPU: full is float32; auto is bf16 where the GPU has it, and full on a CPU."""
    device: str = "auto"
    """Where to train: cpu, cuda, cuda:1; auto takes a GPU if there is one."""
    seed: int = Field(0, ge=0, lt=2**32)
    """Same seed, same network."""
    log_every: int = Field(50, ge=1)
    """Steps between two lines of the log."""
    checkpoint_every: int = Field(1000, ge=1)
    """Steps between two checkpoints; each epoch's end has one as well."""
    vectors: Path | None = None
    """A text file of word vectors, as GloVe's, to begin with."""
    tensorboard: bool = False
    """Write the log for TensorBoard as well."""

    @field_validator("device")
    @classmethod
    def _device(cls, name: str) -> str:
        if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", name, re.ASCII):
            raise UsageError(f"device is {name!r}; expected auto, cpu, cuda or a numbered GPU such as cuda:1")
        return name

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.momentum and self.optimiser != "sgd":
            raise UsageError(f"momentum is {self.momentum:g} with {self.optimiser}; expected 0, or the optimiser sgd")
        return self
