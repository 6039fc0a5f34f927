"""A private PostgreSQL server on loopback, for tests; its files are gone when it stops."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.ports import free_port

USER, PASSWORD = "tester", "not-a-secret-9"


def program(name: str) -> Path | None:
    """A program of the server; Debian keeps them out of the path."""
    found = shutil.which(name)
    kept = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return Path(found) if found else next(iter(reversed(kept)), None)


def account() -> str | None:
    """Whom the server runs as: it refuses to run as root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)


@contextmanager
def server() -> Iterator[str]:
    """The address of a new, empty server, with its password, for SQLAlchemy and psycopg."""
    initdb, pg_ctl = program("initdb"), program("pg_ctl")
    assert initdb, "asked for only where it is installed"
    assert pg_ctl, "asked for only where it is installed"
    owner, port = account(), free_port()
    # Not below pytest's folder, which other accounts cannot enter.
    with tempfile.TemporaryDirectory(prefix="trajudge-pg-", dir="/tmp") as folder:
        (Path(folder) / "password").write_text(PASSWORD)
        if owner:
            shutil.chown(folder, owner)
            shutil.chown(Path(folder) / "password", owner)

        def run(*command: object) -> None:
            words = [str(word) for word in command]
            out = subprocess.DEVNULL  # a pipe would be kept open by the server
            subprocess.run(words, check=True, user=owner, cwd=folder, stdout=out, timeout=120)

        data = Path(folder) / "data"
        run(initdb, "-D", data, "-U", USER, "-A", "scram-sha-256", "--pwfile", "password", "-N")
        settings = f"-F -c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories="
        run(pg_ctl, "start", "-w", "-D", data, "-l", f"{folder}/log", "-o", settings)
        try:
            yield f"127.0.0.1:{port}/postgres"
        finally:
            run(pg_ctl, "stop", "-w", "-m", "immediate", "-D", data)
