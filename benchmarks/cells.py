"""What a training step of every cell costs, against torch.nn.LSTM with as many parameters, in the same run.

    python benchmarks/cells.py                 print
    python benchmarks/cells.py --write         print, and put the output into benchmarks/README.md
    python benchmarks/cells.py --rows FILE     keep each row as it is done; run again, it goes on from there
    python benchmarks/cells.py --quick         few repeats, the smallest setting
    python benchmarks/cells.py --cells gru     these only

A step is forward, backward and optimiser. Every row is a process of its own, in which the cell, torch.nn.LSTM and the
papers' style (a Python loop of small products, autograd through it) take their steps in turn: ratios are medians of
these pairs, so a machine whose speed drifts drifts under all of them. One thread is timed by its own CPU time, which
other programs on the machine do not lengthen; two threads by the clock. The cell's bare products are timed too: what
is left of a step without them is the loop's, and no kernel made of such products is faster than they are.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import torch
from torch import Tensor, nn

from memory import peak
from readme import command_line, put
from unrolled.cells import CELLS, recurrent
from unrolled.cells.affine import AffineCell
from unrolled.cells.base import Cell
from unrolled.cells.parameter_budget import count_parameters, fit_parameters
from unrolled.lab.training.environment import describe_processor

# weights set by hand, or as many of them as the input is long: there is no size to fit
UNSIZED = {"dyck", "memorising"}
TORCH: dict[str, type[nn.RNNBase]] = {"nn.LSTM": nn.LSTM, "nn.GRU": nn.GRU}
TARGETS = {"mmrnn": 0.8, "mmlstm": 0.8, "mrnn": 0.95, "mlstm": 0.95, "mi_rnn": 0.95, "mi_gru": 0.95, "mi_lstm": 0.95}
TARGETS |= {name: 0.95 for name, cell in CELLS.members.items() if issubclass(cell, AffineCell)}
GRU_TARGET = 1.5


@dataclass(frozen=True)
class Setting:
    """How much there is to do in a step, and how often it is done; inputs are as long as the LSTM's state."""

    batch: int
    time: int
    parameters: int
    rounds: int

    @property
    def input_size(self) -> int:
        return round((self.parameters / 8) ** 0.5 / 16) * 16

    @property
    def title(self) -> str:
        size = f"{self.parameters / 1e6:.1f}M parameters, inputs of {self.input_size}"
        return f"batch {self.batch}, {self.time} steps, {size}, {self.rounds} repeat(s)"


SETTINGS = (Setting(20, 35, 300_000, 9), Setting(20, 35, 3_400_000, 5), Setting(128, 100, 4_500_000, 3))


@dataclass
class Row:
    """What was measured of one cell: times relative to nn.LSTM's, memory in megabytes."""

    machine: str
    setting: str
    cell: str
    units: int
    parameters: int
    ratios: dict[str, float]
    best: float
    naive: float | None
    gru: dict[str, float]
    memory: float
    naive_memory: float | None


def sixteens(name: str, setting: Setting) -> int:
    exact = fit_parameters(kind(name), setting.parameters, setting.input_size).nearest.hidden_size
    return max(16, round(exact / 16) * 16)


def kind(name: str) -> str:
    return name.removeprefix("nn.").lower()


def build(name: str, setting: Setting) -> nn.Module:
    """Give the network whose number of parameters is nearest to the setting's, units in sixteens."""
    torch.manual_seed(0)
    make = TORCH.get(name)
    units = sixteens(name, setting)
    return make(setting.input_size, units) if make else recurrent(name, setting.input_size, units)


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
            cell.outputs = Cell.outputs.__get__(cell)  # type: ignore[method-assign]
    return network


