"""What `unrolled.account` and `unrolled.explain` cost, against the model's own forward and backward pass.

    python benchmarks/account.py              print
    python benchmarks/account.py --write      print, and put the output into benchmarks/README.md
    python benchmarks/account.py --tiny       a small size, to see that it runs

Every ratio is the median of paired repeats: the things compared run in turn, so a machine whose speed drifts drifts
under all of them. Every model is measured in a process of its own, because memory that other models have used and freed
decides how fast a call gets its own. With one thread it is the process's own CPU time that is taken; the table of
threads takes wall time, beside a process that keeps one core busy. Captum is timed where it is installed
(pip install -e '.[compare]').
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import statistics
import time as clocks
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

import torch
from torch import Tensor, nn

import unrolled
from decompose import kind_of_time, paired, ratio
from readme import command_line, put
from unrolled.lab.training.environment import describe_machine

KINDS: dict[str, type[nn.Module]] = {"GRU": nn.GRU, "LSTM": nn.LSTM}


class Classifier(nn.Module):
    """Embedding, recurrent network, mean or last state, linear head."""

    def __init__(self, kind: str, width: int, layers: int, both: bool, classes: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(1000, width)
        self.rnn = KINDS[kind](width, width, layers, bidirectional=both, batch_first=True)
        self.head = nn.Linear(width * (2 if both else 1), classes)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.rnn(self.embed(tokens))[0][:, -1])


class Loop(nn.Module):
    """A GRU written out, without a fused network: every operation is met by a rule."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.embed, self.inputs, self.states = (
            nn.Embedding(1000, width),
            nn.Linear(width, 3 * width),
            nn.Linear(width, 3 * width),
        )
        self.head = nn.Linear(width, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        given = self.inputs(self.embed(tokens))
        h = torch.zeros_like(given[:, 0, : self.head.in_features])
        for t in range(tokens.shape[1]):
            (r, z, n), (u, v, w) = given[:, t].chunk(3, -1), self.states(h).chunk(3, -1)
            z = torch.sigmoid(z + v)
            h = (1 - z) * torch.tanh(n + torch.sigmoid(r + u) * w) + z * h
        return self.head(h)


def own_pass(model: nn.Module, tokens: Tensor) -> Callable[[], object]:
    """The model's own forward and backward pass, gradients of its weights."""

    def run() -> None:
        model.zero_grad()
        model(tokens)[:, 1].sum().backward()

    return run


def integrated_gradients(model: nn.Module, tokens: Tensor) -> Callable[[], object] | None:
    """Captum's integrated gradients over the embeddings, 32 steps."""
    if importlib.util.find_spec("captum") is None:
        return None
    from captum.attr import LayerIntegratedGradients

    gradients = LayerIntegratedGradients(model, model.embed)
    return lambda: gradients.attribute(
        tokens, torch.zeros_like(tokens), target=1, n_steps=32, internal_batch_size=len(tokens)
    )


def fewer(repeats: int) -> int:
    """The repeats of what takes long."""
    return max(2, repeats // 3)


def measure(model: nn.Module, tokens: Tensor, repeats: int, explains: bool) -> list[str]:
    """Time the calls on a batch and on one sentence, as ratios to the model's own pass on the same input."""
    model.eval()
    calls = {"own": own_pass(model, tokens), "account": lambda: unrolled.account(model, tokens, target=1)}
    if explains:
        calls["explain"] = lambda: unrolled.explain_batch(model, tokens, target=1, every_class=False)
        calls["one, own"] = own_pass(model, tokens[:1])
        calls["one, explain"] = lambda: unrolled.explain(model, tokens[:1], target=1, every_class=False)
        calls["one, account"] = lambda: unrolled.account(model, tokens[:1], target=1)
    times = paired(calls, repeats)
    cells = [f"{ratio(times, 'account', 'own'):.2f}"]
    cells.append(f"{ratio(times, 'explain', 'own'):.2f}" if explains else "-")
    cells.append(f"{ratio(times, 'one, explain', 'one, own'):.2f}" if explains else "-")
    cells.append(f"{ratio(times, 'one, account', 'one, own'):.2f}" if explains else "-")
    captum = integrated_gradients(model, tokens)
    if captum is None:
        return [*cells, "captum is not installed"]
    times = paired({"captum": captum, "account": calls["account"]}, fewer(repeats))
    return [*cells, f"{ratio(times, 'captum', 'account'):.1f}"]


def in_its_own_process(threads: int, function: Callable[..., list[str]], *given: object) -> list[str]:
    """Call a function in a fresh process with this number of threads."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, torch.set_num_threads, (threads,)) as pool:
        return pool.submit(function, *given).result()


def measure_classifier(
    kind: str, layers: int, both: bool, classes: int, batch: int, time: int, width: int, repeats: int
) -> list[str]:
    torch.manual_seed(0)
    model = Classifier(kind, width, layers, both, classes)
    return measure(model, torch.randint(1000, (batch, time)), repeats if layers == 1 else fewer(repeats), True)


def measure_loop(batch: int, time: int, width: int, repeats: int) -> list[str]:
    torch.manual_seed(0)
    return measure(Loop(width), torch.randint(1000, (batch, time)), repeats, False)


def table(batch: int, time: int, width: int, repeats: int) -> list[str]:
    lines = [
        f"Batch {batch}, {time} tokens, {width} units, float32, `secant`, {torch.get_num_threads()} thread(s). Medians "
        f"of {repeats} paired repeats of {kind_of_time()}, {fewer(repeats)} for two layers and for integrated "
        "gradients. But for the last column, numbers are times one forward and backward pass of torch's own model on "
        "the same input, gradients of its weights.",
        "",
        "| model | account | explain, all scores | explain, one sentence | account, one sentence "
        "| integrated gradients (32) / account |",
        "|---|---|---|---|---|---|",
    ]
    sizes, threads = (batch, time, width, repeats), torch.get_num_threads()
    for kind in KINDS:
        for layers, both, classes in ((1, False, 2), (2, True, 2), (1, False, 10_000)):
            name = (
                f"{kind}, {layers} layer{'s' if layers > 1 else ''}{', both ways' if both else ''}, {classes:,} outputs"
            )
            cells = in_its_own_process(threads, measure_classifier, kind, layers, both, classes, *sizes)
            lines.append(f"| {name} | {' | '.join(cells)} |")
    lines.append(f"| a GRU written out | {' | '.join(in_its_own_process(threads, measure_loop, *sizes))} |")
    return lines


def _spin() -> None:
    while True:
        pass


@contextmanager
def busy_neighbour() -> Iterator[None]:
    """Keep one core busy by another process."""
    process = multiprocessing.get_context("spawn").Process(target=_spin, daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def threads_table(batch: int, time: int, width: int, repeats: int) -> list[str]:
    """Wall time with two threads relative to one, beside a process that keeps one core busy."""
    lines = [
        "Wall time with 2 threads / with 1 thread, beside a process that keeps one core busy; medians of "
        f"{repeats} paired repeats. Below 1, two threads are faster.",
        "",
        "| model | own forward and backward pass | account | explain, all scores | explain, one sentence |",
        "|---|---|---|---|---|",
    ]
    torch.manual_seed(0)
    tokens, before = torch.randint(1000, (batch, time)), torch.get_num_threads()
    for kind in KINDS:
        model = Classifier(kind, width, 1, False, 2).eval()
        calls: dict[str, Callable[[], object]] = {
            "own": own_pass(model, tokens),
            "account": lambda model=model: unrolled.account(model, tokens, target=1),
            "explain": lambda model=model: unrolled.explain_batch(model, tokens, target=1),
            "one": lambda model=model: unrolled.explain(model, tokens[:1], target=1),
        }
        times: dict[tuple[str, int], list[float]] = {}
        with busy_neighbour():
            for _ in range(repeats + 1):
                for count in (1, 2):
                    torch.set_num_threads(count)
                    for name, call in calls.items():
                        start = clocks.perf_counter()
                        call()
                        times.setdefault((name, count), []).append(clocks.perf_counter() - start)
        torch.set_num_threads(before)
        ratios = (
            statistics.median(b / a for a, b in list(zip(times[name, 1], times[name, 2], strict=True))[1:])
            for name in calls
        )
        lines.append(f"| {kind} | {' | '.join(f'{each:.2f}' for each in ratios)} |")
    return lines


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tiny", action="store_true", help="a small size, to see that it runs")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    sizes = (4, 5, 8, 2) if options.tiny else (64, 20, 300, options.repeats)
    head = f"{describe_machine()}, torch {torch.__version__}."
    text = "\n".join([head, "", *table(*sizes), "", *threads_table(*sizes)])
    print(text)
    if options.write:
        put("account", "Accounts of whole models: `python benchmarks/account.py`", text)


if __name__ == "__main__":
    main()
