"""The machine: addresses, cache folder, Chromium, threads, worker processes, environments of
pinned packages."""

from __future__ import annotations

import array
import fcntl
import gc
import hashlib
import ipaddress
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from trajudge.util.errors import UserError
from trajudge.util.files import read_regular

if TYPE_CHECKING:
    import asyncio

_SIOCGIFCONF = 0x8912  # Linux: all IPv4 addresses, those with the same interface included

_IFREQ_BYTES = 16 + 8 + 2 * struct.calcsize("L")  # a name and a union

_ROOM = 256  # of addresses

_UNROUTED = ("192.0.2.1", "2001:db8::1")  # of documentation


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


_WAITING = 1_024  # connections


def listen(host: str, port: int, danger: str = "") -> socket.socket:
    """Listen on an address. Raises UserError for one in use, and without a token for one that
    other machines reach, whose users could do what ``danger`` describes."""
    if danger and not is_loopback(host):
        raise UserError(
            f"--host {host} can be reached by others, who could {danger}: give --token-file FILE"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_WAITING)
    except OSError as error:
        why = error.strerror or str(error)
        raise UserError(f"--port {port}: {host} cannot be listened on ({why})") from error


def own_addresses(family: socket.AddressFamily) -> list[str]:
    """List the addresses of all interfaces except loopback and link-local ones, without
    repetitions: on Linux from the system, elsewhere those of the host's name and of the route to
    the internet."""
    addresses = _of_ipv4_interfaces() if family == socket.AF_INET else _of_ipv6_interfaces()
    with suppress(OSError):
        entries = socket.getaddrinfo(socket.gethostname(), None, family)
        addresses += [str(entry[4][0]) for entry in entries]
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as routed:
        routed.connect((_UNROUTED[family == socket.AF_INET6], 9))  # sends nothing
        addresses.append(str(routed.getsockname()[0]))
    parsed = [ipaddress.ip_address(one) for one in dict.fromkeys(addresses) if "%" not in one]
    return [
        str(one)
        for one in parsed
        if not (one.is_loopback or one.is_link_local or one.is_unspecified)
    ]


def own_names() -> list[str]:
    """List the names of this machine except localhost: the host name, its full form, and that in
    the local network (mDNS)."""
    name = socket.gethostname().rstrip(".").lower()
    names = dict.fromkeys([name, socket.getfqdn(name).rstrip(".").lower()])
    if "." not in name:
        names[f"{name}.local"] = None
    return [name for name in names if name and not name.startswith("localhost")]


def _of_ipv4_interfaces() -> list[str]:
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as query:
        room = array.array("B", bytes(_ROOM * _IFREQ_BYTES))
        where, size = room.buffer_info()
        filled = fcntl.ioctl(query, _SIOCGIFCONF, struct.pack("iL", size, where))
        used = room.tobytes()[: struct.unpack("iL", filled)[0]]
        starts = range(0, len(used), _IFREQ_BYTES)
        return [socket.inet_ntoa(used[start + 20 : start + 24]) for start in starts]
    return []


def _of_ipv6_interfaces() -> list[str]:
    with suppress(OSError):
        lines = read_regular(Path("/proc/net/if_inet6")).decode().splitlines()
        return [str(ipaddress.IPv6Address(bytes.fromhex(line.split()[0]))) for line in lines]
    return []


def cache_folder() -> Path:
    """Return ``$XDG_CACHE_HOME/trajudge``, or ``~/.cache/trajudge``. Raises RuntimeError for a user
    without a home."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "trajudge"


def kept_folder(name: str) -> Path | None:
    """Return the folder ``name`` of the user's cache, None for a user without a home: then nothing
    is kept."""
    try:
        return cache_folder() / name
    except RuntimeError:
        return None


# The shell is the same engine without windows, and takes less CPU.
CHROMIUMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def installed_chromium() -> str | None:
    """Return the path of the first of ``CHROMIUMS`` on the PATH, or None."""
    paths = map(shutil.which, CHROMIUMS)
    return next((path for path in paths if path is not None), None)


def stop_event() -> asyncio.Event:
    """Return an event that Ctrl-C and SIGTERM set instead of ending the running loop."""
    import asyncio  # noqa: PLC0415 - every command imports this module, few wait

    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    return stop


LIMIT = "OPENBLAS_NUM_THREADS"

_limited = set[str]()


def limit_threads() -> None:
    """Let NumPy and SciPy start no threads in this process, unless the user has set their
    number."""
    if LIMIT not in os.environ:
        os.environ[LIMIT] = "1"
        _limited.add(LIMIT)


def users_environment() -> Mapping[str, str]:
    """Return the environment as the user set it, for the user's programs."""
    return {name: value for name, value in os.environ.items() if name not in _limited}


