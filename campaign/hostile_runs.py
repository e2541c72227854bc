"""Run folders and weights that were damaged, edited or made to attack who opens them."""

from __future__ import annotations

import json
import os
import pickle
import random
import resource
import shutil
from hashlib import sha256
from pathlib import Path

from safetensors.torch import load, save

from cases import SMALL, Part, command, faults_of, inside, write_reviews

FILES = (
    "config.json",
    "task.json",
    "data.json",
    "metrics.json",
    "weights.safetensors",
    "log.jsonl",
    "README.md",
    "log.csv",
)
CANARY = "canary"


class Bomb:
    """A pickle that would write a file."""

    def __reduce__(self):
        return os.system, (f"touch {CANARY}",)


def prepare(place: Path):
    """Train a run, and another one that is not finished; keep what commands say of them."""
    place.mkdir(parents=True, exist_ok=True)
    write_reviews(place / "reviews.tsv")
    with inside(place):
        said = command("train", "classify", "--data", "reviews.tsv", *SMALL, "--out", "whole", "--log-every", "1")
        assert said.code == 0, said.err
        shutil.copytree("whole", "half")
        for name in ("metrics.json", "weights.safetensors", "README.md"):
            Path("half", name).unlink()
        told = {words: command(*words).out for words in questions("whole")}
    return place, told


def questions(run: str) -> list[tuple[str, ...]]:
    """What is asked of a run folder."""
    return [("evaluate", run), ("explain", run, "text 3 is good")]


def edited(value, draw: random.Random, depth: int = 0):
    """Change one value of a JSON object, somewhere."""
    odd = [
        None,
        -1,
        0,
        10**9,
        10**30,
        1e308,
        "",
        "../../etc/passwd",
        "os.system",
        [],
        {},
        True,
        "\x1b[2J",
        [[]],
        "a" * 10**5,
    ]
    if isinstance(value, dict) and value and (depth < 1 or draw.random() < 0.7):
        key = draw.choice(sorted(value))
        if draw.random() < 0.15:
            return {name: each for name, each in value.items() if name != key}
        return {**value, key: edited(value[key], draw, depth + 1)}
    if isinstance(value, list) and value and draw.random() < 0.5:
        place = draw.randrange(len(value))
        return [*value[:place], edited(value[place], draw, depth + 1), *value[place + 1 :]]
    return draw.choice(odd)


def attack_checkpoint(run: Path, draw: random.Random) -> str:
    """Change a checkpoint, and give it the name that its new content asks for."""
    path = max((run / "checkpoints").glob("step-*"))
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    record, tensors = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["training"]), load(content)
    if draw.random() < 0.6:
        record = edited(record, draw)
    else:
        name = draw.choice(sorted(tensors))
        value = tensors.pop(name)
        if draw.random() < 0.6:
            tensors[name] = draw.choice(
                (value.flatten()[:0], value.double() * 1e300, value.reshape(-1)[:1], value.flatten())
            )
    content = save({name: each.contiguous() for name, each in tensors.items()}, {"training": json.dumps(record)})
    path.unlink()
    (path.parent / f"{path.name[:14]}-{sha256(content).hexdigest()[:16]}.safetensors").write_bytes(content)
    for other in sorted((run / "checkpoints").glob("step-*"))[:-1]:
        other.unlink()
    return "edit checkpoint"


def attack(run: Path, draw: random.Random) -> str:
    """Damage a run folder in one way, and name it."""
    name = draw.choice(FILES)
    path = run / name
    if not path.exists():
        path = run / "config.json"
    content = path.read_bytes()
    ways = [
        "flip",
        "flip",
        "cut",
        "remove",
        "empty",
        "folder",
        "link",
        "loop",
        "random",
        "swap",
        "deep",
        "pickle",
        "edit",
        "edit",
        "edit",
    ]
    way = draw.choice(ways)
    if way == "flip":
        changed = bytearray(content)
        for place in draw.sample(range(len(content)), min(2, len(content))):
            changed[place] ^= 1 << draw.randrange(8)
        path.write_bytes(changed)
    elif way == "cut":
        path.write_bytes(content[: draw.randrange(len(content))])
    elif way == "random":
        path.write_bytes(draw.randbytes(500))
    elif way == "swap":
        path.write_bytes((run / draw.choice(("config.json", "task.json", "log.csv"))).read_bytes())
    elif way == "deep":
        path.write_bytes(b'{"a": ' + b"[" * 100_000)
    elif way == "pickle":
        path.write_bytes(pickle.dumps(Bomb()))
    elif way == "edit":
        path = run / draw.choice(("config.json", "task.json", "metrics.json", "data.json"))
        if path.exists():
            record = edited(json.loads(path.read_text()), draw)
            if isinstance(record, dict):
                record["checksum"] = None  # as somebody would who attacks on purpose
            path.write_text(json.dumps(record))
    else:
        path.unlink()
        if way == "empty":
            path.touch()
        elif way == "folder":
            path.mkdir()
        elif way == "link":
            path.symlink_to("/proc/self/environ")
        elif way == "loop":
            path.symlink_to(path.name)
    return f"{way} {path.name}"


def run(number: int, draw: random.Random, place: Path, shared) -> list[str]:
    """Open a damaged run with every command; whatever opens says what the sound run says."""
    home, told = shared
    kind = "half" if number % 3 == 2 else "whole"
    shutil.copytree(home / kind, place / kind)
    shutil.copy(home / "reviews.tsv", place)
    for path in place.rglob("config.json"):
        path.chmod(0o644)
    if kind == "half" and draw.random() < 0.5:
        attacked = attack_checkpoint(place / kind, draw)
    else:
        attacked = attack(place / kind, draw)
    resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, 8 * 2**30))
    resource.setrlimit(resource.RLIMIT_CPU, (100, 110))
    faults = []
    with inside(place):
        asked = [*questions(kind), ("resume", kind)]
        for words in asked:
            said = command(*words)
            faults += [f"{words[0]}: {fault}" for fault in faults_of(said)]
            sound = told.get((words[0], "whole", *words[2:]))
            silent = said.code == 0 and not said.err.strip() and "edit" not in attacked
            differs = sound is not None and said.out.replace(str(place), str(home)) != sound
            unread = attacked.endswith(("log.csv", "README.md", "log.jsonl"))
            if kind == "whole" and silent and differs and not unread:
                faults.append(f"{words[0]} says something else without a word: {said.out[:150]!r}")
        if list(Path().rglob(CANARY)):
            faults.append("a pickle was run")
    return [f"{kind}, {attacked}: {fault}" for fault in faults]


PARTS = (Part("hostile run folders and weights", "one line, or the same answer; nothing is run", 150, run, prepare),)
