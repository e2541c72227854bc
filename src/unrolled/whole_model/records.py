"""Every contribution of an account as a row of a table."""

from __future__ import annotations

from collections.abc import Iterator

from unrolled.whole_model.accounted_output import AccountedOutput
from unrolled.whole_model.argument_parts import argument_parts

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
    for part in argument_parts(one):
        values = part.values
        if part.is_text:
            for step, value in enumerate(values.tolist()):
                yield _record("token", part.name, step, part.words[step] if step < len(part.words) else None), value
            continue
        names = part.features or tuple(f"feature {k}" for k in range(values.shape[-1] if values.dim() else 1))
        if values.dim() < 2:
            for feature, value in zip(names, values.reshape(-1).tolist(), strict=True):
                yield _record("feature", part.name, feature=feature), value
            continue
        rows = values.flatten(0, -2).tolist()
        labels = part.words or tuple(f"x{k}" for k in range(len(rows)))
        for step, (label, row) in enumerate(zip(labels, rows, strict=True)):
            for feature, value in zip(names, row, strict=True):
                yield _record("feature", part.name, step, label, feature), value
    yield _record("initial state"), float(one.initial)
    for kind, named in (("bias", one.biases), ("constant", one.constants)):
        for name, value in named.items():
            yield _record(kind, name), float(value)
    yield _record("remainder"), float(one.remainder)


def _record(
    kind: str, source: str | None = None, step: int | None = None, label: str | None = None, feature: str | None = None
) -> Record:
    return {"kind": kind, "source": source, "step": step, "label": label, "feature": feature}
