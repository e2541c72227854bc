"""One training: its steps, its epochs, its checkpoints and its end."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from unrolled.errors import DivergedError
from unrolled.lab.training.callbacks import Callback, CallbackList, Epoch, Step, merit
from unrolled.lab.training.checkpoints import Checkpoints
from unrolled.lab.training.distributed import ProcessGroup, own
from unrolled.lab.training.evaluation import EvaluationStopped, evaluate
from unrolled.lab.training.interruption import Interruption
from unrolled.lab.training.logs import Logs
from unrolled.lab.training.model_card import model_card
from unrolled.lab.training.rng_state import capture, restore
from unrolled.lab.training.run_folder import CHECKPOINTS, Run, RunConfig, begin_folder, finish_folder
from unrolled.lab.training.schedule import learning_rate
from unrolled.lab.training.spectral_norm import normalise_spectrum
from unrolled.lab.training.state_dicts import all_tensors, load_tensors, plain_tensors
from unrolled.lab.training.stepper import Stepper, StepResult, refuse_non_finite
from unrolled.lab.training.task import HiddenState, Split
from unrolled.lab.training.tensorboard import TensorBoard
from unrolled.lab.training.training_state import Sums, TrainingState

__all__ = ["Trainer"]

_IN_A_ROW = 16  # batches put together at once: few enough for their memory to be nothing


class Trainer:
    """One training, between its first step and its last."""

    def __init__(
        self,
        plan: RunConfig,
        model: nn.Module,
        splits: dict[str, Split[Any]],
        folder: Path,
        processes: ProcessGroup,
        callback: Callback,
    ) -> None:
        self.plan = plan
        self.settings = plan.settings
        self.splits = splits
        self.folder = folder.resolve()
        self.processes = processes
        if self.settings.tensorboard and processes.first:
            callback = CallbackList(callback, TensorBoard(self.folder / "tensorboard"))
        self.callback = callback
        self.model = (normalise_spectrum(model) if self.settings.spectral else model).to(processes.device).train()
        self.stepper = Stepper(plan.task, self.model, self.settings, processes)
        self.state = TrainingState()
        self.carried: HiddenState = ()
        self.order = torch.Generator().manual_seed(self.settings.seed)
        self.drawn = self.order.get_state()
        """Where the generator of the order was before it drew the order of this epoch."""
        self.checkpoints = Checkpoints(self.folder / CHECKPOINTS)

    def begin(self) -> None:
        """Make the run folder, with a first checkpoint; an earlier run that stands there is replaced."""
        tensors = self._tensors()
        if self.processes.first:
            with begin_folder(self.folder, self.plan) as folder:
                logs = Logs(folder, self.plan.task.metrics)
                self.state.logs = logs.sync()
                logs.close()
                Checkpoints(folder / CHECKPOINTS).save(0, tensors, self.state.to_record())
        self.processes.wait()

    def restore(self) -> None:
        """Go back to the last whole checkpoint."""
        tensors, record = self.checkpoints.newest(self.callback.on_message if self.processes.first else lambda _: None)
        self.processes.wait()
        if self.processes.first:
            self.checkpoints.drop_damaged()
        self.state = TrainingState.from_record(record)
        load_tensors(self.model, _below("model.", tensors), self.checkpoints.folder)
        # copies: a tensor out of a file may begin anywhere, and products are rounded by where their operands begin
        self.stepper.restore(
            {name: each.clone() for name, each in _below("optimiser.", tensors).items()}, self.state.scaler
        )
        self.drawn = tensors["order"].clone()
        self.order.set_state(self.drawn)
        mine = _below(f"rank.{self.processes.rank}.", tensors)
        restore(_below("generator.", mine))
        carried = _below("carried.", mine)
        self.carried = tuple(carried[str(k)].clone().to(self.processes.device) for k in range(len(carried)))

    def run(self) -> Run:
        """Train until it is over."""
        self.callback.on_start(self.plan.task.metrics, self.settings, self.state.step)
        logs = Logs(self.folder, self.plan.task.metrics) if self.processes.first else None
        try:
            if logs:
                logs.cut(self.state.logs)
            with Interruption() as self.interruption:
                self.logs = logs
                while not self.state.over(self.settings):
                    self._epoch()
                return self._finish()
        finally:
            if logs:
                logs.close()
            self.callback.on_end()

    def _epoch(self) -> None:
        """Learn the training split once, then judge."""
        train, state = self.splits["train"], self.state
        self.drawn = self.order.get_state()
        plan = train.plan(self.settings.batch, self.order)
        for batch in _selected(train, plan[state.batch :]):
            if state.exhausted(self.settings):
                break
            learned = self._step(batch, len(plan))
            if learned.stop:
                self._stop()
            if state.step % self.settings.checkpoint_every == 0:
                self._save()
        self._judge(self._lr(state.step - 1, len(plan)))

    def _lr(self, step: int, batches: int) -> float:
        """The learning rate of a step; how many there will be is reckoned from this epoch's batches."""
        steps = self.settings.steps or self.settings.epochs * batches
        return learning_rate(self.settings, step, steps, self.state.cuts)

    def _step(self, batch: Any, batches: int) -> StepResult:
        """Learn one batch."""
        began = time.perf_counter()
        state, settings = self.state, self.settings
        lr = self._lr(state.step, batches)
        try:
            learned = self.stepper(batch, self.carried, lr, self.interruption.heard is not None)
        except DivergedError as error:
            raise self._diverged(error, state.step + 1) from None
        self.carried = learned.carried
        state.step += 1
        state.batch += 1
        step = Step(state.step, state.epoch, state.batch, batches, learned.predictions, learned.loss, learned.norm, lr)
        seconds = time.perf_counter() - began
        state.window.add(step, seconds)
        state.whole.add(step, seconds)
        if state.step % settings.log_every == 0:
            if self.logs:
                self.logs.steps(state.step, state.epoch, *state.window.means, lr)
            state.window = Sums()
        self.callback.on_step(step)
        return learned

    def _judge(self, lr: float) -> None:
        """Measure on dev, and end the epoch, whose last step had this learning rate."""
        state, task = self.state, self.plan.task
        began = time.perf_counter()
        drawn = capture()
        dev = self._measure(self.model, "dev")
        if dev is None:
            restore(drawn)
            self._stop()
        seconds = time.perf_counter() - began
        best = not state.history or merit(task.metrics, dev) > merit(task.metrics, state.best_epoch.dev)
        epoch = Epoch(state.epoch, state.step, *state.whole.means, lr, dev, best)
        if best and self.processes.first:
            state.best = self.checkpoints.save_best(self._best())
        if self.logs:
            self.logs.epoch(epoch, state.whole.seconds, seconds, state.whole.predictions)
        state.history.append(epoch)
        state.predictions += state.whole.predictions
        state.training += state.whole.seconds
        state.judging += seconds
        self.callback.on_epoch(epoch, state.best_epoch, state.whole.seconds + seconds)
        state.epoch, state.batch, state.whole, self.carried = state.epoch + 1, 0, Sums(), ()
        self.drawn = self.order.get_state()
        self._save()

    def _measure(self, model: nn.Module, split: str) -> dict[str, float] | None:
        """Measure in the first process, and tell the others; none when it was asked to stop."""
        metrics = self.plan.task.metrics
        values = [0.0] * (len(metrics) + 1)
        if self.processes.first:
            try:
                device = self.processes.device
                found = evaluate(
                    self.plan.task, model, self.splits[split], device, lambda: bool(self.interruption.heard)
                )
                values = [1.0, *(value if math.isfinite(value) else math.nan for value in found.values())]
            except EvaluationStopped:
                pass
        whole, *numbers = self.processes.told(values)
        return {each.name: value for each, value in zip(metrics, numbers, strict=True)} if whole else None

    def _best(self) -> dict[str, Tensor]:
        """The weights in plain form; a normalised one stands still in eval mode."""
        self._refuse_non_finite()
        self.model.eval()
        tensors = plain_tensors(self.model)
        self.model.train()
        return tensors

    def _save(self) -> None:
        """Write a checkpoint; all processes come here together."""
        self._refuse_non_finite()
        tensors = self._tensors()
        if self.logs:
            self.state.logs = self.logs.sync()
            self.checkpoints.save(self.state.step, tensors, self.state.to_record())

    def _tensors(self) -> dict[str, Tensor]:
        """All tensors of the training."""
        optimiser, self.state.scaler = self.stepper.state()
        mine = {f"generator.{name}": value for name, value in capture().items()}
        mine |= {f"carried.{k}": own(value) for k, value in enumerate(self.carried)}
        return {
            **{f"model.{name}": value for name, value in all_tensors(self.model).items()},
            **{f"optimiser.{name}": own(value) for name, value in optimiser.items()},
            "order": self.drawn,
            **{
                f"rank.{rank}.{name}": value
                for rank, tensors in enumerate(self.processes.gather(mine))
                for name, value in tensors.items()
            },
        }

    def _refuse_non_finite(self) -> None:
        try:
            refuse_non_finite(self.model)
        except DivergedError as error:
            raise self._diverged(error, self.state.step) from None

    def _diverged(self, error: DivergedError, step: int) -> DivergedError:
        return DivergedError(
            f"step {step} of epoch {self.state.epoch}: {error}; expected finite numbers: try a learning rate below "
            f"{self.settings.lr:g}. The last good checkpoint is kept in {self.folder}"
        )

    def _stop(self) -> NoReturn:
        """Save, and end the program."""
        self._save()
        self.interruption.leave(
            f"stopped and saved after step {self.state.step} of {self.folder}, which can be resumed"
        )

    def _finish(self) -> Run:
        """Measure the best weights on test, and write what came of it."""
        state, plan = self.state, self.plan
        model = plan.task.build()
        # the others have no best weights; what they are sent are the first one's
        best = self.checkpoints.load_best(state.best) if self.processes.first and state.best else {}
        best = self.processes.gather(best)[0]
        load_tensors(model, best, self.checkpoints.folder)
        test = self._measure(model.to(self.processes.device).eval(), "test")
        if test is None:
            self._stop()
        metrics = self._metrics(state.best_epoch, test)
        if self.processes.first:
            finish_folder(self.folder, best, model_card(plan, metrics, len(state.history)), metrics)
            self.checkpoints.keep_last()
        self.processes.wait()
        history = tuple(state.history)
        return Run(plan.task, model.to("cpu"), plan.settings, plan.data, metrics, history, self.folder)

    def _metrics(self, best: Epoch, test: dict[str, float]) -> dict[str, float]:
        state = self.state
        return {
            **{f"test_{name}": value for name, value in test.items()},
            **{f"dev_{name}": value for name, value in best.dev.items()},
            "best_epoch": best.number,
            "epochs": len(state.history),
            "steps": state.step,
            "seconds": round(state.training + state.judging, 3),
            "predictions_per_second": round(state.predictions / state.training, 1),
            "parameters": sum(parameter.numel() for parameter in set(self.model.parameters())),
        }


def _selected(split: Split[Any], plan: Sequence[Tensor]) -> Iterator[Any]:
    """Put batches together, some in a row: in between steps the processor's caches hold the model, not this code."""
    for begin in range(0, len(plan), _IN_A_ROW):
        yield from [split.select(which) for which in plan[begin : begin + _IN_A_ROW]]


def _below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Those whose name begins so, by the rest of it."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
