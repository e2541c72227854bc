"""What terminal, figure and page show of one example of an account."""

from __future__ import annotations

from torch import Tensor

from unrolled.explanation.model_arguments import shown_argument
from unrolled.report.account_view import AccountView, Group
from unrolled.whole_model.accounted_output import AccountedOutput
from unrolled.whole_model.argument_parts import argument_parts

__all__ = ["view_of"]


def view_of(account: AccountedOutput, example: int) -> AccountView:
    """Collect the numbers and names of one example."""
    one = account[example]
    groups: list[Group] = []
    by_feature: list[Group] = []
    for part in argument_parts(one):
        values, alike = part.values, one.texts if part.is_text else one.features
        of = f" of {shown_argument(part.name, one.argument_names)}" if len(alike) > 1 else ""
        if part.is_text:
            groups.append(Group(f"tokens{of}", part.words, tuple(values.tolist())))
        elif values.dim() < 2:
            groups.append(_numbered(f"features{of}", part.features, values))
        else:
            groups.append(_numbered(f"steps{of}", part.words, values.sum(dim=-1)))
            if values.dim() == 2 and values.shape[1] > 1:
                name = f"features{of}, all steps together"
                by_feature.append(_numbered(name, part.features, values.sum(dim=0), "feature "))
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
        recurrent=one.recurrent,
        notes=(*one.notes, *([f"example {example} of a batch of {len(account)}"] if len(account) > 1 else [])),
    )


def _numbered(name: str, labels: tuple[str, ...], values: Tensor, kind: str = "x") -> Group:
    """Name values as given, else by their index."""
    found = values.reshape(-1).tolist()
    return Group(name, labels or tuple(f"{kind}{k}" for k in range(len(found))), tuple(found))
