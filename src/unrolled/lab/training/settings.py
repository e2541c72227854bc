"""The settings of a training."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from unrolled.errors import UsageError
from unrolled.lab.settings import Settings

__all__ = ["TrainingSettings"]


class TrainingSettings(Settings):
    """The training settings. The defaults were chosen on SST-2's dev set."""

    later = ("max_tokens", "freeze_vectors", "spectral_stack")
    epochs: int = Field(10, ge=1)
    """Largest number of passes over the training split."""
    steps: int | None = Field(None, ge=1)
    """Stop after this many steps, even within an epoch."""
    batch: int = Field(64, ge=1)
    """Batch size, over all processes: examples, or for running text the number of parallel streams."""
    max_tokens: int = Field(2**18, ge=1)
    """Largest number of tokens in a batch of texts, padding counted: long texts come in smaller batches."""
    lr: float = Field(0.001, gt=0.0)
    """Learning rate."""
    optimiser: Literal["adam", "adamw", "adagrad", "sgd"] = "adam"
    """Optimiser."""
    momentum: float = Field(0.0, ge=0.0, lt=1.0)
    """Momentum of sgd."""
    weight_decay: float = Field(0.0, ge=0.0)
    """Weight decay, of matrices only."""
    spectral: bool = False
    """Spectral normalisation: divide every recurrent weight by its largest singular value."""
    spectral_stack: bool = False
    """With spectral: divide the matrices of all gates of a cell together, by the value of their stack."""
    clip: float = Field(1.0, ge=0.0)
    """Clip the norm of the gradient to this; 0 for no clipping."""
    patience: int = Field(3, ge=1)
    """Early stopping: stop after this many epochs without a better one on dev; on a small dev split by its loss too."""
    schedule: Literal["constant", "linear", "cosine", "plateau"] = "constant"
    """Decay of the learning rate: to 0 at the last step, or by the factor after an epoch that was not the best."""
    warmup: int = Field(0, ge=0)
    """Number of steps in which the learning rate rises from 0."""
    factor: float = Field(0.5, gt=0.0, lt=1.0)
    """Factor of the schedule plateau."""
    precision: Literal["auto", "full", "bf16", "fp16"] = "auto"
    """Floating-point type on a GPU: full is float32; auto is bf16 if the GPU supports it; a CPU uses full."""
    device: str = "auto"
    """Device: cpu, cuda, cuda:1; auto uses a GPU if there is one."""
    seed: int = Field(0, ge=0, lt=2**32)
    """Random seed; the same seed gives the same network."""
    log_every: int = Field(50, ge=1)
    """Number of steps between two lines of the log."""
    checkpoint_every: int = Field(1000, ge=1)
    """Number of steps between two checkpoints; there is also one at the end of each epoch."""
    vectors: Path | None = None
    """Text file of word vectors, such as GloVe's, that initialise the embeddings."""
    freeze_vectors: bool = False
    """Do not train the word vectors, including those of words that the file lacks."""
    tensorboard: bool = False
    """Also write the log for TensorBoard."""

    def most_steps(self, batches: int) -> int:
        """Return the largest number of steps of a training with so many batches in an epoch."""
        most = self.epochs * batches
        return min(self.steps or most, most)

    def renamed(self, name: Callable[[str], str]) -> TrainingSettings:
        """Name the file of word vectors in another way."""
        return self if self.vectors is None else self.model_copy(update={"vectors": Path(name(str(self.vectors)))})

    @field_validator("device")
    @classmethod
    def _device(cls, name: str) -> str:
        if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", name, re.ASCII):
            raise UsageError(f"device is {name!r}; expected auto, cpu, cuda or a numbered GPU such as cuda:1")
        return name

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.momentum and self.optimiser != "sgd":
            raise UsageError(
                f"momentum is {self.momentum:g}, but the optimiser is {self.optimiser}; set momentum to 0, "
                "or optimiser to sgd"
            )
        if self.spectral_stack and not self.spectral:
            raise UsageError("spectral_stack is set, but spectral is not; set spectral too, or leave it out")
        if self.freeze_vectors and self.vectors is None:
            raise UsageError("freeze_vectors is set, but vectors is not; give a file of word vectors, or leave it out")
        return self
