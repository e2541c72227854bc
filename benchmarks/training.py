"""What training costs beside the model itself.

    python benchmarks/training.py [--write] [--quick]

Three tables: the share of a training's time that the model's own steps take, for a task of every kind; our language
model against PyTorch's word_language_model example, written plainly, with the same LSTM; and the memory that it takes
to count and index running text, for texts of several sizes. Real data where UNROLLED_DATA names it, made-up data of
the same kind elsewhere; the tables say which.
"""

from __future__ import annotations

import json
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from memory import peak
from readme import command_line, put
from unrolled.errors import UnrolledError
from unrolled.lab.data.corpus import Corpus, Stream, Words
from unrolled.lab.data.datasets import DATASETS
from unrolled.lab.data.load import load_dataset
from unrolled.lab.data.stream_encoding import build_vocabulary, encode_stream
from unrolled.lab.papers.framework.corpora import SMALL
from unrolled.lab.papers.framework.synthetic_corpora import SYNTHETIC
from unrolled.lab.tasks import TASKS
from unrolled.lab.training.callbacks import Callback, Step
from unrolled.lab.training.data_settings import DataSettings
from unrolled.lab.training.engine import train
from unrolled.lab.training.environment import describe_machine
from unrolled.lab.training.settings import TrainingSettings
from unrolled.lab.training.task import Metric

REAL = {
    "classify": "sst2", "regress": "sst-regression", "relate": "semeval2010", "tag": "conll2003", "lm": "ptb",
    "chars": "ptb-chars", "rank": "wikiqa", "translate": "multi30k", "brackets": "dyck",
}  # fmt: skip
WIDTH, COLUMNS, WINDOW = 256, 20, 35


class Clock(Callback):
    """Notes when the first step begins, and when each ends."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_start(self, metrics: Sequence[Metric], settings: TrainingSettings, step: int) -> None:
        self.times.append(time.perf_counter())

    def on_step(self, step: Step) -> None:
        self.times.append(time.perf_counter())


def corpus_of(task: str) -> tuple[Corpus[Any], str]:
    kind = TASKS.get(task).kind
    try:
        return load_dataset(REAL[task], kind), REAL[task]
    except UnrolledError:
        return SYNTHETIC[kind](SMALL, 0), "made up"


def share(task: str, steps: int) -> str:
    """Train for so many steps; the engine counts the model's seconds, the clock all of them."""
    corpus, title = corpus_of(task)
    kind = TASKS.get(task)
    settings = TrainingSettings(
        **{**kind.training_defaults, "epochs": 1000, "steps": steps, "log_every": 10, "device": "cpu"}
    )
    clock = Clock()
    learned = kind.from_corpus(corpus, kind.Architecture())
    with tempfile.TemporaryDirectory() as room:
        # evaluation is not what is measured here: a handful of examples will do
        few = {"dev": corpus.dev[:20], "test": corpus.test[:20]} if isinstance(corpus.dev, tuple) else {}
        small = type(corpus)(**{**vars(corpus), **few})
        train(learned, small, settings, Path(room) / "run", data=DataSettings(data=(corpus.name,)), callback=clock)
        lines = (Path(room) / "run" / "times.jsonl").read_text().splitlines()
    in_steps = sum(json.loads(line)["training"] for line in lines)
    evaluation = sum(json.loads(line)["evaluation"] for line in lines[:-1])  # the last comes after the last step
    whole = clock.times[-1] - clock.times[0] - evaluation
    return f"| {task} | {title} | {len(clock.times) - 1} | {in_steps / whole:.1%} |"


class Plain(nn.Module):
    """PyTorch's example: encoder, LSTM, decoder, dropout; tied."""

    def __init__(self, words: int, width: int, dropout: float) -> None:
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(words, width)
        self.rnn = nn.LSTM(width, width)
        self.decoder = nn.Linear(width, words)
        self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        output, state = self.rnn(self.drop(self.encoder(tokens)), state)
        return F.log_softmax(self.decoder(self.drop(output)).flatten(0, 1), dim=1), state


