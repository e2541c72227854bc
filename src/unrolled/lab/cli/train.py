"""``unrolled train TASK``: one sub-command for each task; the fields of its settings are the flags."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from unrolled.cli.completed_values import encoder_names
from unrolled.errors import FileError, UnknownNameError, UsageError
from unrolled.lab.cli.baselines import compare_with_baselines, note_of_ratings
from unrolled.lab.cli.described_splits import describe_splits
from unrolled.lab.cli.interrupted_training import advising_how_to_go_on
from unrolled.lab.cli.multi_value_command import MultiValueCommand
from unrolled.lab.cli.options import offer, options, with_parameters
from unrolled.lab.cli.printed_notes import is_first_process, print_notes
from unrolled.lab.cli.training_choices import TrainingChoices, combine
from unrolled.named_sources import check_named, check_no_folder, is_hub_dataset
from unrolled.registry import names_in_source, texts_in_source

if TYPE_CHECKING:
    from unrolled.lab.training.settings import TrainingSettings
    from unrolled.lab.training.task import Task

__all__ = ["app"]

_TASKS = "unrolled.lab.tasks"


class _Tasks(typer.core.TyperGroup):
    """The tasks as sub-commands, loaded on demand: a list of them needs their source alone."""

    def list_commands(self, ctx: Any) -> list[str]:  # the base class's signature
        """List the tasks."""
        return names_in_source(_TASKS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # the base class's signature
        """Make the command of a task."""
        known = texts_in_source(_TASKS)
        if cmd_name in known:
            return _Task(cmd_name, known[cmd_name].get("description", f"the task {cmd_name}"))
        tasks, command = ", ".join(sorted(known)), f"unrolled train classify --data {shlex.quote(cmd_name)}"
        if is_hub_dataset(cmd_name):
            raise UsageError(
                f"{cmd_name!r} is a dataset of Hugging Face's library and no task; name one of {tasks}, and the "
                f"dataset by --data: {command}"
            )
        if _names_a_file(cmd_name):
            raise UsageError(f"{cmd_name!r} is no task; name one of {tasks}, and the file by --data: {command}")
        raise UnknownNameError("task", cmd_name, sorted(known))


def _names_a_file(name: str) -> bool:
    """Tell whether a word is a file, or has the suffix of one that can be read."""
    from unrolled.lab.data.formats import FORMATS
    from unrolled.lab.data.text_files import without_compression

    suffix = without_compression(Path(name)).suffix.lower()
    return Path(name).is_file() or any(suffix in each.suffixes for each in FORMATS.members.values())


class _Task(typer.core.TyperCommand):
    """The command of a task, with its options made when it is called."""

    def __init__(self, name: str, description: str) -> None:
        super().__init__(name, help=_summary(description))

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Make the context of the whole command."""
        from unrolled.lab.tasks import TASKS

        command = _command(TASKS.get_alone(str(self.name)), tuple(args))
        return command.make_context(info_name, args, parent=parent, **extra)

    def get_params(self, ctx: Any) -> list[Any]:
        """List the options of the whole command, for a message about one that stands before the task."""
        from unrolled.lab.tasks import TASKS

        params: list[Any] = _command(TASKS.get_alone(str(self.name)), ()).get_params(ctx)
        return params

    def invoke(self, ctx: Any) -> Any:
        """Run the whole command."""
        return ctx.command.invoke(ctx)


def _summary(description: str) -> str:
    return f"Train a model for {description}."


app = typer.Typer(cls=_Tasks, no_args_is_help=True, add_completion=False)


@app.callback()
def _group() -> None:
    """Train a network for a task and save it in a run folder; `unrolled train TASK --help` lists the settings."""


def _flag(name: str, kind: Any, help_text: str, *names: str, shown: str | bool = False) -> inspect.Parameter:
    option = typer.Option(*names, help=help_text, show_default=shown)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, option])


_OWN = (
    _flag("out", Path | None, "The run folder to write.", shown="runs/DATA-ENCODER"),
    _flag("force", bool | None, "Replace an earlier run of this name.", "--force"),
    _flag("data_dir", Path | None, "Folder of the datasets; by default the variable UNROLLED_DATA."),
    _flag("config", Path | None, "A YAML file of settings, one key: value a line; flags override it."),
)


