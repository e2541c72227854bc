"""Kill trainings for real, resume them, and compare with one that was never stopped; prints what it found as JSON.

A program of its own: torch is loaded once and every training is a forked child, so that a kill costs a fraction of a
second. A child counts the calls by which it changes its run folder (open, write, fsync, rename, unlink, truncate) and
sends itself SIGKILL before, in the middle of, or after one of them. At no moment does it know that it is a test.
"""

from __future__ import annotations

import gc
import json
import os
import random
import re
import signal
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path

import torch

from toy_tasks import DATA, Carry, carry, classify, stream, told
from unrolled.lab.data.load import is_dataset
from unrolled.lab.training import engine, trainer
from unrolled.lab.training.environment import Environment
from unrolled.lab.training.settings import TrainingSettings

COMMON = {"batch": 8, "lr": 0.03, "log_every": 3, "checkpoint_every": 2, "device": "cpu"}


def few():
    """Three batches or so, and a look at as many."""
    corpus = told(60)
    return replace(corpus, train=corpus.train[:24], dev=corpus.dev[:8], test=corpus.test[:8])


class Texts:
    kind = None
    corpus = few()
    task = classify(corpus)
    settings = TrainingSettings(**COMMON, epochs=3, schedule="plateau", weight_decay=0.01)


class Spectral:
    kind = None
    corpus = few()
    task = classify(corpus, encoder="simplified_gru", dropout=0.2)
    settings = TrainingSettings(**COMMON, epochs=2, spectral=True, optimiser="sgd", momentum=0.9, warmup=3)


class Streams:
    kind = Carry
    corpus = stream()
    task = carry()
    settings = TrainingSettings(**COMMON, epochs=2, steps=24, schedule="cosine", optimiser="adamw", patience=5)


QUICK = {
    "Texts": (
        "half write .step.safetensors.tmp",
        "after replace .step.safetensors.tmp",
        "half write .best.safetensors.tmp",
        "half write log.jsonl",
        "before rename .run.partial",
        "after replace .metrics.json.tmp",
    ),
    "Streams": ("before ftruncate log.jsonl", "before replace .step.safetensors.tmp"),
}


def start(case, folder):
    return engine.train(case.task, case.corpus, case.settings, folder, data=DATA)


def go_on(case, folder):
    if folder.exists():
        return engine.resume(folder, case.corpus, task_class=case.kind)
    return start(case, folder)  # it was killed before there was anything to resume