def plain(ids: Tensor, words: int, steps: int) -> float:
    """Tokens a second of the example's own loop: SGD, gradients clipped to 0.25."""
    model = Plain(words, WIDTH, 0.2).train()
    data = ids[: len(ids) // COLUMNS * COLUMNS].view(COLUMNS, -1).t().contiguous()
    state = (torch.zeros(1, COLUMNS, WIDTH), torch.zeros(1, COLUMNS, WIDTH))
    began, seen = 0.0, 0
    for step, i in enumerate(range(0, len(data) - 1 - WINDOW, WINDOW)):
        if step == 3:
            began, seen = time.perf_counter(), 0
        if step == steps + 3:
            break
        inputs, targets = data[i : i + WINDOW], data[i + 1 : i + 1 + WINDOW].reshape(-1)
        model.zero_grad()
        state = tuple(each.detach() for each in state)
        output, state = model(inputs, state)
        F.nll_loss(output, targets).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for parameter in model.parameters():
            parameter.data.add_(parameter.grad, alpha=-20.0)
        seen += len(targets)
    return seen / (time.perf_counter() - began)


def ours(corpus: Corpus[Any], steps: int) -> float:
    """Tokens a second of the engine with the same network, optimiser and clipping."""
    kind = TASKS.get("lm")
    architecture = kind.Architecture(
        encoder="lstm", hidden=WIDTH, embedding=WIDTH, dropout=0.2, tied=True, bptt=WINDOW, adaptive="off"
    )
    settings = TrainingSettings(
        epochs=100, steps=steps + 3, batch=COLUMNS, optimiser="sgd", lr=1.0, clip=0.25, device="cpu", log_every=200
    )
    clock = Clock()
    learned = kind.from_corpus(corpus, architecture)
    with tempfile.TemporaryDirectory() as room:
        choice = DataSettings(data=(corpus.name,))
        train(learned, corpus, settings, Path(room) / "run", data=choice, callback=clock)
    return steps * COLUMNS * WINDOW / (clock.times[-1] - clock.times[3])


def word_model(repeats: int, steps: int) -> list[str]:
    corpus, title = corpus_of("lm")
    short = Words(name=corpus.name, train=corpus.train, dev=_head(corpus.dev), test=_head(corpus.test))
    vocabulary = build_vocabulary(corpus.train)
    ids = encode_stream(corpus.train, vocabulary).long()
    pairs = [(ours(short, steps), plain(ids, len(vocabulary), steps)) for _ in range(repeats)]
    ratio = statistics.median(a / b for a, b in pairs)
    speed = [statistics.median(column) for column in zip(*pairs, strict=True)]
    return [
        f"One LSTM of {WIDTH}, tied, {len(vocabulary):,} words ({title}), {COLUMNS} streams of {WINDOW} tokens, SGD; "
        f"medians of {repeats} paired runs of {steps} steps.",
        "",
        "| | tokens a second |",
        "| --- | ---: |",
        f"| unrolled train lm | {speed[0]:,.0f} |",
        f"| the example, plainly | {speed[1]:,.0f} |",
        f"| ours / the example's | {ratio:.2f}x |",
    ]


def _head(stream: Any) -> Any:
    return Stream(lambda: islice(iter(stream), 60))


def _made_up_lines(size: int) -> Iterator[Sequence[str]]:
    """Running text of about so many bytes, over 30,000 words."""
    draw = torch.Generator().manual_seed(0)
    written = 0
    while written < size:
        words = (torch.rand(20_000, generator=draw) ** 4 * 30_000).long().tolist()
        for k in range(0, len(words), 20):
            line = [f"word{word}" for word in words[k : k + 20]]
            written += sum(map(len, line)) + len(line)
            yield line


def _index(size: int, out: multiprocessing.Queue[tuple[int, float]]) -> None:
    stream, indexed = Stream(lambda: _made_up_lines(size)), []
    added = peak(lambda: indexed.append(encode_stream(stream, build_vocabulary(stream))))
    out.put((len(indexed[0]), added))


def memory(sizes: Sequence[int]) -> list[str]:
    lines = ["| text | tokens | added to the process |", "| ---: | ---: | ---: |"]
    context = multiprocessing.get_context("spawn")
    for size in sizes:
        queue = context.Queue()
        process = context.Process(target=_index, args=(size * 10**6, queue))
        process.start()
        tokens, added = queue.get()
        process.join()
        lines.append(f"| {size} MB | {tokens:,} | {added:.0f} MB |")
    return lines


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--quick", action="store_true", help="few steps and one repeat")
    options = parser.parse_args()
    steps, repeats, sizes = (20, 1, (1, 4)) if options.quick else (200, 5, (10, 50, 100))
    assert set(REAL.values()) <= set(DATASETS.names())
    lines = [
        f"{describe_machine()}, torch {torch.__version__}.",
        "",
        "The model's own steps (forward, backward, clipping, optimiser) as a share of the time from one step's end to "
        "the next: what is not in them is the data side, logs and checkpoints.",
        "",
        "| task | data | steps | share of the model |",
        "| --- | --- | ---: | ---: |",
        *(share(task, steps) for task in TASKS.names()),
        "",
        *word_model(repeats, steps),
        "",
        "Counting and indexing running text (made up, 30,000 words), each size in a process of its own:",
        "",
        *memory(sizes),
    ]
    text = "\n".join(lines)
    print(text)
    if options.write:
        put("training", "Training: `python benchmarks/training.py`", text)


if __name__ == "__main__":
    main()
