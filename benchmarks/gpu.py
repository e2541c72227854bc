"""What opening a network and a training step cost on a GPU, against torch.nn's own networks on it in the same run.

    python benchmarks/gpu.py                       print
    python benchmarks/gpu.py --write               print, and put the output into benchmarks/README.md
    python benchmarks/gpu.py --minutes 2           begin no further row of the cells after so long
    python benchmarks/gpu.py --device cpu --quick  try the script where there is no GPU

The tables of decomposing are those of decompose.py. A training step is that of cells.py: forward, backward and
optimiser; the cell and torch.nn.LSTM with as many parameters take their steps in turn.
"""

from __future__ import annotations

import time

import torch

from cells import SETTINGS, UNSIZED, Setting, build, sixteens, stepper
from decompose import BATCH, HIDDEN, TIME, every_ngram, final_account, kind_of_time, paired, ratio
from readme import command_line, put
from unrolled.cells import CELLS
from unrolled.lab.training.environment import describe_machine

SMALL = Setting(4, 5, 20_000, 1)


def training_steps(setting: Setting, repeats: int, minutes: float) -> list[str]:
    """Compare a training step of every cell with that of torch's LSTM, until the time is up."""
    begin, left = time.monotonic(), []
    lines = [
        "## A training step",
        "",
        f"{setting.title}. Time relative to a step of torch.nn.LSTM with as many parameters.",
        "",
        "| cell | units | step / LSTM's |",
        "|---|---|---|",
    ]
    for name in CELLS.names():
        if name in UNSIZED:
            continue
        if time.monotonic() - begin > 60 * minutes:
            left.append(name)
            continue
        calls = {each: stepper(build(each, setting), setting) for each in (name, "nn.LSTM")}
        times = paired(calls, repeats)
        lines.append(f"| {name} | {sixteens(name, setting)} | {ratio(times, name, 'nn.LSTM'):.2f} |")
    if left:
        lines += ["", f"Not timed, because the {minutes:g} minutes were up: {', '.join(left)}."]
    return lines


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--minutes", type=float, default=2.0, help="for the cells")
    parser.add_argument("--quick", action="store_true", help="few repeats, the smallest setting")
    options = parser.parse_args()
    torch.set_default_device(options.device)
    torch.set_num_threads(1)
    repeats, setting = (1, SMALL) if options.quick else (15, SETTINGS[2])
    machine = torch.cuda.get_device_name() if options.device == "cuda" else describe_machine()
    lines = [
        f"{machine}, torch {torch.__version__}. Hidden {HIDDEN}, batch {BATCH}, {TIME} tokens, float32, medians of "
        f"{repeats} paired repeats of {kind_of_time()}.",
        "",
    ]
    for part in (final_account(repeats), every_ngram(repeats), training_steps(setting, repeats, options.minutes)):
        lines += [*part, ""]
    text = "\n".join(lines)
    print(text)
    if options.write:
        put("gpu", "On a GPU: `python benchmarks/gpu.py`", text)


if __name__ == "__main__":
    main()
