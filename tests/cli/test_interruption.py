"""Ctrl-C and SIGTERM at any moment: no traceback, one line with the command that goes on, exit code 130 or 143."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys

import pytest

from unrolled.cli import interruption

SIGNALS = [signal.SIGINT, signal.SIGTERM]
# A real process that sends itself a signal when this line of Python runs for the n-th time: at that very moment. One
# that does not says at which moments it opened its log for the first time, wrote its metrics, and ended. What LOADED
# names is imported before, without a trace: tracing it takes as long again.
PROGRAM = """
import os, sys
import unrolled.__main__
for name in os.environ["LOADED"].split():
    __import__(name)
count, number = int(os.environ["AT"]), int(os.environ["SIGNAL"])
def make_trace():
    seen, moments = 0, {}  # not global: one is read and written millions of times
    def trace(frame, event, argument):
        nonlocal seen
        seen += 1
        if seen == count:
            sys.setprofile(None)
            os.kill(os.getpid(), number)
    def note(event, arguments):
        name = event == "open" and os.path.basename(str(arguments[0]))
        if name in ("log.jsonl", ".metrics.json.tmp"):
            moments.setdefault(name, seen)
    return trace, note, lambda: print(*moments.values(), seen)
trace, note, tell = make_trace()
if count > 10**11:
    import atexit
    atexit.register(tell)
    sys.addaudithook(note)
unrolled.__main__.install()
sys.setprofile(trace)
sys.argv = ["unrolled", *sys.argv[1:]]
unrolled.__main__.main()
"""


def interrupted(words, at, number, folder, loaded=""):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, words)],
        env={**os.environ, "AT": str(at), "SIGNAL": str(int(number)), "LOADED": loaded, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        cwd=folder,
    )


def check(done, number):
    """It ended as it should, and the line of it."""
    assert "Traceback" not in done.stderr, done.stderr
    assert "Exception ignored" not in done.stderr, done.stderr
    if done.returncode == 0:  # it had ended before the signal came
        return ""
    assert done.returncode == 128 + number, done.stderr
    line = done.stderr.strip().splitlines()[-1]
    assert line.startswith("unrolled: error: ")
    return line


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("at", [1, 3_000, 30_000, 200_000])
def test_while_modules_are_imported(tmp_path, number, at):
    line = check(interrupted(["parameters", "gru", "--match", "10k", "--input", "5"], at, number, tmp_path), number)
    assert not line or line.endswith("start it again with: unrolled parameters gru --match 10k --input 5")


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "my reviews.tsv"
    path.write_text("".join(f"text {i} is {('bad', 'good')[i % 2]}\t{('neg', 'pos')[i % 2]}\n" for i in range(60)))
    return path


TRAINING = "--encoder gru --hidden 6 --embedding 5 --epochs 2 --batch 8 --device cpu --out run".split()
LOADED = "torch sklearn.feature_extraction.text"
"""What a training imports of other packages."""


@pytest.fixture(scope="module")
def parts(tmp_path_factory, reviews):
    """The first and last moments of a training before, during and after its steps, when no signal meets it."""
    words = ["train", "classify", "--data", reviews, *TRAINING]
    whole = interrupted(words, 10**12, signal.SIGTERM, tmp_path_factory.mktemp("whole"), LOADED)
    assert whole.returncode == 0, whole.stderr
    began, ended, all_of_them = map(int, whole.stdout.splitlines()[-1].split())
    return {"train": (1, began), "resume": (began, ended), "evaluate": (ended, all_of_them)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "shares"),
    [
        (signal.SIGINT, {"evaluate": (0.8,)}),
        (signal.SIGTERM, {"train": (0.95,), "resume": (0.5,), "evaluate": (0.98,)}),
        pytest.param(
            signal.SIGTERM, {"train": (0.2,), "resume": (0.3, 0.7), "evaluate": (0.05, 0.5)}, marks=pytest.mark.fuzz
        ),
    ],
)
def test_a_training_before_during_and_after_its_steps(tmp_path, reviews, parts, number, shares, unrolled, monkeypatch):
    """At many moments of one command; what the last line says is then typed, and ends well.

    It is typed into a process of its own the first time that a command is advised, and from then on into this one.
    """
    words, advised = ["train", "classify", "--data", reviews, *TRAINING], set()
    for at in (int(begin + share * (end - begin)) for k, (begin, end) in parts.items() for share in shares.get(k, ())):
        place = tmp_path / str(at)
        place.mkdir()
        line = check(interrupted(words, at, number, place, LOADED), number)
        if not line:
            continue
        command = re.search(r"(?:go on with|start it again with|when it was interrupted): unrolled (.*)", line)
        assert command, line
        typed = shlex.split(command[1])
        if typed[0] in advised:
            monkeypatch.chdir(place)
            here = unrolled(*typed)
            assert here.status == 0, (line, here.err)
        else:
            program = [sys.executable, "-m", "unrolled", *typed]
            done = subprocess.run(program, capture_output=True, text=True, cwd=place)
            assert done.returncode == 0, (line, done.stderr)
        advised.add(typed[0])
        assert not list(place.glob(".*")), line
    assert advised == set(shares)


def test_a_process_that_is_killed_by_its_terminal_while_it_waits():
    """A real Ctrl-C, from outside, into a command that reads its standard input."""
    program = "import unrolled.__main__ as m, time\nm.install()\nprint(1, flush=True)\ntime.sleep(60)"
    for number in SIGNALS:
        with subprocess.Popen([sys.executable, "-c", program], stdout=-1, stderr=-1, text=True) as child:
            child.stdout.readline()
            child.send_signal(number)
            _, error = child.communicate(timeout=30)
        assert child.returncode == 128 + number
        assert "Traceback" not in error


def test_a_signal_that_was_ignored_from_the_beginning_stays_ignored():
    program = (
        "import signal, os\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nimport unrolled.__main__ as m\nm.install()\n"
        "os.kill(os.getpid(), signal.SIGINT)\nprint('lives')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "lives\n"


def test_where_no_exception_gets_out_the_process_ends_nevertheless():
    program = (
        "import os, signal, unrolled.__main__ as m\nfrom unrolled.cli.interruption import working\nm.install()\n"
        "class A:\n    def __del__(self): os.kill(os.getpid(), signal.SIGINT); [0 for _ in range(10)]\n"
        "with working():\n    a = A(); del a; print('went on')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (130, "")
    assert "Exception ignored" not in done.stderr


# The signal comes while Python calls the function of a weak reference; no exception gets out of it.
IN_A_WEAK_REFERENCE = """
import os, signal, weakref
import unrolled.__main__ as m
m.install()
import unrolled.lab.cli.{module} as patched
class A: pass
def replaced(*_, **__):
    a = A()
    kept = weakref.ref(a, lambda _: (os.kill(os.getpid(), signal.SIGTERM), [0 for _ in range(10)]))
    del a
