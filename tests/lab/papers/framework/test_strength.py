"""An item is at strength once one seed of all its trials has run at its strongest scale."""

from __future__ import annotations

from unrolled.lab.papers.framework.experiment import SCALES, Experiment, Report, Result, Trial
from unrolled.lab.papers.framework.result_store import ResultStore
from unrolled.lab.papers.framework.runner import run_trial
from unrolled.lab.papers.framework.strength import strength_section


class Counted(Experiment):
    """Two numbers with two seeds each."""

    name = "arithmetic/counted"
    title = "Counted"
    source = "ours"
    usual_hours = 1.5

    def trials(self, scale):
        return [Trial(f"{n}, seed {seed}", {"n": n, "seed": seed}) for seed in (0, 1) for n in (1, 2)]

    def run(self, trial, setup):
        return {"n": trial.settings["n"]}

    def report(self, results, scale):
        return Report([])


class Long(Counted):
    """The same, with a scale of hours."""

    name = "arithmetic/long"
    scales = tuple(SCALES)


def _run(experiment, scale, store, wanted):
    for trial in experiment.trials(scale):
        if wanted(trial.settings):
            run_trial(experiment, scale, trial, store, command="c")


def _section(store):
    return "\n".join(strength_section([Counted(), Long()], store))


def test_nothing_is_at_strength_before_it_has_run(tmp_path):
    told = _section(ResultStore(tmp_path))
    assert "0 of 2 items are at strength." in told
    assert "| `arithmetic/counted` | cpu | 0 of 2 | 0 of 2 | – | 3.0 | 3.0 | no |" in told
    assert "| `arithmetic/long` | day | 0 of 2 | 0 of 2 | – | 3.0 | 3.0 | no |" in told
    assert "| all |  |  |  |  | 6.0 | 6.0 | 0 of 2 |" in told


def test_one_seed_at_scale_day_makes_strength_and_scale_cpu_does_not_where_there_is_a_day(tmp_path):
    store = ResultStore(tmp_path)
    for experiment in (Counted(), Long()):
        _run(experiment, "cpu", store, lambda chosen: chosen["seed"] == 0)
    assert "| `arithmetic/counted` | cpu | 2 | 0 of 2 | – | – | 3.0 | yes |" in _section(store)
    assert "| `arithmetic/long` | day | 0 of 2 | 0 of 2 | – | 3.0 | 3.0 | no |" in _section(store)
    _run(Long(), "day", store, lambda chosen: chosen == {"n": 2, "seed": 0} or chosen["seed"] == 1)
    assert "| `arithmetic/long` | day | 1 of 2 | 2 | – | 1.5 | – | no |" in _section(store)
    _run(Long(), "day", store, lambda chosen: chosen["seed"] == 0)
    assert "2 of 2 items are at strength." in _section(store)
    assert "| `arithmetic/long` | day | 2 | 2 | – | – | – | yes |" in _section(store)
    assert "| all |  |  |  |  | – | 3.0 | 2 of 2 |" in _section(store)


class Trained(Counted):
    """Trainings that record their best epoch; the first stopped while it improved."""

    name = "arithmetic/trained"

    def run(self, trial, setup):
        return {"best_epoch": 3, "epochs": 2 + trial.settings["n"]}


def test_trainings_that_were_best_in_their_last_epoch_are_counted(tmp_path):
    store = ResultStore(tmp_path)
    _run(Trained(), "cpu", store, lambda chosen: chosen == {"n": 2, "seed": 0})
    assert "| 0 of 1 | 1.5 | 3.0 | no |" in "\n".join(strength_section([Trained()], store))
    _run(Trained(), "cpu", store, bool)
    assert "| `arithmetic/trained` | cpu | 2 | 2 | 1 of 2 | – | – | yes |" in "\n".join(
        strength_section([Trained()], store)
    )


class Timed(Counted):
    """Ten trials, of which each has two seeds."""

    name = "arithmetic/timed"
    scales = tuple(SCALES)

    def trials(self, scale):
        return [Trial(f"{n}, seed {seed}", {"n": n, "seed": seed}) for seed in (0, 1) for n in range(10)]


def test_the_times_of_trials_of_scale_day_are_compared_with_their_estimates(tmp_path):
    store, experiment = ResultStore(tmp_path), Timed()

    def keep(trials):
        for trial in trials:
            hours = (1 + trial.settings["n"]) / 10 * experiment.usual_hours
            store.keep(experiment, "day", Result(trial, {"n": 1}, 3600 * hours, "", "c", "m", {}))

    keep(experiment.trials("day")[:-1])
    assert "times its estimate" not in "\n".join(strength_section([experiment], store))  # too few to speak of tenths
    keep(experiment.trials("day")[-1:])
    told = "\n".join(strength_section([experiment, Counted()], store))
    assert (
        "1 of 2 items are at strength. Of the 20 trials of scale day that ran, the median took 0.55 times its "
        "estimate, and four fifths took 0.11 to 1.0 times."
    ) in told
