"""The queue with a budget: the order of trials, that it stops in time, and that a stopped trial continues."""

from __future__ import annotations

import os
import re
import signal
import time

import pytest

from unrolled.errors import StoppedError
from unrolled.lab.data.data_folder import MissingDataError, find_file
from unrolled.lab.papers.framework.budget_queue import list_jobs, next_job, remaining, run_queue
from unrolled.lab.papers.framework.experiment import SCALES, Experiment, Report, Trial
from unrolled.lab.papers.framework.result_store import ResultStore
from unrolled.lab.papers.framework.runner import collect
from watched_trials import WatchedTrials


class Sleeps(Experiment):
    """Trials that take a while; one that was stopped continues from the seconds recorded in its folder."""

    name = "waiting/sleeps"
    title = "Sleeps"
    source = "ours"
    scales = tuple(SCALES)
    estimates = {"a": 1.0, "b": 0.25, "c": 2.0}  # noqa: RUF012  # nobody changes it

    def __init__(self, seconds=0.0, run=None):
        self.seconds = seconds
        self.ran = []
        self.instead = run

    def trials(self, scale):
        return [
            Trial(f"{name}, seed {seed}", {"name": name, "training": {"seed": seed}})
            for seed in (0, 1)
            for name in self.estimates
        ]

    def hours(self, trial, scale):
        assert scale == "day"
        return self.estimates[trial.settings["name"]]

    def worth(self, trial):
        return 10.0 if trial.settings["name"] == "c" else 1.0

    def run(self, trial, setup):
        done = setup.folder / "done"
        if self.instead:
            self.instead()
        with done.open("a") as marks:
            while (count := marks.tell()) < self.seconds * 100:
                time.sleep(0.01)
                marks.write(".")
                marks.flush()
        self.ran.append(trial.label)
        return {"count": count}

    def report(self, results, scale):
        return Report([])


class Nowhere(Sleeps):
    """Has no trials at scale day."""

    name = "waiting/nowhere"
    scales = ("smoke",)


@pytest.fixture
def store(tmp_path):
    return ResultStore(tmp_path / "results")


def go(experiment, store, hours, watching=None, **more):
    return run_queue(
        [experiment, Nowhere()], "day", store, hours=hours, command="c", progress=watching or WatchedTrials(), **more
    )


def test_the_largest_gain_comes_first_and_further_seeds_later(store):
    jobs = list_jobs([Nowhere(), Sleeps()], "day", store)
    assert [job.trial.label for job in jobs] == [
        "c, seed 0", "b, seed 0", "c, seed 1", "a, seed 0", "b, seed 1", "a, seed 1"
    ]  # fmt: skip
    assert [job.gain for job in jobs] == [5.0, 4.0, 1.25, 1.0, 1.0, 0.25]


def test_a_trial_that_ends_in_time_is_chosen_before_one_that_does_not(store):
    jobs = list_jobs([Sleeps()], "day", store)
    assert next_job(jobs, 2.0).trial.label == "c, seed 0"
    assert next_job(jobs, 1.9).trial.label == "b, seed 0"
    assert next_job(jobs, 0.1).trial.label == "c, seed 0"  # none ends in time: the first one begins
    assert next_job([], 9.0) is None


def test_all_are_run_where_there_is_time_and_each_once(store):
    experiment, watching = Sleeps(), WatchedTrials()
    assert go(experiment, store, 9.0, watching) == 6
    assert sorted(experiment.ran) == sorted(trial.label for trial in experiment.trials("day"))
    assert watching.seen[0] == ("c, seed 0", 1, 6, False)
    assert watching.seen[-1] == ("a, seed 1", 6, 6, False)
    assert go(experiment, store, 9.0) == 0


def test_it_begins_none_when_the_time_is_up(store):
    times = iter([0.0, 0.0, 3600.0])
    experiment = Sleeps()
    assert go(experiment, store, 1.0, clock=lambda: next(times)) == 1
    assert experiment.ran == ["b, seed 0"]
    assert go(experiment, store, 0.0) == 0


@pytest.mark.slow
def test_the_trial_under_way_is_stopped_in_time_and_goes_on_the_next(store):
    slow, watching = Sleeps(seconds=60.0), WatchedTrials()
    began = time.monotonic()
    assert go(slow, store, 2.0 / 3600, watching) == 0  # on a busy machine the trial begins late
    assert time.monotonic() - began < 10
    assert "the time is up" in watching.said[-1]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    (done,) = store.folder.rglob("done")
    count = len(done.read_text())
    assert count > 0
    quick = Sleeps(seconds=count / 100)  # enough has been slept
    assert go(quick, store, 1.0) == 6
    assert "c, seed 0" in quick.ran


def test_a_signal_from_outside_is_passed_on(store):
    def struck():
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)

    with pytest.raises(StoppedError, match="interrupted; give the same command again to continue"):
        go(Sleeps(run=struck), store, 1.0)


@pytest.mark.parametrize(
    ("kind", "text"),
    [(StoppedError, "interrupted; give the same command again to continue"), (KeyboardInterrupt, "")],
)
def test_the_advice_of_a_training_within_a_trial_is_replaced_by_that_of_the_trial(store, kind, text):
    """Its run is not the trial: the trial goes on by its own command, which the command line names by itself."""

    def stop():
        raise kind("stopped and saved after step 3; go on with: unrolled resume work/run")

    with pytest.raises(kind, match=f"^{text}$"):
        go(Sleeps(run=stop), store, 1.0)


def test_a_table_says_what_is_left(store):
    go(Sleeps(), store, 0.0)
    experiment = Sleeps()
    run_queue([experiment], "day", store, hours=9.0, command="c", progress=WatchedTrials())
    path = store.path(experiment.name)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(each for each in lines if not re.search('"(a, seed 1|b, seed 0)"', each)))
    table = remaining(list_jobs([experiment], "day", store))
    assert table.cells() == [["waiting/sleeps", "4", "2", "1.2", "0.2"], ["all", "4", "2", "1.2", "0.2"]]


def find_nothing(store):
    return Sleeps(run=lambda: find_file("glove/nowhere.txt", store.folder))


def test_a_trial_without_its_data_is_left_out_and_the_others_run(store):
    class Another(Sleeps):
        name = "waiting/another"

    watching, others = WatchedTrials(), Another()
    ended = run_queue([find_nothing(store), others], "day", store, hours=9.0, command="c", progress=watching)
    assert ended == len(others.ran) == 6
    left_out = [line for line in watching.said if line.startswith("left out: ")]
    assert len(left_out) == 6
    assert "no glove/nowhere.txt in " in left_out[0]


def test_an_empty_data_folder_is_an_error(store):
    with pytest.raises(MissingDataError, match="nowhere"):
        go(find_nothing(store), store, 9.0)


def test_the_seconds_of_a_trial_are_those_of_all_its_runs(store):
    def stop():
        time.sleep(0.3)
        raise StoppedError("stopped")

    for _ in range(2):
        with pytest.raises(StoppedError):
            go(Sleeps(run=stop), store, 1.0)
    experiment = Sleeps()
    go(experiment, store, 1.0)
    seconds = {each.trial.label: each.seconds for each in collect(experiment, "day", store)}
    interrupted = seconds.pop("b, seed 0")
    assert interrupted >= 0.6  # it slept that long
    assert all(each < interrupted for each in seconds.values())
