"""Find the recurrent networks inside a model, and the steps that users wrote themselves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache
from types import NoneType

from torch import nn

from unrolled.cells.recurrent import Recurrent
from unrolled.decomposition.own_steps.step_calls import StepForm
from unrolled.errors import UnknownNameError, UnrolledError, UsageError, kind_of
from unrolled.explanation.networks.as_cell import CellAdapter
from unrolled.explanation.networks.called_method import CalledMethod
from unrolled.explanation.networks.find_steps import called_methods, found_steps, named_step
from unrolled.explanation.networks.not_found import called_once, named_method, no_step, none_found
from unrolled.user_models.all_modules import all_modules, is_within
from unrolled.user_models.this_thread import in_this_thread

__all__ = ["RECURRENT_MODULES", "FoundNetworks", "NamedNetworks", "find_networks", "notes_of_steps_around"]

NamedNetworks = str | nn.Module | CellAdapter | Sequence[str | nn.Module | CellAdapter] | None
"""A network's path inside the model, the module itself, a step of the user's own, or several; None for all."""

RECURRENT_MODULES = (nn.RNNBase, nn.RNNCellBase, Recurrent)
"""Modules that are recurrent networks by their class."""


@dataclass(frozen=True)
class FoundNetworks:
    """The recurrent networks of a model."""

    paths: tuple[str, ...]
    """Of all of them."""
    opened: tuple[str, ...]
    """Of those whose calls are to be opened."""
    steps: Mapping[str, StepForm]
    """Those that are steps of the user's own."""
    around: Mapping[str, StepForm] = field(default_factory=dict)
    """The steps of the user's own, not opened, that call opened cells and have a state beside theirs."""

    @property
    def methods(self) -> dict[str, str]:
        """The method that a call of each network runs."""
        return {path: self.steps[path].method if path in self.steps else "forward" for path in self.paths}


def find_networks(
    model: nn.Module, rnn: NamedNetworks, run: Callable[[], object], without_kernel: Collection[str]
) -> FoundNetworks:
    """Find all recurrent networks of a model, and those that are to be opened.

    The steps that users wrote are looked for where a model has no other recurrent network, or where they are named.

    Args:
        model: The model.
        rnn: What is to be opened; None for all.
        run: Runs the model, to see which modules are steps.
        without_kernel: Networks by their class whose forward computes its steps itself: they are a user's own.

    Raises:
        UsageError: If the model has none, or ``rnn`` names none of them.
        UnknownNameError: If there is no module at a path.
    """
    modules = all_modules(model)
    found = [path for path, module in modules.items() if isinstance(module, RECURRENT_MODULES)]
    found = [path for path in _without_kept_beside(found, modules, model, run) if path not in without_kernel]
    # of a network with torch.nn's equations, torch.nn's own stands at its path by now
    of_users = [path for path in without_kernel if isinstance(modules[path], RECURRENT_MODULES)]
    search = _Search(model, modules, run, found, of_users)
    if isinstance(rnn, list | tuple) and not rnn:
        raise UsageError("rnn is an empty list; expected a network's path or module, a list of them, or None for all")
    if rnn is None:
        networks = search.all()
    else:
        networks = search.named(list(rnn) if isinstance(rnn, list | tuple) else [rnn])
    return replace(networks, around=search.around(networks.opened))


