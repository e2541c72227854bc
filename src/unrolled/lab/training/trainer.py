"""The training loop: steps, epochs, checkpoints and the final evaluation."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from unrolled.errors import DataError, DivergedError
from unrolled.lab.data.batches.base import bounded_plan
from unrolled.lab.models.evaluation_mode import evaluation_mode
from unrolled.lab.training.callbacks import Callback, CallbackList, Epoch, Step, ranking_key
from unrolled.lab.training.checkpoints import Checkpoints
from unrolled.lab.training.distributed import ProcessGroup, cpu_copy
from unrolled.lab.training.evaluation import EvaluationStopped, evaluate
from unrolled.lab.training.interruption import Interruption
from unrolled.lab.training.logs import Logs
from unrolled.lab.training.model_card import model_card
from unrolled.lab.training.model_tensors import all_tensors, load_tensors, plain_tensors
from unrolled.lab.training.optimisation import learning_rate
from unrolled.lab.training.rng_state import get_rng_state, set_rng_state
from unrolled.lab.training.run_config import RunConfig
from unrolled.lab.training.run_creation import create_run_folder, finish_run_folder
from unrolled.lab.training.run_folder import Run
from unrolled.lab.training.run_lock import RunLock
from unrolled.lab.training.run_names import CHECKPOINTS
from unrolled.lab.training.spectral_norm import normalise_spectrum
from unrolled.lab.training.stepper import Stepper, StepResult, check_finite
from unrolled.lab.training.task import HiddenState, Split
from unrolled.lab.training.tensorboard import TensorBoard
from unrolled.lab.training.training_state import RunningMeans, TrainingState

__all__ = ["Trainer"]

_BATCHES_AHEAD = 16  # built at once: few enough to need little memory


class Trainer:
    """The training of one model."""

    def __init__(
        self,
        config: RunConfig,
        model: nn.Module,
        splits: dict[str, Split[Any]],
        folder: Path,
        group: ProcessGroup,
        callback: Callback,
    ) -> None:
        self.config = config
        self.settings = config.settings
        self.splits = splits
        self.folder = folder.resolve()
        self.group = group
        if self.settings.tensorboard and group.is_main:
            callback = CallbackList(callback, TensorBoard(self.folder / "tensorboard"))
        self.callback = callback
        for _, embedding in config.task.embeddings(model) if self.settings.freeze_vectors else ():
            embedding.weight.requires_grad_(False)
        if self.settings.spectral:
            normalise_spectrum(model, together=self.settings.spectral_stack)
        self.model = model.to(group.device).train()
        self.stepper = Stepper(config.task, self.model, self.settings, group)
        self.state = TrainingState()
        self.hidden_state: HiddenState = ()
        self.order = torch.Generator().manual_seed(self.settings.seed)
        self.order_state = self.order.get_state()
        """State of the generator of the order before it drew the order of this epoch."""
        self.checkpoints = Checkpoints(self.folder / CHECKPOINTS)
        self.lock: RunLock | None = None
        """In the main process, once there is a run folder."""

    def begin(self, force: bool, also_write: Callable[[Path], None]) -> RunLock | None:
        """Create the run folder with a first checkpoint, and return its lock.

        Args:
            force: Whether to replace an earlier run.
            also_write: Writes what else belongs in the folder from the beginning.
        """
        tensors = self._tensors()

        def fill(folder: Path) -> None:
            logs = Logs(folder, self.config.task.metrics)
            try:
                self.state.logs = logs.sync()
            finally:
                logs.close()
            also_write(folder)
            Checkpoints(folder / CHECKPOINTS).save(0, tensors, self.state.to_record())

        self.lock = self.group.in_main(lambda: create_run_folder(self.folder, self.config, force, fill))
        return self.lock

    def restore(self, lock: RunLock | None) -> None:
        """Restore the newest checkpoint that is not damaged; the main process has the lock."""
        self.lock = lock
        tensors, record = self.checkpoints.newest(self.callback.on_message if self.group.is_main else lambda _: None)
        self.group.barrier()
        if self.group.is_main:
            self.checkpoints.drop_damaged()
        self.state = TrainingState.from_record(record)
        load_tensors(self.model, _below("model.", tensors), self.checkpoints.folder)
        try:
            self._restore_tensors(tensors)
        except (KeyError, TypeError, ValueError, RuntimeError, IndexError) as error:
            raise DataError(f"{self.checkpoints.folder}: it does not fit this run; {error!r:.120}") from None

    def _restore_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Restore what a checkpoint holds beside the model."""
        # copies: a tensor from a file may be unaligned, and the rounding of products depends on the alignment
        self.stepper.restore(
            {name: each.clone() for name, each in _below("optimiser.", tensors).items()}, self.state.scaler
        )
        self.order_state = tensors["order"].clone()
        self.order.set_state(self.order_state)
        mine = _below(f"rank.{self.group.rank}.", tensors)
        set_rng_state(_below("generator.", mine))
        carried = _below("carried.", mine)
        self.hidden_state = tuple(carried[str(k)].clone().to(self.group.device) for k in range(len(carried)))

    def run(self) -> Run:
        """Train to the end, and return the run with the weights of the best epoch."""
        self.callback.on_start(self.config.task.metrics, self.settings, self.state.step)
        self.logs = Logs(self.folder, self.config.task.metrics) if self.group.is_main else None
        try:
            if self.logs:
                self.logs.truncate(self.state.logs)
            with Interruption() as self.interruption:
                while not self.state.over(self.settings, self.config.sizes["dev"]):
                    self._epoch()
                run = self._finish()
            if self.interruption.received is not None:  # while the results were written
                ended = f"the training of {self.folder} had ended when it was interrupted"
                self.interruption.raise_stop(ended, "evaluate", self.folder)
            return run
        finally:
            if self.logs:
                self.logs.close()
            self.callback.on_end()

    def _epoch(self) -> None:
        """Train on the training split once, then evaluate on dev."""
        train, state = self.splits["train"], self.state
        self.order_state = self.order.get_state()
        plan = bounded_plan(train, self.settings.batch, self.settings.max_tokens, self.order)
        for batch in _selected(train, plan, state.batch):
            if state.exhausted(self.settings):
                break
            result = self._step(batch, len(plan))
            if result.stop:
                self._stop()
            if state.step % self.settings.checkpoint_every == 0:
                self._save()
        self._end_epoch(self._lr(state.step - 1, len(plan)))

    def _lr(self, step: int, batches: int) -> float:
        """Compute the learning rate of a step; the number of all steps is estimated from this epoch's batches."""
        return learning_rate(self.settings, step, self.settings.most_steps(batches), self.state.cuts)

    def _step(self, batch: Any, batches: int) -> StepResult:
        """Train on one batch."""
        began = time.perf_counter()
        state, settings = self.state, self.settings
        lr = self._lr(state.step, batches)
        try:
            result = self.stepper(batch, self.hidden_state, lr, self.interruption.received is not None)
        except DivergedError as error:
            raise self._diverged(error, state.step + 1) from None
        self.hidden_state = result.hidden_state
        state.step += 1
        state.batch += 1
        step = Step(state.step, state.epoch, state.batch, batches, result.predictions, result.loss, result.norm, lr)
        seconds = time.perf_counter() - began
        state.window.add(step, seconds)
        state.whole.add(step, seconds)
        if state.step % settings.log_every == 0:
            if self.logs:
                self.logs.log_steps(state.step, state.epoch, *state.window.means, lr)
            state.window = RunningMeans()
        self.callback.on_step(step)
        return result

    def _end_epoch(self, lr: float) -> None:
        """Evaluate on dev and end the epoch, whose last step had this learning rate."""
        state, task = self.state, self.config.task
        began = time.perf_counter()
        drawn = get_rng_state()
        dev = self._evaluate(self.model, "dev")
        if dev is None:
            set_rng_state(drawn)
            self._stop()
        seconds = time.perf_counter() - began
        best = not state.history or ranking_key(task.metrics, dev) > ranking_key(task.metrics, state.best_epoch.dev)
        epoch = Epoch(state.epoch, state.step, *state.whole.means, lr, dev, best)
        if best and self.lock:
            self.lock.check()
            state.best = self.checkpoints.save_best(self._best_weights())
        if self.logs:
            self.logs.log_epoch(epoch, state.whole.seconds, seconds, state.whole.predictions)
        state.history.append(epoch)
        state.predictions += state.whole.predictions
        state.training += state.whole.seconds
        state.evaluation += seconds
        self.callback.on_epoch(epoch, state.best_epoch, state.whole.seconds + seconds)
        state.epoch, state.batch, state.whole, self.hidden_state = state.epoch + 1, 0, RunningMeans(), ()
        self.order_state = self.order.get_state()
        self._save()

    def _evaluate(self, model: nn.Module, split: str) -> dict[str, float] | None:
        """Evaluate in the main process, and broadcast the metrics; None after a signal to stop."""
        metrics = self.config.task.metrics
        values = [0.0] * (len(metrics) + 1)
        if self.group.is_main:
            try:
                found = evaluate(
                    self.config.task,
                    model,
                    self.splits[split],
                    self.group.device,
                    lambda: bool(self.interruption.received),
                    self.settings.max_tokens,
                )
                values = [1.0, *(value if math.isfinite(value) else math.nan for value in found.values())]
            except EvaluationStopped:
                pass
        whole, *numbers = self.group.broadcast(values)
        return {each.name: value for each, value in zip(metrics, numbers, strict=True)} if whole else None

    def _best_weights(self) -> dict[str, Tensor]:
        """Copy the weights in evaluation mode, in which a normalised weight does not change."""
        self._refuse_non_finite()
        with evaluation_mode(self.model):
            return plain_tensors(self.model)

    def _save(self) -> None:
        """Write a checkpoint; all processes call this together."""
        self._refuse_non_finite()
        tensors = self._tensors()
        if self.logs and self.lock:
            self.lock.check()
            self.state.logs = self.logs.sync()
            self.checkpoints.save(self.state.step, tensors, self.state.to_record())

    def _tensors(self) -> dict[str, Tensor]:
        """Collect all tensors of the training state, from all processes."""
        optimiser, self.state.scaler = self.stepper.state()
        mine = {f"generator.{name}": value for name, value in get_rng_state().items()}
        mine |= {f"carried.{k}": cpu_copy(value) for k, value in enumerate(self.hidden_state)}
        return {
            **{f"model.{name}": value for name, value in all_tensors(self.model).items()},
            **{f"optimiser.{name}": cpu_copy(value) for name, value in optimiser.items()},
            "order": self.order_state,
            **{
                f"rank.{rank}.{name}": value
                for rank, tensors in enumerate(self.group.gather(mine))
                for name, value in tensors.items()
            },
        }

    def _refuse_non_finite(self) -> None:
        try:
            check_finite(self.model)
        except DivergedError as error:
            raise self._diverged(error, self.state.step) from None

    def _diverged(self, error: DivergedError, step: int) -> DivergedError:
        return DivergedError(
            f"step {step} of epoch {self.state.epoch}: {error}; try a learning rate below "
            f"{self.settings.lr:g}. The last good checkpoint is in {self.folder}"
        )

    def _stop(self) -> NoReturn:
        """Write a checkpoint, and raise the exception of the signal."""
        self._save()
        saved = f"stopped and saved after step {self.state.step}; go on with"
        self.interruption.raise_stop(saved, "resume", self.folder)

    def _finish(self) -> Run:
        """Evaluate the best weights on test, and write the results."""
        state, config = self.state, self.config
        model = config.task.build()
        mine = self.checkpoints.load_best(state.best) if self.group.is_main and state.best else {}
        best = self.group.gather(mine)[0]  # the main process sends its own to the others
        load_tensors(model, best, self.checkpoints.folder)
        if (test := self._evaluate(model.to(self.group.device).eval(), "test")) is None:
            self._stop()
        metrics = state.metrics(test, sum(parameter.numel() for parameter in set(self.model.parameters())))
        if self.lock:
            self.lock.check()
            finish_run_folder(self.folder, best, model_card(config, metrics, len(state.history)), metrics)
            self.checkpoints.keep_last()
        self.group.barrier()
        history = tuple(state.history)
        return Run(config.task, model.to("cpu"), config.settings, config.data, metrics, history, self.folder)


def _selected(split: Split[Any], plan: Sequence[Tensor], first: int) -> Iterator[Any]:
    """Build some batches in a row, so that between steps the processor's caches hold the model, not this code."""
    for begin in range(first, len(plan), _BATCHES_AHEAD):
        yield from [split.select(which) for which in plan[begin : begin + _BATCHES_AHEAD]]


def _below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Select the tensors whose name starts with a prefix, by the rest of their names."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
