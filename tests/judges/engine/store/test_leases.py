"""Who works on a key, told between real processes."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from trajudge.judges.engine.cache import GUARD, Claim, Leases
from trajudge.util.errors import UserError

ROOT = Path(__file__).parents[4]
OWNER = """
import os, signal, sys, time
from pathlib import Path
from trajudge.judges.engine.cache import Leases
mine = Leases(Path(sys.argv[1]), float(sys.argv[2]))
print(mine.claim(b"key").name, flush=True)
if sys.argv[3] != "wait":
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(float(sys.argv[3]))
    mine.release(b"key")
    print("released", flush=True)
time.sleep(60)
"""


@contextmanager
def owner(path: Path, seconds: float, then: str = "wait") -> Iterator[subprocess.Popen[str]]:
    """A process that has the lease on ``key``. It waits, or stops itself and, so many seconds after
    it wakes, gives the lease back."""
    words = [sys.executable, "-c", OWNER, str(path), str(seconds), then]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout and process.stdout.readline() == "OWN\n"
            yield process
        finally:
            process.kill()


def test_a_key_has_one_owner_until_it_is_given_back(tmp_path: Path) -> None:
    one, other = Leases(tmp_path / "leases"), Leases(tmp_path / "leases")
    assert one.claim(b"a") is Claim.OWN
    assert other.claim(b"a") is Claim.HELD and other.is_held(b"a")
    assert other.claim(b"b") is Claim.OWN
    other.release(b"a")  # not its own: nothing happens
    assert other.is_held(b"a")
    one.release(b"a")
    assert not other.is_held(b"a") and other.claim(b"a") is Claim.OWN
    other.close()
    assert one.claim(b"b") is Claim.OWN
    one.close()
    assert [path.name for path in (tmp_path / "leases").iterdir()] == [GUARD]


@pytest.mark.slow
def test_a_heartbeat_keeps_a_lease_and_death_frees_it_at_once(tmp_path: Path) -> None:
    mine = Leases(tmp_path / "leases")
    with owner(tmp_path / "leases", 0.4) as process:
        time.sleep(1.0)
        assert mine.claim(b"key") is Claim.HELD
        process.kill()
        process.wait()
        assert mine.claim(b"key") is Claim.TAKEN_OVER
    mine.close()


@pytest.mark.slow
def test_a_lease_without_a_heartbeat_expires(tmp_path: Path) -> None:
    mine = Leases(tmp_path / "leases")
    with owner(tmp_path / "leases", 0.6) as process:
        process.send_signal(signal.SIGSTOP)
        assert mine.claim(b"key") is Claim.HELD
        time.sleep(0.8)
        assert mine.claim(b"key") is Claim.TAKEN_OVER
    mine.close()


@pytest.mark.slow
def test_what_the_dead_left_is_cleaned_up(tmp_path: Path) -> None:
    with owner(tmp_path / "leases", 30.0):
        pass
    folder = tmp_path / "leases"
    left = {path.name for path in folder.iterdir()}
    assert len(left) == 3, "the guard, the owner's file and its lease"
    mine = Leases(folder)
    now = {path.name for path in folder.iterdir()}
    assert len(now) == 2 and now & left == {GUARD}
    mine.close()


@pytest.mark.slow
@pytest.mark.parametrize("after", ["0", "0.5"], ids=["at-once", "after-heartbeats"])
def test_who_was_silent_and_wakes_takes_no_lease_from_its_new_owner(
    tmp_path: Path, after: str
) -> None:
    mine, third = Leases(tmp_path / "leases"), Leases(tmp_path / "leases")
    with owner(tmp_path / "leases", 0.6, then=after) as process:
        time.sleep(1.0)  # it has stopped itself
        assert mine.claim(b"key") is Claim.TAKEN_OVER
        process.send_signal(signal.SIGCONT)
        assert process.stdout and process.stdout.readline() == "released\n"
        assert third.claim(b"key") is Claim.HELD
    mine.close()
    third.close()


def test_a_claim_after_long_idleness_is_held(tmp_path: Path) -> None:
    one, other = Leases(tmp_path / "leases", 0.1), Leases(tmp_path / "leases")
    time.sleep(0.15)
    assert one.claim(b"a") is Claim.OWN
    assert other.claim(b"a") is Claim.HELD
    one.close()
    other.close()


def test_of_many_threads_one_has_the_key(tmp_path: Path) -> None:
    with owner(tmp_path / "leases", 30.0):
        pass
    all_leases = [Leases(tmp_path / "leases", 0.2) for _ in range(8)]
    dead = all_leases.pop()
    assert dead.claim(b"a") is Claim.OWN
    dead._closed.set()
    time.sleep(0.3)  # its lease has expired now, for all others at once
    with ThreadPoolExecutor(len(all_leases)) as threads:
        claims = list(threads.map(lambda leases: leases.claim(b"a"), all_leases))
    assert sorted(claim.name for claim in claims) == ["HELD"] * 6 + ["TAKEN_OVER"]
    for leases in (*all_leases, dead):
        leases.close()


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "leases").write_bytes(b"no folder")
    with pytest.raises(UserError, match="leases cannot be written"):
        Leases(tmp_path / "leases")