def bare_products(network: nn.Module, setting: Setting) -> Callable[[], None]:
    """Give the matrix products of a training step and nothing else: (rows, a) x (a, b), so many times."""
    every, products = setting.time * setting.batch, []
    for owner in [module for module in network.modules() if list(module.parameters(recurse=False))]:
        for name, weight in owner.named_parameters(recurse=False):
            matrix = owner.recurrent if isinstance(owner, AffineCell) and name == "weight_hh" else weight
            if matrix.dim() != 2:
                continue
            a, b = torch.randn(every, matrix.shape[1]), torch.randn(every, matrix.shape[0])
            products.append((b.T, a, 1))  # the gradient of the weight
            if name.startswith(("weight_ih", "weight_kx")):
                products.append((a, matrix.detach().T, 1))
            else:
                forth, back = (side[: setting.batch].contiguous() for side in (a, b))
                products += [(forth, matrix.detach().T, setting.time), (back, matrix.detach(), setting.time)]
    outs = [left.new_empty(left.shape[0], right.shape[1]) for left, right, _ in products]

    def multiply() -> None:
        for (left, right, times), out in zip(products, outs, strict=True):
            for _ in range(times):
                torch.mm(left, right, out=out)

    return multiply


def in_turn(calls: dict[str, Callable[[], None]], rounds: int, clock: Callable[[], float]) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = clock()
            call()
            times[name].append(clock() - start)
    return times


def over(times: dict[str, list[float]], name: str, base: str) -> float:
    """Tokens per second of one over another's: the other's time over its own."""
    return statistics.median(b / a for a, b in zip(times[name], times[base], strict=True))


def measure(name: str, setting: Setting, threads: list[int], out: Connection) -> None:
    torch.set_num_threads(1)
    stepper(recurrent("elman", 16, 4), Setting(2, 2, 2048, 1))()  # what torch loads on its first step is no cell's
    ours = name not in TORCH
    network = build(name, setting)
    calls = {name: stepper(network, setting)}
    if ours:
        calls["naive"] = stepper(naive(build(name, setting)), setting)
    memory = {each: peak(call) for each, call in calls.items()}  # their first steps, which warm them up as well
    calls["nn.LSTM"] = calls.get("nn.LSTM") or stepper(build("nn.LSTM", setting), setting)
    if name == "gru":
        calls["nn.GRU"] = stepper(build("nn.GRU", setting), setting)
    if setting.rounds > 1:
        calls["nn.LSTM"]()
    ratios, gru, best, slow = {}, {}, 0.0, None
    for count in threads:
        torch.set_num_threads(count)
        extra = {"products": bare_products(network, setting)} if count == threads[0] else {}
        timed = {**calls, **extra}
        if count != threads[0]:
            timed.pop("naive", None)
        times = in_turn(timed, setting.rounds, time.process_time if count == 1 else time.perf_counter)
        ratios[str(count)] = over(times, name, "nn.LSTM")
        if name == "gru":
            gru[str(count)] = over(times, name, "nn.GRU")
        if extra:
            best = over(times, "products", "nn.LSTM")
            slow = over(times, "naive", "nn.LSTM") if ours else None
    units = sixteens(name, setting)
    size = count_parameters(kind(name), setting.input_size, units).parameters
    row = Row(machine(), setting.title, name, units, size, ratios, best, slow, gru, memory[name], memory.get("naive"))
    out.send(asdict(row))


def in_a_process(name: str, setting: Setting, threads: list[int]) -> Row:
    fork = multiprocessing.get_context("forkserver")  # one that has torch loaded, and has run nothing
    fork.set_forkserver_preload(["torch", "unrolled.cells", "unrolled.cells.parameter_budget"])
    here, there = fork.Pipe(duplex=False)
    process = fork.Process(target=measure, args=(name, setting, threads, there))
    process.start()
    there.close()
    try:
        found = here.recv()
    except EOFError:
        raise SystemExit(f"{name}, {setting.title}: its process ended without a result") from None
    process.join()
    return Row(**found)


def line(row: Row) -> str:
    words = [row.cell, str(row.units), f"{row.parameters:,}", *(f"{ratio:.2f}" for ratio in row.ratios.values())]
    words += [f"{row.best:.2f}", "" if row.naive is None else f"{row.naive:.2f}", f"{row.memory:.0f} MB"]
    return f"| {' | '.join([*words, '' if row.naive_memory is None else f'{row.naive_memory:.0f} MB'])} |"


