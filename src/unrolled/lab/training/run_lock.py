"""One writer a run: a lock on a run folder that ends with the process that holds it.

The lock is ``flock`` on a file in the folder, which NFS passes on to its server. So it follows a folder that is
renamed, and the file that a killed process leaves locks nothing. Where a file system has no locks at all, the note in
the file decides: a process that it names and that still runs is the writer. Readers take no lock.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import stat
import time
import weakref
from pathlib import Path
from typing import NamedTuple, NoReturn

from unrolled.errors import FileError, UsageError

__all__ = ["LOCK", "InUseError", "RunLock"]

LOCK = ".lock"
_HELD = {errno.EAGAIN, errno.EACCES}
_NO_LOCKS = {errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK}
_SETTLED = 0.2  # seconds after which two notes written at once are told apart
_PAUSE = 0.01
_MOST_NOTE = 1000


class InUseError(UsageError):
    """Another process, or another thread, writes the folder."""

    def __init__(self, message: str, folder: Path) -> None:
        super().__init__(message)
        self.folder = folder

    @property
    def in_use(self) -> bool:
        """Whether the folder is still being written."""
        try:
            RunLock.acquire(self.folder).release()
        except InUseError:
            return True
        except FileNotFoundError:
            pass
        return False


class _Note(NamedTuple):
    """What a writer says of itself in the lock's file."""

    host: str
    process: int
    started: int
    """When the process started, in clock ticks since the machine did; 0 if that is not known."""

    @classmethod
    def of_this_process(cls) -> _Note:
        return cls(socket.gethostname(), os.getpid(), _start_of(os.getpid()))

    @property
    def runs(self) -> bool:
        """Whether the process still runs, as far as can be told: one on another machine counts as running."""
        if self.host != socket.gethostname():
            return True
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return self.started == _start_of(self.process)


class RunLock:
    """The right to write a run folder; :meth:`acquire` gives it to one process, and to one thread of it."""

    def __init__(self, folder: Path, descriptor: int) -> None:
        self.folder = folder
        self._descriptor = descriptor
        status = folder.stat()
        self._identity = (status.st_dev, status.st_ino)
        _LIVE.add(self)

    @classmethod
    def acquire(cls, folder: Path, run: Path | None = None) -> RunLock:
        """Take the lock, without waiting.

        Args:
            folder: The folder to lock.
            run: The run folder that it will be, which errors name in its place.

        Raises:
            InUseError: If another process, or another thread, writes this run; it names host and process.
            FileError: If the folder cannot be written.
            FileNotFoundError: If there is no such folder (any more).
        """
        path = folder / LOCK
        while True:
            try:
                descriptor = _open(path)
            except FileNotFoundError:
                raise
            except OSError as error:
                raise FileError(f"{run or folder}: cannot be written: {error.strerror or error}") from None
            try:
                _lock(descriptor, folder, run or folder)
                if _same_file(descriptor, path):  # else its holder has removed it since it was opened
                    return cls(folder, descriptor)
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)

    @classmethod
    def acquire_new(cls, folder: Path, run: Path | None = None) -> RunLock:
        """Take the lock of a folder that is made if there is none; see :meth:`acquire`."""
        while True:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                return cls.acquire(folder, run)
            except FileNotFoundError:  # another process has renamed or removed it in between
                time.sleep(_PAUSE)
            except FileExistsError as error:  # or has removed it while mkdir looked what stands there
                if not _is_folder_or_gone(error.filename):
                    raise
                time.sleep(_PAUSE)

    def renamed(self, folder: Path) -> None:
        """Take note that the folder has another name now."""
        self.folder = folder

    def check(self) -> None:
        """Check, before something is written, that the folder is still the one that is locked.

        Raises:
            FileError: If it was moved, deleted or replaced.
        """
        try:
            status = self.folder.stat()
        except OSError:
            raise FileError(
                f"{self.folder} was moved or deleted while it was trained; if it was moved, go on with "
                "`unrolled resume` and its new path"
            ) from None
        if (status.st_dev, status.st_ino) != self._identity:
            raise FileError(
                f"{self.folder} was replaced by another folder while it was trained; this training has written "
                "nothing into it"
            )

    def release(self) -> None:
        """Give the lock back and remove its file."""
        if self._descriptor < 0:
            return
        try:
            path = self.folder / LOCK
            if _same_file(self._descriptor, path):
                path.unlink()
        except OSError:  # a folder that cannot be written any more: the file locks nothing
            pass
        finally:
            self._forget()

    def _forget(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)


_LIVE: weakref.WeakSet[RunLock] = weakref.WeakSet()


def _forget_all() -> None:
    """Close the descriptors in a forked child: otherwise the lock would last as long as the child."""
    for lock in list(_LIVE):
        if lock._descriptor >= 0:
            lock._forget()


os.register_at_fork(after_in_child=_forget_all)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except PermissionError:  # another user's killed training left the file in a folder that both may write
        if not os.access(path.parent, os.W_OK):
            raise
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _lock(descriptor: int, folder: Path, shown: Path) -> None:
    """Lock the file and write the note; errors call the folder ``shown``."""
    note = _Note.of_this_process()
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD:
            _refuse(folder, shown, _awaited_note(descriptor))
        if error.errno not in _NO_LOCKS:
            raise FileError(f"{shown}: cannot be locked: {error.strerror or error}") from None
        held = _read_note(descriptor)
        if held is not None and held.runs:
            _refuse(folder, shown, held, "; if it does not, remove " + str(folder / LOCK))
        _write_note(descriptor, note)
        time.sleep(_SETTLED)
        if (held := _read_note(descriptor)) != note:
            _refuse(folder, shown, held)
        return
    _write_note(descriptor, note)


def _refuse(folder: Path, shown: Path, note: _Note | None, else_do: str = "") -> NoReturn:
    writer = "another process" if note is None else f"process {note.process} on {note.host}"
    raise InUseError(f"{shown} is being written by {writer}: wait until it has ended, or stop it{else_do}", folder)


def _write_note(descriptor: int, note: _Note) -> None:
    """Say who holds the lock; on a full disk the lock holds without it."""
    content = json.dumps(note._asdict()).encode()
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, content, 0)
    except OSError:
        pass


def _awaited_note(descriptor: int) -> _Note | None:
    """Read the note of a lock that is held; who has just taken it may not have written it yet."""
    last = time.monotonic() + _SETTLED
    while (note := _read_note(descriptor)) is None and time.monotonic() < last:
        time.sleep(_SETTLED / 20)
    return note


def _read_note(descriptor: int) -> _Note | None:
    try:
        found = json.loads(os.pread(descriptor, _MOST_NOTE, 0))
        host = "".join(filter(str.isprintable, str(found["host"])))[:100]
        return _Note(host, int(found["process"]), int(found["started"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _is_folder_or_gone(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except FileNotFoundError:
        return True


def _same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _start_of(process: int) -> int:
    """Return when a process started, which tells it from a later one with its number; 0 outside Linux."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        return int(status.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0