class Fuse:
    """Counts the calls that change files below a folder; the one numbered ``at`` is the last."""

    def __init__(self, folder, at=None, phase="before", expected=None):
        self.folder, self.at, self.phase, self.expected = str(folder.parent), at, phase, expected
        self.names, self.calls = {}, []
        for name in ("open", "write", "fsync", "rename", "replace", "unlink", "ftruncate", "mkdir"):
            setattr(os, name, self.watched(name, getattr(os, name)))

    def watched(self, name, call):
        def watching(target, *rest, **options):
            path = str(self.names.get(target, "") if isinstance(target, int) else os.fspath(target))
            if not path.startswith(self.folder):
                return call(target, *rest, **options)
            self.calls.append((name, kind_of(path) if path != self.folder else ".."))
            last = len(self.calls) - 1 == self.at
            assert not last or self.calls[-1] == self.expected
            if last and self.phase == "half":
                call(target, bytes(rest[0])[: len(rest[0]) // 2])
            if last and self.phase != "after":
                os.kill(os.getpid(), signal.SIGKILL)
            found = call(target, *rest, **options)
            if last:
                os.kill(os.getpid(), signal.SIGKILL)
            if name == "open":
                self.names[found] = path
            return found

        return watching


def kind_of(path):
    return re.sub(r"step-\d+-\w+", "step", re.sub(r"best-\w+", "best", Path(path).name))


def load_once():
    """Load and look up what trainings need, which each child would do anew, and spare its collector what is there."""
    is_dataset("none")
    Environment.of_this_process()
    one = torch.ones(1, requires_grad=True)
    torch.autograd.grad(one * 1, one, torch.ones(1))  # gradients of given ones, as the cells of Spectral compute them
    gc.collect()
    gc.freeze()


def fork(work):
    """Run something in a child; its number."""
    child = os.fork()
    if not child:
        try:
            work()
            os._exit(0)
        except BaseException:  # whatever it is, the child ends here
            traceback.print_exc()
            os._exit(1)
    return child


def status(child):
    """How a child ended; negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def in_child(work):
    return status(fork(work))


def recorded(case, folder):
    """The calls of a training that is not killed, and how long it takes."""
    reading, writing = os.pipe()

    def work():
        fuse = Fuse(folder)
        start(case, folder)
        with os.fdopen(writing, "w") as file:
            json.dump(fuse.calls, file)

    began = time.monotonic()
    child = fork(work)
    os.close(writing)
    with os.fdopen(reading) as file:
        calls = [tuple(call) for call in json.load(file)]
    assert status(child) == 0
    return calls, time.monotonic() - began


def points(calls):
    """One of each kind of moment, from the middle of the training where it comes again and again."""
    found = {}
    for number, call in enumerate(calls):
        found.setdefault(call, []).append(number)
    for (name, kind), numbers in found.items():
        number = numbers[len(numbers) // 2]
        for phase in {"write": ("half",), "replace": ("before", "after")}.get(name, ("before",)):
            yield f"{phase} {name} {kind} ({number})", number, phase


def same(folder, reference):
    return {
        name: (folder / name).read_bytes() == (reference / name).read_bytes()
        for name in ("weights.safetensors", "log.jsonl", "log.csv")
    }


def left_over(folder):
    return sorted(path.name for path in folder.parent.rglob("*") if ".tmp" in path.name or ".partial" in path.name)


def killed_at(case, folder, reference, label, number, phase):
    folder.parent.mkdir()

    def doomed():
        Fuse(folder, number, phase, case.calls[number])
        start(case, folder)

    killed = in_child(doomed)
    resumed = in_child(lambda: go_on(case, folder))
    return {"moment": label, "killed": killed, "resumed": resumed, **same(folder, reference), "left": left_over(folder)}


def killed_after(case, folder, reference, seconds):
    folder.parent.mkdir()
    kills = 0
    for delay in seconds:
        child = fork(lambda: go_on(case, folder))
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
        kills += status(child) == -signal.SIGKILL
    resumed = in_child(lambda: go_on(case, folder))
    return {"moment": f"after {seconds}", "killed": kills, "resumed": resumed, **same(folder, reference)}


def forgetful(case, folder, reference, forget):
    """Resume without something that a checkpoint holds: the comparison has to notice."""

    def doomed():
        Fuse(folder, at, "before", calls[at])
        start(case, folder)

    folder.parent.mkdir()
    calls = case.calls
    at = [k for k, call in enumerate(calls) if call == ("open", ".step.safetensors.tmp")][-3]

    def resumed():
        forget()
        go_on(case, folder)

    return {"killed": in_child(doomed), "resumed": in_child(resumed), **same(folder, reference)}


def main(place, extent):
    """The quick extent has one or two moments of each kind of file, the full one has all moments of all cases."""
    torch.set_num_threads(1)
    load_once()
    os.fsync = os.fstat  # what was written before a kill is there: only a crash of the machine loses what has no fsync
    draw = random.Random(0)
    report = {"chosen": [], "random": [], "forgetful": {}}
    for case in (Texts, Streams) if extent == "quick" else (Texts, Spectral, Streams):
        home = place / case.__name__
        (home / "reference").mkdir(parents=True)
        reference = home / "reference" / "run"
        case.calls, seconds = recorded(case, reference)
        chosen = list(points(case.calls))
        if extent == "quick":
            chosen = [moment for moment in chosen if moment[0].startswith(QUICK[case.__name__])]
        elif case is not Texts:  # the moments are the same; what is carried over them is not
            chosen = draw.sample(chosen, 8)
        for count, moment in enumerate(chosen):
            report["chosen"].append(killed_at(case, home / str(count) / "run", reference, *moment))
        for count in range((case is Texts) if extent == "quick" else 4):
            delays = [draw.uniform(0, seconds) for _ in range(2)]
            report["random"].append(killed_after(case, home / f"random{count}" / "run", reference, delays))
    texts, streams = place / "Texts", place / "Streams"
    report["forgetful"]["nothing"] = forgetful(Texts, texts / "kept" / "run", texts / "reference" / "run", lambda: None)
    report["forgetful"]["generators"] = forgetful(
        Texts,
        texts / "forgot" / "run",
        texts / "reference" / "run",
        lambda: setattr(trainer, "set_rng_state", lambda _: None),
    )

    class Uncarried(trainer.Trainer):
        def restore(self, lock):
            super().restore(lock)
            self.hidden_state = ()

    report["forgetful"]["carried"] = forgetful(
        Streams,
        streams / "forgot" / "run",
        streams / "reference" / "run",
        lambda: setattr(engine, "Trainer", Uncarried),
    )
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