@dataclass(frozen=True)
class _Search:
    """A model whose networks are looked for."""

    model: nn.Module
    modules: dict[str, nn.Module]
    """All of its modules, by path."""
    run: Callable[[], object]
    """Runs it, to see which modules are steps."""
    found: list[str]
    """Paths of the networks by their class that run a kernel of torch's."""
    of_users: list[str]
    """Paths of those whose forward computes its steps itself."""

    def all(self) -> FoundNetworks:
        """Open all networks; steps where there are no others, or inside networks that compute their steps themselves.

        Raises:
            UsageError: If there is none.
        """
        called = self._called_methods() if self.of_users or not self.found else []
        steps = found_steps(called)
        if self.found:
            steps = {path: steps[path] for path in _inside(self.of_users, steps)}
        if not self.found and not steps:
            raise UsageError(called_once(called) or none_found(self.model, self.modules))
        paths = (*self.found, *steps)
        return FoundNetworks(paths, paths, steps)

    def named(self, wanted: Sequence[object]) -> FoundNetworks:
        """Open the networks and steps that a user names.

        Raises:
            UsageError: If one names none.
            UnknownNameError: If there is no module at a path.
        """
        adapters = [each for each in wanted if isinstance(each, CellAdapter)]
        seen = cache(lambda: self._called_methods(adapters))
        chosen: set[str] = set()
        steps: dict[str, StepForm] = {}
        for each in wanted:
            adapter = each if isinstance(each, CellAdapter) else None
            places = _paths(adapter.module if adapter else each, self.modules, self.found)
            inside = [] if adapter else _inside(places, self.found)
            if inside:
                places = _inside(places, self.of_users)
            if places:
                own = {path: form for place in places for path, form in named_step(seen(), place, adapter).items()}
                if not own and not inside:
                    raise UsageError(no_step(places[0], self.modules[places[0]], adapter))
                steps |= own
                inside += own
            chosen.update(inside)
        every = (*self.found, *(path for path in steps if path not in self.found))
        return FoundNetworks(every, tuple(path for path in every if path in chosen), steps)

    def around(self, opened: Sequence[str]) -> dict[str, StepForm]:
        """Return the steps that call opened cells and remember more tensors than these do."""
        cells = {path: each for path in opened if isinstance(each := self.modules[path], nn.RNNCellBase)}
        if not any(map(self._is_in_a_part, cells)):
            return {}
        try:
            seen = self._called_methods()
            steps = found_steps(seen)
        except UnrolledError:  # what is opened needs no step
            return {}

        def kept(form: StepForm) -> int:
            return sum(2 if isinstance(cells[path], nn.LSTMCell) else 1 for path in form.inside if path in cells)

        around = {path: form for path, form in steps.items() if path not in opened and kept(form) > 0}
        calls = {(each.path, each.method): each for each in seen}
        return {
            path: form for path, form in around.items() if kept(form) < calls[path, form.method].remembered(form.state)
        }

    def _is_in_a_part(self, path: str) -> bool:
        """Whether a module is inside a part of the model that has a forward of its own."""
        names = path.split(".")
        parts = (self.modules.get(".".join(names[:count])) for count in range(1, len(names)))
        return any(not isinstance(each, nn.ModuleList | nn.ModuleDict | NoneType) for each in parts)

    def _called_methods(self, adapters: Sequence[CellAdapter] = ()) -> list[CalledMethod]:
        return called_methods(self.model, self.run, adapters, owned=[self.modules[path] for path in self.of_users])


def _inside(places: Sequence[str], paths: Iterable[str]) -> list[str]:
    """Return the paths that are one of some places or inside it."""
    return [path for path in paths if any(is_within(path, place) for place in places)]


def _without_kept_beside(
    found: list[str], modules: dict[str, nn.Module], model: nn.Module, run: Callable[[], object]
) -> list[str]:
    """Leave out the networks that a model keeps beside it and does not run, such as those of a teacher in a list."""
    registered = set(map(id, model.modules()))
    kept = [path for path in found if id(modules[path]) not in registered]
    called: set[str] = set()
    with ExitStack() as hooks:
        for path in kept:
            note = in_this_thread(lambda *_, path=path: called.add(path))
            hooks.enter_context(modules[path].register_forward_pre_hook(note))
        if kept:
            run()
    return [path for path in found if path not in kept or path in called]


def _paths(rnn: object, modules: dict[str, nn.Module], found: list[str]) -> list[str]:
    """Return the paths that a name or a module stands for."""
    if isinstance(rnn, nn.Module):
        paths = [path for path, module in modules.items() if module is rnn]
        if not paths:
            raise UsageError(f"rnn is {kind_of(rnn)} that is no recurrent network inside the model")
        return paths
    if not isinstance(rnn, str):
        raise UsageError(f"rnn is {kind_of(rnn)}; expected the network's path inside the model, or the module")
    if rnn not in modules and (advice := named_method(rnn, modules)):
        raise UsageError(advice)
    if rnn not in modules:
        raise UnknownNameError("recurrent network", rnn, found or [path for path in modules if path])
    return [rnn]


def notes_of_steps_around(networks: FoundNetworks) -> tuple[str, ...]:
    """Say which steps have a recurrence of their own around the cells that are opened."""
    notes = []
    for path, form in networks.around.items():
        cells = ", ".join(each for each in form.inside if each in networks.opened)
        method = "" if form.method == "forward" else f", method={form.method!r}"
        notes.append(
            f"the n-grams are those of {cells} inside the step {path}, whose own state is not opened: its factors are "
            f"held, and what enters it is in the bias; rnn=unrolled.as_cell({path!r}{method}) opens the whole step"
        )
    return tuple(notes)