def _command(task: type[Task[Any, Any]], words: Sequence[str]) -> Any:
    """Make the command of a task; ``words`` are its command line, which advice repeats."""
    from unrolled.lab.data.formats import FORMATS
    from unrolled.lab.data.load import dataset_names
    from unrolled.lab.training.data_settings import DataSettings
    from unrolled.lab.training.settings import TrainingSettings

    def run(**given: Any) -> None:
        _train(task, {key: value for key, value in given.items() if value not in (None, [])}, [task.name, *words])

    parameters = [
        *options(DataSettings, "The data", {}, {"data": offer(dataset_names(task.kind))}),
        *_OWN,
        *options(task.Architecture, "The model", {}, {"encoder": encoder_names}),
        *options(TrainingSettings, "The training", task.training_defaults),
    ]
    metrics = "\n\n".join(f"{metric.name}: {metric.description}." for metric in task.metrics)
    formats = "\n\n".join(
        f"{each.name} ({', '.join(each.suffixes) or 'any file'}): {each.description}."
        for each in FORMATS.members.values()
        if task.kind in each.kinds
    )
    suffixes = [each.suffixes[0] for each in FORMATS.members.values() if task.kind in each.kinds and each.suffixes]
    example = f"FILE{suffixes[0]}" if suffixes else next(iter(dataset_names(task.kind)), "FILE")
    text = (
        f"{_summary(task.description)}\n\n    unrolled train {task.name} --data {example} --out runs/first\n\n"
        "The first of these metrics, on dev, chooses the best epoch:\n\n"
        f"{metrics}\n\nDatasets for this task: {', '.join(dataset_names(task.kind)) or 'none'}; "
        f"or your own files:\n\n{formats}"
    )
    single = typer.Typer(add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})
    single.command(task.name, cls=MultiValueCommand)(with_parameters(run, parameters, task.name, text))
    return typer.main.get_command(single)


def _train(task: type[Task[Any, Any]], given: dict[str, Any], words: Sequence[str]) -> None:
    force, data_dir = bool(given.pop("force", False)), given.pop("data_dir", None)
    for name in ("data", "dev", "test"):
        _check_files(given.get(name, ()))
    choices = combine(task, given)
    from unrolled.lab.training.initial_vectors import find_vectors
    from unrolled.lab.training.run_creation import check_destination

    settings = choices.training
    if settings.vectors is not None:
        settings = settings.model_copy(update={"vectors": find_vectors(settings.vectors, data_dir)})
    folder = choices.out or Path("runs") / f"{choices.data.title}-{choices.architecture.encoder}"
    check_destination(folder, force)
    with advising_how_to_go_on(folder):
        _train_and_print(task, choices, settings, folder, force, data_dir, words)


def _check_files(names: Sequence[str]) -> None:
    """Find a file that is missing before torch is loaded; a name without a suffix may be a dataset's."""
    from unrolled.lab.data.load import is_dataset

    for name in names:
        path = Path(name)
        if is_hub_dataset(name):
            continue
        check_named(name)
        if not is_dataset(name):
            check_no_folder(path)
        if not path.exists() and (path.suffix or len(names) > 1) and not is_dataset(name):
            raise FileError(f"{name}: cannot be read: No such file or directory")


def _train_and_print(
    task: type[Task[Any, Any]],
    choices: TrainingChoices,
    settings: TrainingSettings,
    folder: Path,
    force: bool,
    data_dir: Path | None,
    words: Sequence[str],
) -> None:
    from rich.console import Console

    from unrolled.lab.data.unicode_forms import note_of_forms
    from unrolled.lab.training.data_check import read_with_checksums
    from unrolled.lab.training.engine import train
    from unrolled.lab.training.progress import TrainingProgress

    read = partial(choices.data.load_corpus, task.kind, data_dir, settings.seed)
    corpus, files = read_with_checksums(read, choices.data, data_dir)
    print_notes([*corpus.notes, *note_of_ratings(corpus, choices.data), *note_of_forms(corpus)])
    learned = task.from_corpus(corpus, choices.architecture)
    first = is_first_process()
    sizes = describe_splits(corpus, learned.metrics[0].name)
    with TrainingProgress(Console(stderr=True, quiet=not first), sizes, learned.loss_name) as progress:
        run = train(learned, corpus, settings, folder, data=choices.data, files=files, force=force, callback=progress)
    if first:
        from unrolled.lab.cli.printed_metrics import print_run

        compare_with_baselines(run, corpus, words, folder)
        print_run(run, corpus)
