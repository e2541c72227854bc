"""What a training step of every cell costs, against torch.nn.LSTM with as many parameters, in the same run.

    python benchmarks/cells.py            print
    python benchmarks/cells.py --write    print, and put the output into benchmarks/README.md
    python benchmarks/cells.py --quick    few repeats, small networks

A step is forward, backward and optimiser. Every ratio is the median of paired repeats: all cells run in turn, so a
machine whose speed drifts drifts under all of them. Beside each cell stands the papers' style, a Python loop of small
products with autograd through it, and what a step adds to the peak memory of a process of its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import re
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from unrolled.cells import CELLS, recurrent
from unrolled.models.budget import count_parameters, fit_parameters
from unrolled.recurrence.cell import Cell

README = Path(__file__).with_name("README.md")
# weights set by hand, or as many of them as the input is long: there is no size to fit
UNSIZED = {"dyck", "memorising"}
TORCH: dict[str, type[nn.RNNBase]] = {"nn.LSTM": nn.LSTM, "nn.GRU": nn.GRU}


@dataclass(frozen=True)
class Setting:
    """How much there is to do in a step; inputs are as long as the LSTM's state."""

    batch: int
    time: int
    parameters: int

    @property
    def input_size(self) -> int:
        return round((self.parameters / 8) ** 0.5 / 16) * 16

    @property
    def title(self) -> str:
        return f"batch {self.batch}, {self.time} steps, {self.parameters / 1e6:.1f}M parameters"


SETTINGS = (Setting(20, 35, 300_000), Setting(20, 35, 3_400_000), Setting(128, 100, 4_500_000))
QUICK = (Setting(20, 35, 300_000),)


def build(name: str, setting: Setting) -> nn.Module:
    """Give the network whose number of parameters is nearest to the setting's, units in sixteens where that is near."""
    torch.manual_seed(0)
    e = setting.input_size
    if name in TORCH:
        cell = name.removeprefix("nn.").lower()
        return TORCH[name](e, sixteens(cell, setting))
    return recurrent(name, e, sixteens(name, setting))


def sixteens(cell: str, setting: Setting) -> int:
    exact = fit_parameters(cell, setting.parameters, setting.input_size).nearest.hidden_size
    return max(16, round(exact / 16) * 16)


def stepper(network: nn.Module, setting: Setting) -> Callable[[], None]:
    """One training step: a loss that reaches every output, and plain SGD."""
    x = torch.randn(setting.time, setting.batch, setting.input_size)
    optimiser = torch.optim.SGD(network.parameters(), lr=1e-4)

    def step() -> None:
        optimiser.zero_grad()
        outputs: Tensor = network(x)[0]
        outputs.square().mean().backward()
        optimiser.step()

    return step


def naive(network: nn.Module) -> nn.Module:
    """Make every cell of a network run as the papers' programs do: step by step, all products in the loop."""
    for cell in network.modules():
        if isinstance(cell, Cell):
            cell.unroll = Cell.unroll.__get__(cell)  # type: ignore[method-assign]
    return network


