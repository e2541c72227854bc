"""What it costs to read one token after another: time against the length of a text, beside networks that do not.

    python benchmarks/sequential.py            print
    python benchmarks/sequential.py --write    print, and put the output into benchmarks/README.md
    python benchmarks/sequential.py --tiny     a small size, to see that it runs

A pass is forward and backward, gradients of the weights and of the inputs. All networks run at all lengths in turn, so
a machine whose speed drifts drifts under all of them; ratios are medians over the repeats. Before each pass that is
timed one is not: a short pass right after a long one of another network took several times as long. The calls of torch
in a forward pass are counted too. Those of a loop grow with the length, and a step waits for the one before it, so more
cores or a GPU can shorten a step only. torch's own GRU is a loop over the steps too, inside torch.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch
from torch import Tensor, nn

from decompose import clock, kind_of_time, ratio
from operations import Count
from readme import command_line, put
from unrolled.composition.transformer import TransformerEncoder
from unrolled.lab.training.environment import describe_machine

LENGTHS = (32, 64, 128, 256, 512, 1024, 2048)
BATCH, WIDTH = 4, 128


class GRULoop(nn.Module):
    """torch's cell, called once a step."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.cell = nn.GRUCell(width, width)

    def forward(self, x: Tensor) -> Tensor:
        h, states = x.new_zeros(x.shape[1:]), []
        for token in x:
            h = self.cell(token, h)
            states.append(h)
        return torch.stack(states)


class TorchGRU(nn.GRU):
    """torch.nn.GRU, states only."""

    def __init__(self, width: int) -> None:
        super().__init__(width, width)

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]  # the others return states only
        return super().forward(x)[0]


class LinearLoop(nn.Module):
    """h_t = (1 - z_t) h_{t-1} + z_t n_t, where z and n read the token only: the minimal GRU of Feng et al. (2024)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.read = nn.Linear(width, 2 * width)

    def maps(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Compute what each token multiplies the state by, and what it adds, for all tokens at once."""
        z, n = self.read(x).chunk(2, dim=-1)
        z = z.sigmoid()
        return 1 - z, z * n

    def forward(self, x: Tensor) -> Tensor:
        h, states = x.new_zeros(x.shape[1:]), []
        for kept, added in zip(*self.maps(x), strict=True):
            h = kept * h + added
            states.append(h)
        return torch.stack(states)


class LinearScan(LinearLoop):
    """The same states by doubling: after round k every position has joined the maps of 2^k tokens (Hillis, Steele)."""

    def forward(self, x: Tensor) -> Tensor:
        kept, states = self.maps(x)
        reach = 1
        while reach < len(x):
            joined = torch.addcmul(states[reach:], kept[reach:], states[:-reach])
            states = torch.cat((states[:reach], joined))
            kept = torch.cat((kept[:reach], kept[reach:] * kept[:-reach]))
            reach *= 2
        return states


class Transformer(nn.Module):
    """A causal layer of our Transformer, which has a projection and positions before it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.encoder = TransformerEncoder(width, width, dropout=0.0, causal=True, batch_first=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.encoder(x)[0]


class Convolution(nn.Module):
    """Windows of three tokens."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.filters = nn.Conv1d(width, width, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.filters(x.permute(1, 2, 0)).permute(2, 0, 1).tanh()


NETWORKS: dict[str, Callable[[int], nn.Module]] = {
    "GRU, a loop over the steps": GRULoop,
    "GRU, torch's": TorchGRU,
    "linear recurrence, a loop over the steps": LinearLoop,
    "linear recurrence, a scan": LinearScan,
    "Transformer layer": Transformer,
    "convolution of three tokens": Convolution,
}
STANDARD = "GRU, torch's"


def one_pass(network: nn.Module, x: Tensor) -> Callable[[], object]:
    """Forward and backward, gradients of weights and inputs."""
    weight, wanted = torch.randn_like(x), [x.requires_grad_(), *network.parameters()]
    return lambda: torch.autograd.grad(network(x), wanted, weight)


def calls_in_turn(network: nn.Module, x: Tensor) -> int:
    """Count the calls of torch in a forward pass that compute something."""
    with torch.no_grad(), Count() as count:
        network(x)
    return count.calls


def measure(lengths: tuple[int, ...], batch: int, width: int, repeats: int) -> tuple[dict[str, list[float]], list[str]]:
    """Time every network at every length, in turn; give the times by name and length, and the rows of calls."""
    torch.manual_seed(0)
    inputs = [torch.randn(time, batch, width) for time in lengths]
    networks = {name: made(width) for name, made in NETWORKS.items()}
    counted = [
        f"| {name} | {' | '.join(f'{calls_in_turn(network, x):,}' for x in inputs)} |"
        for name, network in networks.items()
    ]
    times: dict[str, list[float]] = {}
    for _ in range(repeats):
        for name, network in networks.items():
            for time, x in zip(lengths, inputs, strict=True):
                call = one_pass(network, x)
                call()
                times.setdefault(f"{name} {time}", []).append(clock(call))
    return times, counted


def against(times: dict[str, list[float]], lengths: tuple[int, ...], base: Callable[[str, int], str]) -> list[str]:
    """Make a row for each network: times as ratios to those of the base."""

    def cell(name: str, time: int) -> str:
        return f"{ratio(times, f'{name} {time}', base(name, time)):.1f}"

    return [f"| {name} | {' | '.join(cell(name, time) for time in lengths)} |" for name in NETWORKS]


def table(lengths: tuple[int, ...], batch: int, width: int, repeats: int) -> list[str]:
    times, counted = measure(lengths, batch, width, repeats)
    head = [f"| network | {' | '.join(f'{time:,} tokens' for time in lengths)} |", f"|---|{'---|' * len(lengths)}"]
    proportional = " | ".join(f"{time / lengths[0]:.1f}" for time in lengths)
    slowest = statistics.median(times[f"{STANDARD} {lengths[-1]}"])
    return [
        f"Batch {batch}, inputs and states of {width}, float32, medians of {repeats} repeats of {kind_of_time()}. "
        f"torch's GRU took {slowest:.2f} s for {lengths[-1]:,} tokens.",
        "",
        f"A pass, relative to the same network's with {lengths[0]} tokens:",
        "",
        *head,
        f"| in proportion to the length | {proportional} |",
        *against(times, lengths, lambda name, _: f"{name} {lengths[0]}"),
        "",
        f"A pass, relative to that of {STANDARD} with as many tokens:",
        "",
        *head,
        *against(times, lengths, lambda _, time: f"{STANDARD} {time}"),
        "",
        "Calls of torch in a forward pass, one after another; a loop makes some for every step:",
        "",
        *head,
        *counted,
    ]


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--tiny", action="store_true", help="a small size, to see that it runs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    sizes = ((4, 8), 2, 8, 2) if options.tiny else (LENGTHS, BATCH, WIDTH, options.repeats)
    text = "\n".join([f"{describe_machine()}, torch {torch.__version__}.", "", *table(*sizes)])
    print(text)
    if options.write:
        put("sequential", "Reading one token after another: `python benchmarks/sequential.py`", text)


if __name__ == "__main__":
    main()
