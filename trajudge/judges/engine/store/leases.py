"""Single flight across processes: who works on a key has a lease on it, a file named after the key.

That file is a hard link to one that its owner keeps locked, and whose time of change the owner's
heartbeat sets ahead. A look at the key therefore tells whether its owner lives and is not silent,
and a claim is a single system call. A lease expires without the heartbeat; of an owner that died on
this machine the others know at once. Nothing here must outlive a loss of power.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from threading import Event, Lock, Thread

from trajudge.judges.engine.store.sqlite_files import explained
from trajudge.trajectories.util.file_lock import is_locked, lock, remove

LEASE_SECONDS = 30.0
BEATS = 4  # heartbeats in the time of a lease
GUARD = "guard"  # the file that is locked while expired leases change hands


class Claim(Enum):
    """Outcome of a claim."""

    HELD = "another process works on it"
    OWN = "nobody did"
    TAKEN_OVER = "its owner died or fell silent"


class Leases:
    """Leases in the folder at ``path``, as one owner among those that share it.

    ``seconds`` is how long an owner may be silent. Raises UserError if the folder cannot be used.
    """

    def __init__(self, path: Path, seconds: float = LEASE_SECONDS) -> None:
        self.path = path
        self.seconds = seconds
        self._claimed = set[str]()
        self._closed = Event()
        self._turn = Lock()
        self._heart: Thread | None = None
        try:
            path.mkdir(exist_ok=True)
            self._folder = os.open(path, os.O_RDONLY)
            self._guard = os.open(path / GUARD, os.O_RDWR | os.O_CREAT, 0o644)
            self._clean_up()
            self._file_name, self._alive = self._sign_in()
            self._inode = os.fstat(self._alive).st_ino
            self._until = self._prolong()
        except OSError as error:
            raise explained(error, path) from error

    @property
    def count(self) -> int:
        """How many leases this owner has."""
        return len(self._claimed)

    def claim(self, key: bytes) -> Claim:
        """Take the lease on a key if nobody has it. Microseconds; raises UserError."""
        name = key.hex()
        try:
            if self._is_silent():
                self._beat()
            if self._link(name):
                self._keep_alive()
                return Claim.OWN
            if not self._is_held(name) and self._take_over(name):
                self._keep_alive()
                return Claim.TAKEN_OVER
        except OSError as error:
            raise explained(error, self.path) from error
        return Claim.HELD

    def is_held(self, key: bytes) -> bool:
        """Tell whether a living process has the lease. Raises UserError."""
        try:
            return self._is_held(key.hex())
        except OSError as error:
            raise explained(error, self.path) from error

    def release(self, key: bytes) -> None:
        """Give a lease back, if it is this owner's."""
        with suppress(OSError):  # ``close`` tries again
            if self._is_silent():
                # Another may have taken it over, and is not to lose it now.
                with self._guarded():
                    self._unlink(key.hex())
            elif (name := key.hex()) in self._claimed:  # nobody takes over from one that is heard
                os.unlink(name, dir_fd=self._folder)
                self._claimed.discard(name)

    def close(self) -> None:
        """Give all leases back."""
        self._closed.set()
        if self._heart is not None:
            self._heart.join()
        with suppress(OSError), self._guarded():
            for name in tuple(self._claimed):
                self._unlink(name)
        with suppress(OSError):
            remove(self.path / self._file_name, self._alive)
        os.close(self._guard)
        os.close(self._folder)

    def _clean_up(self) -> None:
        """Remove what dead owners left behind, their leases included."""
        with self._guarded():
            for path in tuple(self.path.iterdir()):
                descriptor = None if path.name == GUARD else lock(path, create=False)
                if descriptor is not None:
                    remove(path, descriptor)

    def _sign_in(self) -> tuple[str, int]:
        """Make the file that this owner keeps locked, and return its name and descriptor."""
        while True:
            name = f"{os.getpid()}-{secrets.token_hex(4)}.lock"
            descriptor = lock(self.path / name)
            if descriptor is not None:
                return name, descriptor

    def _link(self, name: str) -> bool:
        """Make the lease of that name this owner's; False if somebody has it."""
        with self._turn:
            try:
                self._link_as(name)
            except FileExistsError:
                return False
            self._claimed.add(name)
        return True

    def _unlink(self, name: str) -> None:
        """Remove the lease of that name, if it is this owner's."""
        if self._is_mine(name):
            os.unlink(name, dir_fd=self._folder)
        self._claimed.discard(name)

    def _is_mine(self, name: str) -> bool:
        with suppress(FileNotFoundError):
            return os.stat(name, dir_fd=self._folder).st_ino == self._inode
        return False

    def _is_held(self, name: str) -> bool:
        try:
            expires = os.stat(name, dir_fd=self._folder).st_mtime
        except FileNotFoundError:
            return False
        return expires > time.time() and is_locked(self.path / name)

    def _take_over(self, name: str) -> bool:
        """Put this owner in the place of a dead or silent one; False if another did, or if the
        lease is free."""
        with self._guarded():
            if self._is_held(name) or not (self.path / name).exists():
                return False
            mine = f"{name}-{self._file_name}"
            with suppress(FileExistsError):
                self._link_as(mine)
            os.replace(mine, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            self._claimed.add(name)
        return True

    def _link_as(self, name: str) -> None:
        folder = self._folder
        os.link(self._file_name, name, src_dir_fd=folder, dst_dir_fd=folder)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Keep others from taking a lease over in the meantime. Takes microseconds."""
        with self._turn:
            fcntl.flock(self._guard, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._guard, fcntl.LOCK_UN)

    def _is_silent(self) -> bool:
        """Tell whether the leases expire before long, or did: heartbeats are missing."""
        return time.time() > self._until - self.seconds / BEATS

    def _keep_alive(self) -> None:
        if self._heart is None:
            self._heart = Thread(target=self._beats, name="leases", daemon=True)
            self._heart.start()

    def _beats(self) -> None:
        """Prolong the leases in a thread: the event loop may be busy for long."""
        while not self._closed.wait(self.seconds / BEATS):
            with suppress(OSError):  # the next beat may succeed; until then nothing is lost
                self._beat()

    def _beat(self) -> None:
        """Prolong the leases. After a silence, those that others have taken over are given up
        before this owner counts as heard: ``release`` then trusts that its leases are its own."""
        end = self._until
        until = self._prolong()
        if time.time() <= end:
            self._until = until
            return
        with self._guarded():
            for name in tuple(self._claimed):
                if not self._is_mine(name):
                    self._claimed.discard(name)
            self._until = self._prolong()

    def _prolong(self) -> float:
        """Set the end of all leases of this owner, and return it."""
        until = time.time() + self.seconds
        os.utime(self._alive, (until, until))
        return until
