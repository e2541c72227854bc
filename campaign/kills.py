"""Kill trainings: at every call by which they change their files, at random, one process and two."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from pathlib import Path

import torch
from killing import COMMON, Fuse, Spectral, Streams, Texts, go_on, load_once, recorded, same, start

from cases import Part, code_of, fork
from toy_tasks import DATA, Carry, carry, stream
from unrolled.errors import UnrolledError
from unrolled.lab.papers.framework.synthetic_corpora import SYNTHETIC
from unrolled.lab.tasks import TASKS
from unrolled.lab.training.engine import resume, train
from unrolled.lab.training.run_folder import load_run
from unrolled.lab.training.settings import TrainingSettings

_PHASES = ("before", "half", "after")


class Tags:
    """The fourth task: tagged sentences with a CRF."""

    kind = None
    corpus = SYNTHETIC[TASKS.get("tag").kind]((24, 8, 8), 0)
    task = TASKS.get("tag").from_corpus(corpus, TASKS.get("tag").Architecture(hidden=5, embedding=4))
    settings = TrainingSettings(**COMMON, epochs=2)


TASKS_KILLED = (Texts, Spectral, Streams, Tags)


def prepare(place: Path):
    """Train each task once without a kill, and record the calls that change files."""
    load_once()
    found = {}
    for case in TASKS_KILLED:
        (place / case.__name__).mkdir(parents=True, exist_ok=True)
        reference = place / case.__name__ / "run"
        calls, seconds = recorded(case, reference)
        found[case] = reference, calls, seconds
    return found


def kill(number: int, draw: random.Random, place: Path, shared) -> list[str]:
    """Kill one training at one call; or, every fifth time, twice at random; then go on to the end."""
    case = TASKS_KILLED[number % len(TASKS_KILLED)]
    reference, calls, seconds = shared[case]
    folder = place / "run"
    if number % 5 == 4:
        killed = []
        for _ in range(2):
            child = fork(lambda: go_on(case, folder))
            time.sleep(draw.uniform(0, seconds))
            os.kill(child, signal.SIGKILL)
            killed.append(code_of(child))
        label = f"{case.__name__} killed twice at random"
    else:
        at = (number // len(TASKS_KILLED) * 7 + draw.randrange(3)) % len(calls)  # evenly over all calls
        phase = draw.choice(_PHASES if calls[at][0] == "write" else ("before", "after"))

        def doomed():
            Fuse(folder, at, phase, tuple(calls[at]))
            start(case, folder)

        label = f"{case.__name__} killed {phase} {' '.join(calls[at])} ({at})"
        if (code := code_of(fork(doomed))) != -signal.SIGKILL:
            return [f"{label}: was not killed but ended with {code}"]
    wrong = []
    if (code := code_of(fork(lambda: look(case, folder)))) != 0:
        wrong.append(f"{label}: a reader ended with {code}")
    if (code := code_of(fork(lambda: go_on(case, folder)))) != 0:
        return [*wrong, f"{label}: going on ended with {code}"]
    return wrong + [f"{label}: {name} differs" for name, equal in same(folder, reference).items() if not equal]


def look(case, folder: Path) -> None:
    """A reader sees a whole state, or an error of one line."""
    try:
        load_run(folder, case.kind)
    except UnrolledError as error:
        assert "\n" not in str(error)


def prepare_replacement(place: Path):
    """Train an earlier run and its successor, without a kill."""
    load_once()
    (place / "earlier").mkdir(parents=True, exist_ok=True)
    recorded(Texts, place / "earlier" / "run")
    (place / "later").mkdir(exist_ok=True)
    shutil.copytree(place / "earlier" / "run", place / "later" / "run")
    reading, writing = os.pipe()

    def work() -> None:
        fuse = Fuse(place / "later" / "run")
        replace_run(place / "later" / "run")
        with os.fdopen(writing, "w") as file:
            json.dump(fuse.calls, file)

    child = fork(work)
    os.close(writing)
    with os.fdopen(reading) as file:
        calls = json.load(file)
    assert code_of(child) == 0
    return place, calls


def replace_run(folder: Path) -> None:
    """Replace a run by one of another seed."""
    settings = Texts.settings.model_copy(update={"seed": 7})
    train(Texts.task, Texts.corpus, settings, folder, data=DATA, force=True)


def kill_replacement(number: int, draw: random.Random, place: Path, shared) -> list[str]:
    """Kill a training that replaces a run: one of the two is there, whole, or goes on to its end."""
    home, calls = shared
    folder, at = place / "run", number % len(calls)
    shutil.copytree(home / "earlier" / "run", folder)
    phase = draw.choice(("before", "after"))

    def doomed() -> None:
        Fuse(folder, at, phase, tuple(calls[at]))
        replace_run(folder)

    label = f"replacement killed {phase} {' '.join(calls[at])} ({at})"
    if (code := code_of(fork(doomed))) != -signal.SIGKILL:
        return [f"{label}: was not killed but ended with {code}"]
    if (code := code_of(fork(lambda: resume(folder, Texts.corpus)))) != 0:
        return [f"{label}: going on ended with {code}"]
    if not any(all(same(folder, home / which / "run").values()) for which in ("earlier", "later")):
        return [f"{label}: the run is neither the earlier nor the later one"]
    return []


def two(folder: Path, kill_at: int | None, store: Path) -> list[int]:
    """Train or go on with two processes; the main one may be killed at a call. Returns how they ended."""
    if store.exists():
        store.unlink()

    def work(rank: int) -> None:
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2")
        torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
        if kill_at is not None and rank == 0:
            Fuse(folder, kill_at, "before", _Any())
        settings = TrainingSettings(**{**COMMON, "batch": 3}, epochs=1)
        task = carry(options={"double": True})
        if folder.exists():
            resume(folder, stream(), task_class=Carry)
        else:
            train(task, stream(), settings, folder, data=DATA)

    children = [fork(lambda rank=rank: work(rank)) for rank in range(2)]
    return [code_of(child) for child in children]


class _Any:
    """Equal to every call: the calls of the main process of two are not recorded before."""

    def __eq__(self, _):
        return True

    __hash__ = None


def prepare_two(place: Path):
    """Train once with two processes that are not killed."""
    place.mkdir(parents=True, exist_ok=True)
    ends = two(place / "run", None, place / "store")
    assert ends == [0, 0], ends
    return place / "run"


def kill_two(number: int, draw: random.Random, place: Path, reference: Path) -> list[str]:
    """Kill the main process of two at a call; the other must end by itself; then two go on."""
    folder, at = place / "run", 3 + number * 9 + draw.randrange(9)
    killed, other = two(folder, at, place / "store")
    if killed != -signal.SIGKILL:
        return [] if (killed, other) == (0, 0) else [f"two processes, call {at}: ended with {killed} and {other}"]
    if other == 0 and not (folder / "metrics.json").exists():
        return [f"two processes, call {at}: the other ended with 0"]
    if (ends := two(folder, None, place / "store2")) != [0, 0]:
        return [f"two processes, call {at}: going on ended with {ends}"]
    return [f"two processes, call {at}: {name} differs" for name, equal in same(folder, reference).items() if not equal]


PARTS = (
    Part(
        "kills of a replacement (--force)",
        "the earlier run is there, or the later one goes on",
        60,
        kill_replacement,
        prepare_replacement,
    ),
    Part("kills", "a killed training goes on to the same weights and log, byte by byte", 480, kill, prepare),
    Part("kills of two processes", "the same for two processes; the other one ends", 20, kill_two, prepare_two),
)
