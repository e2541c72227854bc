"""What the kernel of every cell does for one step of a sequence, forward and back: counted, not timed.

    python benchmarks/operations.py            print
    python benchmarks/operations.py --write    print, and put the output into benchmarks/README.md

Every operation of torch that computes is counted over a whole sequence, in the smallest setting of cells.py, and shared
out over its steps. What is worked out for many steps at once is so hardly a call, but all its numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from cells import SETTINGS, TARGETS, sixteens
from readme import command_line, put
from unrolled.cells import CELLS
from unrolled.cells.base import Cell

SETTING = SETTINGS[0]
PRODUCTS = {"mm", "addmm", "addmm_"}
WHOLE_LAYER = "mkldnn_rnn_layer"
LAID_OUT = {"empty", "empty_like", "new_empty", "_unsafe_view"}  # beside the views: nothing is computed


class Count(TorchDispatchMode):
    """Products, calls, and numbers that operations beside the products go over."""

    def __init__(self) -> None:
        super().__init__()
        self.products = self.calls = self.numbers = self.layers = 0

    def __torch_dispatch__(self, operation: Any, _: Any, given: Any = (), options: Any = None) -> Any:
        found = operation(*given, **(options or {}))
        name = operation._schema.name.removeprefix("aten::")
        returned = found if isinstance(found, tuple | list) else (found,)
        # what new_zeros is called on says no more than its type
        sources = () if name.startswith("new_") else (*given, *(options or {}).values())
        tensors = [each for each in (*sources, *returned) if isinstance(each, Tensor)]
        if operation.is_view or name in LAID_OUT or not tensors or is_self_copy(name, given):
            return found
        self.calls += 1
        self.products += name in PRODUCTS
        self.layers += name.startswith(WHOLE_LAYER)
        if name not in PRODUCTS:
            self.numbers += max(each.numel() for each in tensors)
        return found


def is_self_copy(name: str, given: Any) -> bool:
    """Whether it is the copy of a view onto itself that ``x[…] += y`` ends with, which torch leaves out."""
    same = [(each.data_ptr(), each.shape, each.stride()) for each in given[:2] if isinstance(each, Tensor)]
    return name == "copy_" and len(same) == 2 and same[0] == same[1]


def passes(run: Callable[[Tensor], Tensor], parameters: list[Tensor]) -> tuple[Count, Count]:
    x = torch.randn(SETTING.time, SETTING.batch, SETTING.input_size)
    with Count() as forth:
        outputs = run(x)
    weight = torch.randn_like(outputs)
    with Count() as back:
        torch.autograd.grad(outputs, parameters, weight)
    return forth, back


def line(name: str) -> str:
    units, steps = sixteens(name, SETTING), SETTING.time
    cell = CELLS.get(name)(SETTING.input_size, units)
    # by its kernel: an LSTM of ours otherwise runs as nn.LSTM does
    both = passes(lambda x: Cell.outputs(cell, x)[0], list(cell.parameters()))
    products = " + ".join(f"{way.products / steps:.0f}" for way in both)
    calls = " + ".join(f"{way.calls / steps:.0f}" for way in both)
    tokens = [way.numbers / (steps * SETTING.batch) for way in both]
    numbers = " + ".join(f"{each / units:.0f}" for each in tokens)
    return f"| {name} | {units} | {products} | {calls} | {numbers} | {round(sum(tokens), -2):,.0f} |"


def main() -> None:
    options = command_line(__doc__).parse_args()
    words = ["cell", "units", "products", "calls", "numbers a unit", "numbers a token"]
    lines = [
        f"A step, forward + back: {SETTING.title.rpartition(',')[0]}. Calls of torch follow one another, the products "
        "among them; numbers are what the others go over, each its largest tensor.",
        "",
        f"| {' | '.join(words)} |",
        f"|{'---|' * len(words)}",
    ]
    lines += [line(name) for name in ("lstm", "gru", "elman", *TARGETS)]
    theirs = torch.nn.LSTM(SETTING.input_size, sixteens("lstm", SETTING))
    forth, back = passes(lambda x: theirs(x)[0], list(theirs.parameters()))
    lines += [
        "",
        f"nn.LSTM: {forth.layers} call forward and {back.layers} back of oneDNN's layer, for all steps together.",
    ]
    print(*lines, sep="\n")
    if options.write:
        put("operations", "Counting a step: `python benchmarks/operations.py`", "\n".join(lines))


if __name__ == "__main__":
    main()
