"""What terminal, figure and page show of one example of an account."""

from __future__ import annotations

from torch import Tensor

from unrolled.report.account_view import AccountView, Group
from unrolled.whole_model.accounted_output import AccountedOutput
from unrolled.whole_model.example_axis import without_example_axis

__all__ = ["view_of"]


def view_of(account: AccountedOutput, example: int) -> AccountView:
    """Collect the numbers and names of one example."""
    one = account[example]
    words = list(account.words[example % len(account)]) if account.words else []
    groups: list[Group] = []
    by_feature: list[Group] = []
    for name, part in one.texts.items():
        values = part.reshape(-1).tolist()
        label = f"tokens of {name}" if len(one.texts) > 1 else "tokens"
        groups.append(Group(label, tuple(words[: len(values)]), tuple(values)))
        del words[: len(values)]
    for name, part in one.features.items():
        own, of = without_example_axis(part, one.axes.get(name)), f" of {name}" if len(one.features) > 1 else ""
        names = one.feature_names.get(name, ())
        if own.dim() < 2:
            groups.append(_numbered(f"features{of}", names, own))
            continue
        steps = tuple(words) if words and len(words) == own[..., 0].numel() else ()
        groups.append(_numbered(f"steps{of}", steps, own.sum(dim=-1)))
        if own.dim() == 2 and own.shape[1] > 1:
            by_feature.append(_numbered(f"features{of}, all steps together", names, own.sum(dim=0), "feature "))
    return AccountView(
        target=one.target,
        expansion=one.expansion,
        groups=tuple(groups),
        by_feature=tuple(by_feature),
        biases={name: float(value) for name, value in one.biases.items()},
        constants={name: float(value) for name, value in one.constants.items()},
        initial=float(one.initial),
        remainder=float(one.remainder),
        output=float(one.output),
        cancellation=float(one.cancellation),
        closes=one.closes,
        notes=(*one.notes, *([f"example {example} of a batch of {len(account)}"] if len(account) > 1 else [])),
    )


def _numbered(name: str, labels: tuple[str, ...], values: Tensor, kind: str = "x") -> Group:
    """Name values as given, else by their index."""
    found = values.reshape(-1).tolist()
    return Group(name, labels or tuple(f"{kind}{k}" for k in range(len(found))), tuple(found))