def head(threads: list[int]) -> list[str]:
    words = ["cell", "units", "parameters", *(f"{count} thread(s)" for count in threads)]
    words += ["bare products", "papers' style", "peak memory", "papers' style"]
    return [f"| {' | '.join(words)} |", f"|{'---|' * len(words)}"]


def shortfalls(rows: list[Row], threads: list[int]) -> list[str]:
    """Say of every cell below its target what its products alone would reach, and what the rest of the step is.

    The products are timed with the first number of threads alone: what they say is said of that one.
    """
    lines, first = [], str(threads[0])
    for row in rows:
        target, ratio = TARGETS.get(row.cell), row.ratios[first]
        short = {count: found for count, found in row.ratios.items() if target is not None and found < target}
        if short:
            found, *more = (f"{found:.2f} with {count}" for count, found in short.items())
            said = f"- {row.cell}: {', '.join([f'{found} thread(s)', *more])}, to reach {target}"
            if first in short:
                rest = max(0.0, 1 - ratio / row.best)
                said += f"; bare products {row.best:.2f}: {rest:.0%} of a step is not products"
            lines.append(f"{said}.")
        for count, found in row.gru.items():
            lines.append(f"- gru / nn.GRU: {found:.2f} with {count} thread(s), to reach {GRU_TARGET}, never below 1.")
            if count == first and found < GRU_TARGET:
                bound = found * row.best / ratio
                lines.append(f"  Its bare products alone would be {bound:.2f} times as fast as nn.GRU's whole step.")
    return lines


def machine() -> str:
    return f"{describe_processor()}, torch {torch.__version__}, Python {platform.python_version()}"


def kept_rows(path: Path | None) -> list[Row]:
    """Read the rows of an earlier run on this machine."""
    if path is None or not path.exists():
        return []
    found = [Row(**json.loads(row)) for row in path.read_text(encoding="utf-8").splitlines()]
    return [row for row in found if row.machine == machine()]


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--rows", type=Path, help="keep rows here as they are done, and do not run again what it holds")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--cells", nargs="+", help="these only")
    parser.add_argument("--settings", type=int, nargs="+", default=[0, 1, 2], help="these only, by place")
    parser.add_argument("--quick", action="store_true", help="three repeats, the smallest setting, one thread")
    options = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read by the processes: threads that spin starve each other
    chosen = [SETTINGS[place] for place in options.settings]
    threads = options.threads
    if options.quick:
        chosen, threads = [Setting(20, 35, 300_000, 3)], [1]
    kept = kept_rows(options.rows)
    text: list[str] = []

    def say(*lines: str) -> None:
        text.extend(lines)
        print(*lines, sep="\n", flush=True)

    say(
        f"{machine()}, OMP_WAIT_POLICY={os.environ['OMP_WAIT_POLICY']}.",
        "",
        "Tokens per second of a training step relative to nn.LSTM's with as many parameters (units in sixteens), "
        "float32. Bare products are the cell's matrix products alone, as torch.mm takes them: a step of nothing else "
        "would reach that. Memory is what a step adds to its process.",
        "",
    )
    for setting in chosen:
        say(f"### {setting.title}", "", *head(threads))
        rows: list[Row] = []
        for name in [*TORCH, *(options.cells or [name for name in CELLS.names() if name not in UNSIZED])]:
            done = [
                row
                for row in kept
                if (row.setting, row.cell, list(row.ratios)) == (setting.title, name, [str(count) for count in threads])
            ]
            rows.append(done[-1] if done else in_a_process(name, setting, threads))
            if options.rows and not done:
                with options.rows.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(asdict(rows[-1])) + "\n")
            say(line(rows[-1]))
        say("", *shortfalls(rows, threads), "")
    if options.write:
        put("cells", "Training a cell: `python benchmarks/cells.py`", "\n".join(text).rstrip())


if __name__ == "__main__":
    main()
