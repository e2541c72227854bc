"""The campaign: attack runs, files, threads and command lines, count what fell, and write the table of the docs.

    python campaign                        # everything that has not run yet, at most an hour
    python campaign --share 0.05           # every twentieth case, as CI does
    python campaign --part kills --case 17 # one case, whose faults are printed
    python campaign --write                # also write the table into docs/reliability.md

Each case is drawn from the seed and its number, runs in a process of its own, and leaves one line in the folder of
--state: a campaign that was stopped goes on there. The exit code is 1 if anything fell.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from importlib import import_module
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).parent))

import torch

import broken_files
import changed_data
import command_lines
import costs
import hostile_runs
import kills
import limits
import networks
import signals
import writers
from cases import SKIPPED, Part
from unrolled.lab.training.environment import describe_processor
from unrolled.lab.training.versions import find_commit

DOCS = Path(__file__).parents[1] / "docs" / "reliability.md"
MODULES = (kills, writers, changed_data, limits, signals, broken_files, hostile_runs, command_lines, networks)
PARTS: tuple[Part, ...] = tuple(part for module in MODULES for part in module.PARTS)
LOADED = (
    "torch._dynamo",  # by torch, where two processes train
    "seqeval.metrics",
    "unrolled.lab.cli.train",
    "unrolled.lab.cli.evaluate",
    "unrolled.cli.explain",
    "unrolled.report.page",
)
"""What several parts need and load late."""
SECONDS = 180
"""A case that takes longer hangs."""


def main() -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=1.0, help="which share of the cases")
    parser.add_argument("--seed", type=int, default=15)
    parser.add_argument("--part", help="only this part")
    parser.add_argument("--case", type=int, help="only this case")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after this many minutes")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--state", type=Path, default=Path("build/campaign"), help="where results are kept")
    parser.add_argument("--write", action="store_true", help="write the table into docs/reliability.md")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    for name in LOADED:
        import_module(name)
    chosen.state.mkdir(parents=True, exist_ok=True)
    end, fell = time.monotonic() + 60 * chosen.minutes, 0
    parts = [part for part in PARTS if chosen.part in (None, part.name)]
    print(f"campaign: seed {chosen.seed}, {len(parts)} parts, commit {find_commit()}", flush=True)
    for part in parts:
        results = run_part(part, chosen, end)
        bad = [result for result in results.values() if result["faults"] and not is_skipped(result)]
        fell += len(bad)
        print(f"{part.name}: {len(results)} cases, {len(bad)} fell", flush=True)
        for result in bad:
            print(f"  case {result['case']}: {'; '.join(result['faults'])[:600]}", flush=True)
    if chosen.write:
        write_table(chosen)
    return int(fell > 0)


def is_skipped(result) -> bool:
    """Tell whether a case could not run on this machine."""
    return bool(result["faults"]) and result["faults"][0].startswith(SKIPPED)


def run_part(part: Part, chosen, end: float) -> dict[int, dict]:
    """Run the cases of a part that have no result, some at once."""
    path = chosen.state / f"{part.name.replace(' ', '-').replace(',', '')}.{chosen.seed}.jsonl"
    results = {} if chosen.case is not None else read(path)
    step = max(1, round(1 / chosen.share))
    cases = (
        [chosen.case]
        if chosen.case is not None
        else [n for n in range(0, part.count, step) if n not in results or results[n]["faults"]]
    )
    if not cases or time.monotonic() >= end:
        return results
    home = Path(tempfile.mkdtemp(prefix="campaign-"))
    running: dict[int, tuple[int, Path, float]] = {}
    try:
        shared = part.prepare(home / "shared")
        while cases or running:
            while cases and len(running) < chosen.processes and time.monotonic() < end:
                number = cases.pop(0)
                place = home / str(number)
                place.mkdir()
                running[start(part, number, chosen.seed, place, shared)] = number, place, time.monotonic()
            if not running:
                break
            for child in list(running):
                number, place, began = running[child]
                if (used := ended(child, began)) is None:
                    continue
                del running[child]
                result = {
                    "case": number,
                    "faults": faults_in(place),
                    "seconds": round(time.monotonic() - began, 2),
                    "processor": round(used, 2),
                }
                results[number] = result
                with path.open("a") as file:
                    file.write(json.dumps(result) + "\n")
                shutil.rmtree(place, ignore_errors=True)
            time.sleep(0.005)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return results


def start(part: Part, number: int, seed: int, place: Path, shared) -> int:
    """Start one case in a child, which leads a group of its own."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    os.setpgid(0, 0)
    log = os.open(place / "log", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    try:
        (place / "case").mkdir()
        faults = part.run(number, random.Random(f"{part.name} {seed} {number}"), place / "case", shared)
    except BaseException:  # whatever it is, it is a fault
        faults = [traceback.format_exc()[-1500:]]
    (place / "faults").write_text(json.dumps(faults))
    os._exit(0)


def ended(child: int, began: float) -> float | None:
    """Return the processor time of a child that has ended, and of its own; one that hangs is killed with its own."""
    hangs = time.monotonic() - began > SECONDS
    if hangs:
        os.killpg(child, signal.SIGKILL)
    found, _, used = os.wait4(child, 0 if hangs else os.WNOHANG)
    return used.ru_utime + used.ru_stime if found == child else None


def faults_in(place: Path) -> list[str]:
    """Read what a case has found."""
    if (place / "faults").exists():
        return json.loads((place / "faults").read_text())
    return [f"the case hung or died: {(place / 'log').read_text(errors='replace')[-500:]}"]


def read(path: Path) -> dict[int, dict]:
    """Read the results of an earlier start."""
    if not path.exists():
        return {}
    lines = [line for line in path.read_text().splitlines() if line.endswith("}")]
    return {result["case"]: result for result in map(json.loads, lines)}


def write_table(chosen) -> None:
    """Write what was counted into the docs."""
    rows, seconds, processor = [], 0.0, 0.0
    for part in PARTS:
        path = chosen.state / f"{part.name.replace(' ', '-').replace(',', '')}.{chosen.seed}.jsonl"
        results = read(path).values()
        skipped = sum(map(is_skipped, results))
        fell = sum(bool(result["faults"]) for result in results) - skipped
        seconds += sum(result["seconds"] for result in results)
        processor += sum(result.get("processor", result["seconds"]) for result in results)  # at most, of earlier ones
        note = f" ({skipped} skipped)" if skipped else ""
        rows.append(f"| {part.name} | {part.promise} | {len(results) - skipped:,} of {part.count:,}{note} | {fell} |")
    text = "\n".join([
        f"Seed {chosen.seed}, {describe_processor()}, torch {torch.__version__}. The cases took {seconds / 60:.0f} "
        f"minutes one after the other, and at most {processor / 60:.0f} minutes of processor time. "
        f"Lock and checksums of 20,000 texts took {costs.cost(5)}.",
        "",
        "| attack | what must hold | cases run | fell |",
        "|---|---|---:|---:|",
        *rows,
    ])  # fmt: skip
    old = DOCS.read_text(encoding="utf-8")
    begin, end = "<!-- campaign -->", "<!-- /campaign -->"
    DOCS.write_text(
        re.sub(f"{begin}.*{end}", lambda _: f"{begin}\n{text}\n{end}", old, flags=re.DOTALL), encoding="utf-8"
    )


if __name__ == "__main__":
    sys.exit(main())
