"""Every contribution of an account as a row of a table."""

from __future__ import annotations

from collections.abc import Iterator

from unrolled.whole_model.accounted_output import AccountedOutput
from unrolled.whole_model.example_axis import without_example_axis

__all__ = ["records_of"]

Record = dict[str, object]


def records_of(account: AccountedOutput) -> list[Record]:
    """List the contributions of all examples; those of an example sum to its output."""
    return [
        {"example": example, **record, "contribution": contribution}
        for example, one in enumerate(account)
        for record, contribution in _of_one(one)
    ]


def _of_one(one: AccountedOutput) -> Iterator[tuple[Record, float]]:
    """Give what is known of each source of one example, and its contribution."""
    words = list(one.words[0]) if one.words else []
    for name, part in one.texts.items():
        values = part.reshape(-1).tolist()
        for step, value in enumerate(values):
            yield _record("token", name, step, words[step] if step < len(words) else None), value
        del words[: len(values)]
    for name, part in one.features.items():
        own = without_example_axis(part, one.axes.get(name))
        names = one.feature_names.get(name) or tuple(f"feature {k}" for k in range(own.shape[-1] if own.dim() else 1))
        if own.dim() < 2:
            for feature, value in zip(names, own.reshape(-1).tolist(), strict=True):
                yield _record("feature", name, feature=feature), value
            continue
        rows = own.reshape(-1, own.shape[-1]).tolist()
        labels = words if len(words) == len(rows) else [f"x{k}" for k in range(len(rows))]
        for step, (label, row) in enumerate(zip(labels, rows, strict=True)):
            for feature, value in zip(names, row, strict=True):
                yield _record("feature", name, step, label, feature), value
    yield _record("initial state"), float(one.initial)
    for kind, named in (("bias", one.biases), ("constant", one.constants)):
        for name, value in named.items():
            yield _record(kind, name), float(value)
    yield _record("remainder"), float(one.remainder)


def _record(
    kind: str, source: str | None = None, step: int | None = None, label: str | None = None, feature: str | None = None
) -> Record:
    return {"kind": kind, "source": source, "step": step, "label": label, "feature": feature}