T = TypeVar("T")

R = TypeVar("R")

_AHEAD = 4  # items submitted per worker before the first is done


def follow_parent() -> None:
    """Set up a worker process. Only the parent handles Ctrl-C: the worker finishes its current
    job and, if the parent is gone, ends."""
    os.setpgrp()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        Thread(target=_end_with, args=([parent.sentinel],), daemon=True).start()


def _end_with(sentinels: Iterable[int]) -> None:
    wait(list(sentinels))
    os._exit(1)


@contextmanager
def cancelled(pool: Executor, halt: Callable[[], None] = lambda: None) -> Iterator[Executor]:
    """Open the pool; on an exception pending jobs are cancelled, and ``halt`` is called before
    the running ones are awaited."""
    try:
        yield pool
    except BaseException:
        halt()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def worked_on(work: Callable[[T], R], items: Iterable[T], workers: int) -> Iterator[R]:
    """Yield the results of ``work`` on the items, in order: in this process with one worker, else
    in so many processes, while this one creates the next items.

    Raises UserError if a process dies.
    """
    if workers == 1:
        yield from map(work, items)
        return
    waiting: deque[Future[R]] = deque()
    with cancelled(ProcessPoolExecutor(workers, get_context("spawn"), follow_parent)) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > _AHEAD * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool as error:
            raise UserError(
                "a worker process ended of a sudden: run it again, with fewer --workers if the "
                "memory is short"
            ) from error


class NoEnvironment(Exception):
    """An environment could not be created; the message has the fix."""


class PinnedPackage(NamedTuple):
    """A package with its dependencies, pinned in ``pins``, a requirements file of pip.

    ``module`` is importable by an interpreter that has the package. ``variable`` is an environment
    variable for such an interpreter; then none is created.
    """

    name: str
    pins: Path
    module: str
    variable: str

    @property
    def folder(self) -> Path:
        """The environment's folder, which depends on the pin file and on Python's version."""
        text = read_regular(self.pins) + sys.version.encode()
        return cache_folder() / f"{self.name}-{hashlib.sha256(text).hexdigest()[:16]}"

    @property
    def made(self) -> bool:
        """Whether an interpreter exists already: ``python`` returns at once."""
        return bool(os.environ.get(self.variable)) or (self.folder / "complete").exists()

    def python(self, interpreter: str | None = None) -> Path:
        """Return an interpreter that has the package: ``interpreter``, the variable's, or one of an
        own environment.

        Raises NoEnvironment.
        """
        if named := interpreter or os.environ.get(self.variable):
            if not _imports(Path(named), self.module):
                raise NoEnvironment(f"{named} cannot import {self.module}: name another one")
            return Path(named)
        folder = self.folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        with folder.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / "complete").exists():
                self._install(folder)
                (folder / "complete").touch()
        return folder / "bin" / "python"

    def _install(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        # Few of the modules are ever imported, and Python compiles those on import.
        words = ["--quiet", "--no-compile", "--no-deps", "--retries", "1", "--timeout", "15"]
        make: list[str | Path] = [sys.executable, "-m", "venv", folder]
        pip: list[str | Path] = [folder / "bin" / "python", "-m", "pip"]
        if find_spec("pip"):  # an own one takes longer to install than most of the packages
            make.append("--without-pip")
            pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python"]
        commands = (make, [*pip, "install", *words, "-r", self.pins])
        for command in commands:
            ran = subprocess.run(  # noqa: S603 - words of ours
                command, capture_output=True, text=True, check=False
            )
            if ran.returncode:
                last = (ran.stderr.strip().splitlines() or ["no message"])[-1][:200]
                raise NoEnvironment(
                    f"{self.pins.name} could not be installed ({last}): connect to a package "
                    f"index, or name an environment that has {self.name} with "
                    f"{self.variable}=PYTHON"
                )


def _imports(python: Path, module: str) -> bool:
    try:
        tried = subprocess.run(  # noqa: S603 - an interpreter that the user names
            [python, "-c", f"import {module}"], capture_output=True, check=False
        )
    except OSError:
        return False
    return tried.returncode == 0


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause the garbage collector, which would traverse all records repeatedly: a fifth of the
    time. Reference counting still frees memory."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
