"""What of a model can be opened, as a table."""

from __future__ import annotations

from dataclasses import dataclass

from unrolled.report.check_table import check_to_text

__all__ = ["Check", "CheckedPart"]


@dataclass(frozen=True)
class CheckedPart:
    """One recurrent module of a model, or the whole model."""

    path: str
    """The module's path, or ``"whole model"``."""
    kind: str
    """Its type, with layers and directions where it has several."""
    calls: int
    """How often one run of the model calls it."""
    reads: str
    """What its first call receives."""
    opens: bool
    """Whether the call below gives an explanation or an account."""
    call: str
    """The call that opens it."""
    cost: str
    """What that call takes beside the time of the model."""
    why: str
    """Why it does not open, or the notes of what it gives; empty if there is nothing to say."""


@dataclass(frozen=True)
class Check:
    """What of a model can be opened; ``print(check)`` shows it as a table.

    Example:
        >>> import torch, unrolled
        >>> class Classifier(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.embed, self.rnn = torch.nn.Embedding(9, 4), torch.nn.GRU(4, 6, batch_first=True)
        ...         self.head = torch.nn.Linear(6, 2)
        ...     def forward(self, tokens):
        ...         return self.head(self.rnn(self.embed(tokens))[0][:, -1])
        >>> found = unrolled.check(Classifier(), torch.tensor([[1, 2, 3]]))
        >>> [(part.path, part.opens) for part in found.parts]
        [('rnn', True), ('whole model', True)]
    """

    parts: tuple[CheckedPart, ...]
    """Every recurrent module, and the whole model last."""

    @property
    def opens(self) -> bool:
        """Whether any part opens."""
        return any(part.opens for part in self.parts)

    def render(self, width: int = 100) -> str:
        """Return the table as text of at most ``width`` columns."""
        rows = [
            (part.path, part.kind, str(part.calls), part.reads, "yes" if part.opens else "no", part.cost or "–")
            for part in self.parts
        ]
        remarks = [
            (part.path, "; ".join(each for each in (part.call if part.opens else "", part.why) if each))
            for part in self.parts
        ]
        return check_to_text(rows, [(path, text) for path, text in remarks if text], width)

    def __str__(self) -> str:
        return self.render()