assert callable(patched.{function})
patched.{function} = replaced
m.main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "function", "said"),
    [
        ("printed_metrics", "print_run", "the training had ended when it was interrupted: unrolled evaluate run"),
        ("train", "combine", "interrupted; start it again with: unrolled train classify --data {data} {training}"),
    ],
)
def test_a_signal_that_cannot_be_raised_names_the_way_on(tmp_path, reviews, module, function, said):
    program = IN_A_WEAK_REFERENCE.format(module=module, function=function)
    words = ["train", "classify", "--data", str(reviews), *TRAINING]
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 143, done.stderr
    said = said.format(data=shlex.quote(str(reviews)), training=" ".join(TRAINING))
    assert done.stderr.splitlines()[-1] == f"unrolled: error: {said}"


@pytest.mark.parametrize("place", ["prepare_process", "visible"])
def test_a_signal_before_the_command_or_while_its_error_is_printed_has_a_line(place):
    program = f"""
import os, signal, unrolled.__main__ as m
m.install()
import unrolled.cli.main as main
whole = main.{place}
def replaced(*words):
    main.{place} = whole
    os.kill(os.getpid(), signal.SIGTERM)
    return whole(*words)
main.{place} = replaced
m.main()
"""
    done = subprocess.run([sys.executable, "-c", program, "evaluate", "nothing"], capture_output=True, text=True)
    said = "unrolled: error: interrupted; start it again with: unrolled evaluate nothing\n"
    assert (done.returncode, done.stderr) == (143, said)


def test_an_error_that_a_signal_has_become_is_told_as_the_signal(unrolled, monkeypatch):
    from unrolled.cli import convert

    def fails(*_):
        raise ImportError("numpy could not be imported")

    monkeypatch.setattr(convert, "read_checkpoint", fails)
    assert unrolled("convert", "a", "b").status == 70
    monkeypatch.setattr(interruption._State, "received", signal.SIGTERM)
    unrolled("convert", "a", "b").assert_refused(143, "interrupted; start it again with: unrolled convert a b")


def test_a_command_gives_no_advice_of_the_one_before_it(unrolled, reviews, tmp_path, monkeypatch):
    from unrolled.cli import convert

    def fails(*_):
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    assert unrolled("train", "classify", "--data", reviews, *TRAINING).status == 0
    assert interruption.advice(["x"]).endswith("unrolled evaluate run")  # the control: of the training
    monkeypatch.setattr(convert, "read_checkpoint", fails)
    unrolled("convert", "a", "b").assert_refused(130, "interrupted; start it again with: unrolled convert a b")


def test_nothing_large_is_imported_before_signals_are_handled():
    program = "import unrolled.__main__, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert not {"typer", "rich", "torch", "numpy", "unrolled.cli.main"} & set(done.stdout.split())


def test_a_signal_after_the_end_changes_nothing_of_it():
    program = (
        "import atexit, os, signal, unrolled.__main__ as m\n"
        "atexit.register(lambda: os.kill(os.getpid(), signal.SIGTERM))\nm.main()"
    )
    done = subprocess.run([sys.executable, "-c", program, "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