def clock(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def speeds(setting: Setting, names: list[str], repeats: int) -> dict[str, list[float]]:
    """Time every network and its naive twin in turn."""
    calls = {name: stepper(build(name, setting), setting) for name in [*TORCH, *names]}
    calls |= {f"{name} naive": stepper(naive(build(name, setting)), setting) for name in names}
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            times[name].append(clock(call))
    return times


def _memory(field: str) -> int:
    """Read this process's memory now (VmRSS) or at its peak (VmHWM), in kilobytes; Linux tells."""
    return int(re.search(rf"{field}:\s*(\d+)", Path("/proc/self/status").read_text())[1])


def _peak(name: str, slow: bool, setting: Setting, out: multiprocessing.Queue[float]) -> None:
    torch.set_num_threads(1)
    network = build(name, setting)
    step = stepper(naive(network) if slow else network, setting)
    stepper(recurrent("elman", 16, 4), Setting(2, 2, 2048))()  # what torch loads on its first step is not the cell's
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = _memory("VmRSS")
    step()
    out.put((_memory("VmHWM") - before) / 1024)


def peak(name: str, slow: bool, setting: Setting) -> float:
    """Do one step in a process of its own, so that its peak memory can be told, in megabytes."""
    spawn = multiprocessing.get_context("spawn")
    queue: multiprocessing.Queue[float] = spawn.Queue()
    process = spawn.Process(target=_peak, args=(name, slow, setting, queue))
    process.start()
    found = queue.get()
    process.join()
    return found


def table(setting: Setting, names: list[str], threads: list[int], repeats: int, memory: bool) -> list[str]:
    runs = {}
    for count in threads:
        torch.set_num_threads(count)
        runs[count] = speeds(setting, names, repeats)
    head = ["cell", "units", "parameters"]
    for count in threads:
        head += [f"/ nn.LSTM, {count} thread(s)", "naive / nn.LSTM"]
    head += ["peak memory", "naive"] if memory else []
    lines = [f"### {setting.title}, inputs of {setting.input_size}", "", f"| {' | '.join(head)} |"]
    lines.append(f"|{'---|' * len(head)}")
    for name in [*TORCH, *names]:
        kind = name.removeprefix("nn.").lower()
        units = sixteens(kind, setting)
        row = [name, str(units), f"{count_parameters(kind, setting.input_size, units).parameters:,}"]
        for times in runs.values():
            row.append(relative(times, name, "nn.LSTM"))
            row.append("" if name in TORCH else relative(times, f"{name} naive", "nn.LSTM"))
        if memory:
            row.append(f"{peak(name, False, setting):.0f} MB")
            row.append("" if name in TORCH else f"{peak(name, True, setting):.0f} MB")
        lines.append(f"| {' | '.join(row)} |")
    if "gru" in names:
        against = ", ".join(f"{relative(runs[count], 'gru', 'nn.GRU')} ({count} thread(s))" for count in threads)
        lines += ["", f"gru / nn.GRU: {against}."]
    return lines


def relative(times: dict[str, list[float]], name: str, base: str) -> str:
    """Tokens per second of one over another's: the other's time over its own."""
    return f"{statistics.median(b / a for a, b in zip(times[name], times[base], strict=True)):.2f}"


def machine() -> str:
    model = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        found = re.search(r"model name\s*:\s*(.+)", cpuinfo.read_text())
        model = found[1] if found else model
    return f"{model}, {os.cpu_count()} cores, torch {torch.__version__}, Python {platform.python_version()}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the output into benchmarks/README.md")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--cells", nargs="+", help="these only")
    parser.add_argument("--quick", action="store_true", help="few repeats, the smallest setting, one thread, no memory")
    options = parser.parse_args()
    names = options.cells or [name for name in CELLS.names() if name not in UNSIZED]
    repeats = 3 if options.quick else options.repeats
    threads = [1] if options.quick else options.threads
    lines = [
        f"{machine()}. Tokens per second of a training step relative to nn.LSTM's with as many parameters (units in "
        f"sixteens), float32, medians of {repeats} paired repeats. Memory is what a step adds to its process.",
        "",
    ]
    for setting in QUICK if options.quick else SETTINGS:
        lines += [*table(setting, names, threads, repeats, memory=not options.quick), ""]
    text = "\n".join(lines)
    print(text)
    if options.write:
        old = README.read_text()
        if "<!-- cells -->" not in old:
            old += "\n## Training: `python benchmarks/cells.py`\n\n<!-- cells -->\n<!-- /cells -->\n"
        new = re.sub(
            r"<!-- cells -->.*<!-- /cells -->",
            lambda _: f"<!-- cells -->\n{text}\n<!-- /cells -->",
            old,
            flags=re.DOTALL,
        )
        README.write_text(new)


if __name__ == "__main__":
    main()
