"""One of several processes that learn together; does the jobs it is given and writes what came of each beside it.

A job is ``case:how:folder``. ``--fork`` before the jobs starts two processes that find loaded what both need.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import traceback
from importlib import import_module
from pathlib import Path

import torch
from torch import distributed

from toy_tasks import DATA, Carry, carry, classify, stream, told
from unrolled.errors import UnrolledError
from unrolled.lab.tasks.classify import Classify
from unrolled.lab.training.callbacks import Callback
from unrolled.lab.training.engine import resume, train
from unrolled.lab.training.settings import TrainingSettings

COMMON = {"lr": 0.03, "device": "cpu", "log_every": 2, "checkpoint_every": 3, "epochs": 2}


class Double(Classify):
    """In float64: what two processes add up in another order differs in the last digits alone."""

    def build(self):
        return super().build().double()


def texts(dropout):
    corpus = told(59)  # an odd number: one process has a row more
    task = classify(corpus, dropout=dropout, word_dropout=dropout)
    return Double(task.architecture, task.vocabulary, task.labels), corpus, {**COMMON, "batch": 8}


def streams(dropout):
    return carry(dropout=dropout, options={"double": True}), stream(), {**COMMON, "batch": 3}


def narrow(dropout):
    """Fewer rows than processes: one borrows a row that counts for nothing."""
    return carry(dropout=dropout, options={"double": True}), stream(), {**COMMON, "batch": 1, "epochs": 1}


CASES = {"texts": (texts, Double), "streams": (streams, Carry), "narrow": (narrow, Carry)}


class Stopping(Callback):
    """Sends SIGTERM to this process, the second of them, after a step."""

    def on_step(self, step):
        if step.number == 4 and os.environ["RANK"] == "1":
            os.kill(os.getpid(), signal.SIGTERM)


def learn(name, how, folder):
    make, kind = CASES[name]
    task, corpus, settings = make(0.2 if how in {"dropout", "stopped", "resumed"} else 0.0)
    if how == "diverges":
        settings |= {"lr": 1e200}
    try:
        if how == "resumed":
            run = resume(folder, corpus, task_class=kind)
        else:
            callback = Stopping() if how == "stopped" else None
            run = train(task, corpus, TrainingSettings(**settings), folder, data=DATA, callback=callback)
    except UnrolledError as error:
        return {"code": error.exit_code, "text": str(error)}
    return {"weights": [value for each in run.model.state_dict().values() for value in each.flatten().tolist()]}


def main(jobs):
    torch.set_num_threads(1)
    if len(jobs) > 1 and "RANK" in os.environ:
        distributed.init_process_group("gloo")
    for job in jobs:
        name, how, folder = job.split(":", 2)
        said = learn(name, how, Path(folder))
        Path(f"{folder}.{how}.{os.environ.get('RANK')}.json").write_text(json.dumps(said))
    if distributed.is_initialized():
        distributed.destroy_process_group()


def fork_two(jobs):
    """Do the jobs in two children, which have what ``torchrun`` tells its processes; whether both end well."""
    import_module("torch._dynamo")  # by torch, where two processes train: once, not in both
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    children = []
    for rank in range(2):
        children.append(os.fork())
        if not children[-1]:
            code = 1
            os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2")
            os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
            try:
                main(jobs)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
    ended, status = os.wait()
    if status:  # the other one waits for it
        os.kill(*(child for child in children if child != ended), signal.SIGKILL)
    return status == os.wait()[1] == 0


if __name__ == "__main__":
    if sys.argv[1] == "--fork":
        sys.exit(not fork_two(sys.argv[2:]))
    main(sys.argv[1:])
