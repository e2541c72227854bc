"""One step: a batch's loss, its gradient, and the move of the weights, in one process or in several."""

from __future__ import annotations

import math
import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from unrolled.errors import DivergedError, UsageError
from unrolled.lab.data.batches.base import Batch
from unrolled.lab.models.factory import make_optimiser
from unrolled.lab.training.distributed import ProcessGroup
from unrolled.lab.training.settings import TrainingSettings
from unrolled.lab.training.task import HiddenState, Task
from unrolled.lab.training.weight_decay import decay_groups

__all__ = ["StepResult", "Stepper", "refuse_non_finite"]

_SMALLEST_SCALE = 2.0**-10  # float16 has no smaller numbers to lose: what overflows here overflows in float32


class _Learner(nn.Module):
    """A model whose call is its loss: DistributedDataParallel watches calls."""

    def __init__(self, task: Task[Any, Any], model: nn.Module) -> None:
        super().__init__()
        self.task = task
        self.model = model

    def forward(self, batch: Batch, state: HiddenState) -> tuple[Tensor, int, HiddenState]:
        loss = self.task.loss(self.model, batch, state)
        return loss.total, loss.count, tuple(each.detach() for each in loss.state)


class StepResult(NamedTuple):
    """What a step came to, in all processes together."""

    loss: float
    """Mean of the batch's predictions."""
    predictions: int
    norm: float | None
    """Of the gradient, before it is cut; none where float16 overflowed and the step was left out."""
    carried: HiddenState
    """What this process's share of the batch leaves to the next."""
    stop: bool
    """Whether any process was asked to stop."""


class Stepper:
    """What moves the weights of a model."""

    def __init__(
        self, task: Task[Any, Any], model: nn.Module, settings: TrainingSettings, processes: ProcessGroup
    ) -> None:
        self.model = model
        self.settings = settings
        self.processes = processes
        learner: nn.Module = _Learner(task, model)
        if not processes.alone:
            warnings.filterwarnings("ignore", "find_unused_parameters=True was specified", UserWarning)
            # A batch need not use all parameters: those of rare words in an adaptive softmax, for instance.
            learner = DistributedDataParallel(learner, find_unused_parameters=True)
        self.learner = learner
        own = {"momentum": settings.momentum} if settings.optimiser == "sgd" else {}
        groups = decay_groups(model, settings.weight_decay)
        self.optimiser = make_optimiser(settings.optimiser, groups, settings.lr, **own)
        self.type = _type(settings.precision, processes.device)
        self.scaler = torch.amp.GradScaler("cuda", enabled=self.type is torch.float16)

    def __call__(self, batch: Batch, carried: HiddenState, lr: float, asked: bool) -> StepResult:
        """Learn one batch."""
        for group in self.optimiser.param_groups:
            group["lr"] = lr
        share, weight = self.processes.share(batch)
        with self._autocast():
            total, count, carried = self.learner(share.to(self.processes.device), carried)
        total, count, stop = total * weight, count * weight, asked
        everyone = total.detach()
        if not self.processes.alone:
            loss, predictions, stops = self.processes.sum([total.item(), count, asked])
            everyone, count, stop = everyone.new_tensor(loss), int(predictions), stops > 0
        # Gradients are averaged over processes, and are to be that of the mean over all predictions.
        objective = total * (self.processes.count / max(count, 1))
        self.optimiser.zero_grad()
        self.scaler.scale(objective).backward()
        self.scaler.unscale_(self.optimiser)
        trained = [parameter for parameter in self.model.parameters() if parameter.grad is not None]
        length = nn.utils.get_total_norm([parameter.grad for parameter in trained if parameter.grad is not None])
        # the one wait for the GPU
        mean, norm = torch.stack([everyone.double() / max(count, 1), length.double()]).tolist()
        overflow = self.scaler.is_enabled() and not math.isfinite(norm) and self.scaler.get_scale() > _SMALLEST_SCALE
        if not math.isfinite(mean) or not (math.isfinite(norm) or overflow):
            raise DivergedError(self._diagnosis(mean))
        if self.settings.clip:
            nn.utils.clip_grads_with_norm_(trained, self.settings.clip, length)
        self.scaler.step(self.optimiser)
        self.scaler.update()
        return StepResult(mean, count, None if overflow else norm, carried, stop)

    def _autocast(self) -> AbstractContextManager[Any]:
        if self.type is torch.float32:
            return nullcontext()
        return torch.autocast(self.processes.device.type, self.type)

    def _diagnosis(self, loss: float) -> str:
        """Name the first tensor that is not finite, as the step made them."""
        broken = _first_broken(self.model)
        if not math.isfinite(loss):
            return f"the loss is {loss}" + (f", since the parameter {broken} is not finite" if broken else "")
        for name, parameter in self.model.named_parameters():
            if parameter.grad is not None and not torch.isfinite(parameter.grad).all():
                return f"the gradient of {name} is not finite"
        return "the norm of the gradient is not finite"

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Take down where the optimiser is."""
        state = self.optimiser.state_dict()["state"]
        tensors = {
            f"{number}.{name}": value
            for number, values in state.items()
            for name, value in values.items()
            if isinstance(value, Tensor)
        }
        return tensors, self.scaler.state_dict()

    def restore(self, tensors: dict[str, Tensor], scaler: dict[str, Any]) -> None:
        """Put the optimiser where it was."""
        whole = self.optimiser.state_dict()
        whole["state"] = {}
        for key, value in tensors.items():
            number, name = key.split(".", 1)
            whole["state"].setdefault(int(number), {})[name] = value
        self.optimiser.load_state_dict(whole)
        self.scaler.load_state_dict(scaler)


def refuse_non_finite(model: nn.Module) -> None:
    """Make sure that a model is worth a checkpoint."""
    if broken := _first_broken(model):
        raise DivergedError(f"the parameter {broken} is not finite")


def _first_broken(model: nn.Module) -> str | None:
    return next((name for name, value in model.named_parameters() if not torch.isfinite(value).all()), None)


def _type(precision: str, device: torch.device) -> torch.dtype:
    """Choose the numbers of products."""
    if device.type == "cpu":
        if precision in {"bf16", "fp16"}:
            raise UsageError(f"the precision is {precision} on a CPU; expected full: mixed precision needs a GPU")
        return torch.float32
    if precision == "auto":
        precision = "bf16" if torch.cuda.is_bf16_supported() else "full"
    return {"full": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]
