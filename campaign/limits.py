"""Full disks and limits of a process: one line, and the run goes on once there is room."""

from __future__ import annotations

import os
import random
import resource
import subprocess
from pathlib import Path

from killing import Texts, go_on, recorded, same

from cases import SKIPPED, Part, code_of, fork


def prepare(place: Path):
    """A training without limits."""
    place.mkdir(parents=True, exist_ok=True)
    recorded(Texts, place / "run")
    return place / "run"


def full(number: int, draw: random.Random, place: Path, reference: Path) -> list[str]:
    """Train on a file system of some kilobytes, then make room."""
    disk = place / "disk"
    disk.mkdir()
    size = draw.randrange(20, 140)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", disk], capture_output=True).returncode:
        return [SKIPPED + "needs leave to mount a tmpfs"]
    try:
        folder = disk / "run"
        code = code_of(fork(lambda: go_on(Texts, folder)))
        if code not in (0, 3):
            return [f"{size} kB: ended with {code}"]
        subprocess.run(["mount", "-o", "remount,size=4M", disk], check=True, capture_output=True)
        if (code := code_of(fork(lambda: go_on(Texts, folder)))) != 0:
            return [f"{size} kB: going on ended with {code}"]
        left = [path.name for path in folder.rglob("*.tmp")] + [path.name for path in disk.iterdir() if path != folder]
        differing = [name for name, equal in same(folder, reference).items() if not equal]
        return [f"{size} kB: {each} differs" for each in differing] + [f"{size} kB: left {left}"] * bool(left)
    finally:
        subprocess.run(["umount", disk], check=False)


def limited(number: int, draw: random.Random, place: Path, reference: Path) -> list[str]:
    """Train with a limit on the size of files or on their number, then without."""
    folder = place / "run"
    kind = (resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE)[number % 2]
    most = (
        draw.randrange(100, 30_000)
        if kind == resource.RLIMIT_FSIZE
        else len(os.listdir("/proc/self/fd")) + draw.randrange(6)
    )

    def under() -> None:
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(kind, (most, most))
        go_on(Texts, folder)

    label = f"{'file size' if kind == resource.RLIMIT_FSIZE else 'open files'} {most}"
    code = code_of(fork(under))
    if code not in (0, 3):
        return [f"{label}: ended with {code}"]
    if (code := code_of(fork(lambda: go_on(Texts, folder)))) != 0:
        return [f"{label}: going on ended with {code}"]
    return [f"{label}: {name} differs" for name, equal in same(folder, reference).items() if not equal]


PARTS = (
    Part("full disks (tmpfs)", "one line; with room, the training goes on to the same end", 30, full, prepare),
    Part("limits of a process", "the same for the size and the number of files", 30, limited, prepare),
)
