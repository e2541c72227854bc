"""One training step: loss, gradient and update of the weights, in one process or in several."""

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
from unrolled.lab.training.optimisation import decay_groups
from unrolled.lab.training.settings import TrainingSettings
from unrolled.lab.training.task import HiddenState, Task

__all__ = ["StepResult", "Stepper", "check_finite"]

_SMALLEST_SCALE = 2.0**-10  # a gradient that overflows float16 at this scale also overflows float32


class _Learner(nn.Module):
    """A module whose forward pass is the loss, as DistributedDataParallel needs it."""

    def __init__(self, task: Task[Any, Any], model: nn.Module) -> None:
        super().__init__()
        self.task = task
        self.model = model

    def forward(self, batch: Batch, state: HiddenState) -> tuple[Tensor, int, HiddenState]:
        loss = self.task.loss(self.model, batch, state)
        return loss.total, loss.count, tuple(each.detach() for each in loss.state)


class StepResult(NamedTuple):
    """The result of a step, over all processes."""

    loss: float
    """Mean loss of a prediction."""
    predictions: int
    norm: float | None
    """Norm of the gradient before clipping; None where float16 overflowed and the step was skipped."""
    hidden_state: HiddenState
    """The hidden state that this process carries to the next batch."""
    stop: bool
    """Whether any process has received a signal to stop."""


class Stepper:
    """Update the weights of a model, batch by batch."""

    def __init__(self, task: Task[Any, Any], model: nn.Module, settings: TrainingSettings, group: ProcessGroup) -> None:
        self.model = model
        self.settings = settings
        self.group = group
        learner: nn.Module = _Learner(task, model)
        if not group.is_single:
            warnings.filterwarnings("ignore", "find_unused_parameters=True was specified", UserWarning)
            # A batch need not use all parameters: those of rare words in an adaptive softmax, for instance.
            learner = DistributedDataParallel(learner, find_unused_parameters=True)
        self.learner = learner
        own = {"momentum": settings.momentum} if settings.optimiser == "sgd" else {}
        groups = decay_groups(model, settings.weight_decay)
        self.optimiser = make_optimiser(settings.optimiser, groups, settings.lr, **own)
        self.dtype = _product_type(settings.precision, group.device)
        self.scaler = torch.amp.GradScaler("cuda", enabled=self.dtype is torch.float16)

    def __call__(self, batch: Batch, hidden_state: HiddenState, lr: float, stop: bool) -> StepResult:
        """Train on one batch, which is the same in all processes.

        ``hidden_state`` is what this process carries from the batch before; ``stop`` is whether it has received a
        signal. A DivergedError names the tensor that is not finite; the weights are not updated then.
        """
        for group in self.optimiser.param_groups:
            group["lr"] = lr
        share, weight = self.group.shard(batch)
        with self._autocast():
            total, count, hidden_state = self.learner(share.to(self.group.device), hidden_state)
        total, count = total * weight, count * weight
        everyone = total.detach()
        if not self.group.is_single:
            loss, predictions, stops = self.group.sum([total.item(), count, stop])
            everyone, count, stop = everyone.new_tensor(loss), int(predictions), stops > 0
        # DistributedDataParallel averages gradients over processes; the objective is the mean over all predictions.
        objective = total * (self.group.world_size / max(count, 1))
        self.optimiser.zero_grad()
        self.scaler.scale(objective).backward()
        self.scaler.unscale_(self.optimiser)
        gradients = [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]
        # as clip_grad_norm_ computes, in two parts: a gradient that is not finite is named before it is scaled
        length = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
        # the only wait for the GPU
        mean, norm = torch.stack([everyone.double() / max(count, 1), length.double()]).tolist()
        overflow = self.scaler.is_enabled() and not math.isfinite(norm) and self.scaler.get_scale() > _SMALLEST_SCALE
        if not math.isfinite(mean) or not (math.isfinite(norm) or overflow):
            raise DivergedError(self._diagnosis(mean))
        if self.settings.clip:
            torch._foreach_mul_(gradients, (self.settings.clip / (length + 1e-6)).clamp(max=1))
        self.scaler.step(self.optimiser)
        self.scaler.update()
        return StepResult(mean, count, None if overflow else norm, hidden_state, stop)

    def _autocast(self) -> AbstractContextManager[Any]:
        if self.dtype is torch.float32:
            return nullcontext()
        return torch.autocast(self.group.device.type, self.dtype)

    def _diagnosis(self, loss: float) -> str:
        """Name the first tensor that is not finite, in the order in which the step computes them."""
        broken = _first_non_finite(self.model)
        if not math.isfinite(loss):
            return f"the loss is {loss}" + (f", since the parameter {broken} is not finite" if broken else "")
        for name, parameter in self.model.named_parameters():
            if parameter.grad is not None and not torch.isfinite(parameter.grad).all():
                return f"the gradient of {name} is not finite"
        return "the norm of the gradient is not finite"

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the optimiser's tensors and the state of the gradient scaler; the step decides the learning rate."""
        state = self.optimiser.state_dict()["state"]
        tensors = {
            f"{number}.{name}": value
            for number, values in state.items()
            for name, value in values.items()
            if isinstance(value, Tensor)
        }
        return tensors, self.scaler.state_dict()

    def restore(self, tensors: dict[str, Tensor], scaler: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned."""
        whole = self.optimiser.state_dict()
        whole["state"] = {}
        for key, value in tensors.items():
            number, name = key.split(".", 1)
            whole["state"].setdefault(int(number), {})[name] = value
        self.optimiser.load_state_dict(whole)
        self.scaler.load_state_dict(scaler)


def check_finite(model: nn.Module) -> None:
    """Raise a DivergedError that names the first parameter that is not finite, if there is one."""
    if broken := _first_non_finite(model):
        raise DivergedError(f"the parameter {broken} is not finite")


def _first_non_finite(model: nn.Module) -> str | None:
    return next((name for name, value in model.named_parameters() if not torch.isfinite(value).all()), None)


def _product_type(precision: str, device: torch.device) -> torch.dtype:
    """Choose the floating-point type of matrix products."""
    if device.type == "cpu":
        if precision in {"bf16", "fp16"}:
            raise UsageError(f"precision is {precision} on a CPU, but mixed precision needs a GPU; set it to full")
        return torch.float32
    if precision == "auto":
        precision = "bf16" if torch.cuda.is_bf16_supported() else "full"
    return {"full": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]
