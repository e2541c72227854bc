"""What it costs to open a network, against what its own forward and backward pass cost in the same run.

    python benchmarks/decompose.py            print
    python benchmarks/decompose.py --write    print, and put the output into benchmarks/README.md

Every ratio is the median of paired repeats: the two things compared run in turn, so a machine whose speed drifts
drifts under both. Captum is timed where it is installed (pip install -e '.[compare]').
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

import unrolled
from memory import peak
from readme import command_line, put
from unrolled.lab.training.environment import describe_machine
from unrolled.linalg.operators import Workspace

BATCH, TIME, HIDDEN = 64, 20, 300
KINDS = (nn.GRU, nn.LSTM)


def clock(call: Callable[[], object]) -> float:
    """Time a call: with one thread the process's own time, which other processes of the machine delay least."""
    if _on_gpu():
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        return time.perf_counter() - start
    now = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    start = now()
    call()
    return now() - start


def _on_gpu() -> bool:
    return torch.get_default_device().type == "cuda"


def kind_of_time() -> str:
    if _on_gpu():
        return "wall time, until the GPU has finished"
    return "the process's own CPU time" if torch.get_num_threads() == 1 else "wall time"


def paired(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """Time several calls in turn, after one warm-up of each."""
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            times[name].append(clock(call))
    return times


def ratio(times: dict[str, list[float]], name: str, base: str) -> float:
    return statistics.median(a / b for a, b in zip(times[name], times[base], strict=True))


def network(kind: type[nn.RNNBase], dtype: torch.dtype = torch.float32) -> tuple[nn.RNNBase, Tensor, Tensor]:
    """A network with weights twice torch's default: as far from linear as a trained one."""
    torch.manual_seed(0)
    rnn = kind(HIDDEN, HIDDEN, batch_first=True, dtype=dtype)
    with torch.no_grad():
        for weight in rnn.parameters():
            weight.mul_(2)
    return rnn, torch.randn(BATCH, TIME, HIDDEN, dtype=dtype), torch.randn(1, HIDDEN, dtype=dtype)


def products(rnn: nn.RNNBase, x: Tensor) -> Callable[[], object]:
    """Return what takes the matrix products of an account, and does nothing else."""
    inputs, states = x.flatten(0, 1), torch.randn(BATCH * TIME, HIDDEN)
    of_input, of_state = rnn.weight_ih_l0.detach(), rnn.weight_hh_l0.detach()
    one, covector = states[:BATCH], torch.randn(BATCH, len(of_state))

    def run() -> None:
        for _ in range(2):  # the network's own run, and the pre-activations
            torch.mm(inputs, of_input.T)
        torch.mm(states, of_state.T)
        for _ in range(TIME):  # step by step: the own run, and the sweep back
            torch.mm(one, of_state.T)
            torch.mm(covector, of_state)

    return run


def final_account(repeats: int) -> list[str]:
    lines = [
        "## One account: what every start contributes to the final prediction",
        "",
        "Times one forward and backward pass of torch.nn's own network (gradients of inputs and weights; in brackets: "
        "of the inputs alone). Bare products are those of the network's own run, of the pre-activations of its states "
        "and of the sweep back.",
        "",
        "| network | bare products | gates | operating | secant | path | captum's IG, 32 steps / operating "
        "| residual of secant |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind in KINDS:
        rnn, x, w = network(kind)

        def backward() -> None:
            leaf = x.clone().requires_grad_()
            (rnn(leaf)[0][:, -1] @ w.T).sum().backward()

        def saliency() -> None:
            leaf = x.clone().requires_grad_()
            torch.autograd.grad((rnn(leaf)[0][:, -1] @ w.T).sum(), leaf)

        calls: dict[str, Callable[[], object]] = {
            "backward": backward,
            "saliency": saliency,
            "products": products(rnn, x),
        }
        for name in ("gates", "operating", "secant", "path"):
            calls[name] = lambda name=name: unrolled.decompose(rnn, x, expansion=name).final_scores(w)
        captum = importlib.util.find_spec("captum") is not None
        if captum:
            from captum.attr import IntegratedGradients

            gradients = IntegratedGradients(lambda v: rnn(v)[0][:, -1] @ w[0])
            calls["captum"] = lambda: gradients.attribute(x, n_steps=32, internal_batch_size=BATCH)
        times = paired(calls, repeats)
        cells = [
            f"{ratio(times, e, 'backward'):.2f} ({ratio(times, e, 'saliency'):.2f})"
            for e in ("products", "gates", "operating", "secant", "path")
        ]
        cells.append(f"{ratio(times, 'captum', 'operating'):.0f}" if captum else "captum is not installed")
        residual = float(unrolled.decompose(rnn, x).residual().max())
        lines.append(f"| {kind.__name__} | {' | '.join(cells)} | {residual:.1e} |")
    return lines


def dense_chain(rnn: nn.RNNBase, x: Tensor, w: Tensor) -> Tensor:
    """Score every n-gram of one sentence as the papers' notebooks do: dense A_t, products of d x d matrices."""
    layer = unrolled.decompose(rnn, x, expansion="operating").sequences[0][0]
    size = layer.g.shape[-1]
    unit = torch.eye(size)[:, None]
    matrices = [layer.apply(t, unit, torch.empty_like(unit), Workspace())[:, 0].T for t in range(x.shape[1])]
    scores = torch.zeros(x.shape[1], x.shape[1])
    readout = torch.zeros(size)
    readout[layer.hidden] = w[0]
    for t in range(x.shape[1]):
        chain = torch.eye(size)
        for i in range(t, -1, -1):
            scores[t, i] = readout @ chain @ layer.g[i, 0]
            chain = chain @ matrices[i]
    return scores


def every_ngram(repeats: int) -> list[str]:
    pairs = TIME * (TIME - 1) // 2 * BATCH
    lines = [
        "## Every n-gram at every position",
        "",
        f"The limit is 2·d² operations for each pair (start, end), {pairs:,} pairs, at the rate of `torch.mm` on "
        f"({BATCH * TIME}, {HIDDEN}) x ({HIDDEN}, {4 * HIDDEN}) measured in the same run.",
        "",
        "| network | expansion | torch.mm, GFLOP/s | scores, share of limit | vectors, share of limit "
        "| scores, time / operating's | dense chains / scores |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind in KINDS:
        rnn, x, w = network(kind)
        a, b = torch.randn(BATCH * TIME, HIDDEN), torch.randn(HIDDEN, 4 * HIDDEN)
        calls: dict[str, Callable[[], object]] = {"product": lambda: a @ b}
        expansions = ("operating", "secant", "path", "gates")
        for expansion in expansions:  # all in turn, so that they compare with each other too
            found = unrolled.decompose(rnn, x, expansion=expansion)
            calls[f"{expansion}, scores"] = lambda found=found: found.scores(w)
            calls[f"{expansion}, vectors"] = lambda found=found: found.vectors()
        times = paired(calls, repeats)
        rate = 2 * a.shape[0] * HIDDEN * 4 * HIDDEN / statistics.median(times["product"])
        limit = 2 * HIDDEN**2 * pairs / rate
        for expansion in expansions:
            # the dense chains of one sentence, times the batch: they share nothing between sentences
            one, few = x[:1], max(1, repeats // 4)
            dense = "-"
            if expansion == "operating":
                slow = [clock(lambda: dense_chain(rnn, one, w)) for _ in range(few)]
                dense = f"{statistics.median(slow) * BATCH / statistics.median(times[f'{expansion}, scores']):.0f}"
            shares = [limit / statistics.median(times[f"{expansion}, {what}"]) for what in ("scores", "vectors")]
            as_operating = ratio(times, f"{expansion}, scores", "operating, scores")
            lines.append(
                f"| {kind.__name__} | {expansion} | {rate / 1e9:.0f} | {shares[0]:.0%} | {shares[1]:.0%} "
                f"| {as_operating:.2f} | {dense} |"
            )
    return lines


def _grow(job: str, length: int, threads: int, out: multiprocessing.Queue[tuple[float, float]]) -> None:
    """Do one job in a process of its own, so that its peak memory can be told."""
    torch.set_num_threads(threads)
    rnn, _, w = network(nn.GRU)
    x = torch.randn(1, length, HIDDEN)
    unrolled.decompose(rnn, x[:, :5], expansion="operating").scores(w)
    jobs: dict[str, Callable[[], object]] = {
        "triangle": lambda: unrolled.decompose(rnn, x, expansion="operating").scores(w),
        "window of 8": lambda: unrolled.decompose(rnn, x, expansion="operating", max_order=8).scores(w),
        "one account": lambda: unrolled.decompose(rnn, x, expansion="operating").final_scores(w),
    }
    seconds: list[float] = []
    memory = peak(lambda: seconds.extend(clock(jobs[job]) for _ in range(3)))
    out.put((statistics.median(seconds), memory))


def growth(lengths: tuple[int, ...]) -> list[str]:
    lines = [
        "## Growth with the length of the sentence",
        "",
        "GRU, one sentence, `operating`; time relative to the first row of the column, and what it adds to the peak "
        "memory of its process.",
        "",
        "| tokens | every n-gram | memory | window of 8 | memory | one account | memory |",
        "|---|---|---|---|---|---|---|",
    ]
    spawn = multiprocessing.get_context("spawn")
    first: dict[str, float] = {}
    for length in lengths:
        cells = [f"{length:,}"]
        for job in ("triangle", "window of 8", "one account"):
            queue: multiprocessing.Queue[tuple[float, float]] = spawn.Queue()
            process = spawn.Process(target=_grow, args=(job, length, torch.get_num_threads(), queue))
            process.start()
            seconds, memory = queue.get()
            process.join()
            first.setdefault(job, seconds)
            cells += [f"{seconds / first[job]:.1f}x", f"{memory:.0f} MB"]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="few repeats, short sentences")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    repeats = 3 if options.quick else options.repeats
    lengths = (20, 50, 100) if options.quick else (20, 50, 100, 200, 500, 1000, 2000)
    lines = [
        f"{describe_machine()}, torch {torch.__version__}. Hidden {HIDDEN}, batch {BATCH}, {TIME} tokens, float32, "
        f"medians of {repeats} paired repeats of {kind_of_time()}.",
        "",
    ]
    for part in (final_account(repeats), every_ngram(repeats), growth(lengths)):
        lines += [*part, ""]
    text = "\n".join(lines)
    print(text)
    if options.write:
        put("decompose", "Opening a network: `python benchmarks/decompose.py`", text)


if __name__ == "__main__":
    main()
