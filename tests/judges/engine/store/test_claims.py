"""Who asks a request, told between real processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from trajudge.judges.engine.cache import GUARD, Claims
from trajudge.util.errors import UserError

ROOT = Path(__file__).parents[4]
OWNER = """
import sys, time
from pathlib import Path
from trajudge.judges.engine.cache import Claims
mine = Claims(Path(sys.argv[1]))
print(mine.claim("a1"), flush=True)
time.sleep(60)
"""


@contextmanager
def owner(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has claimed ``a1``."""
    words = [sys.executable, "-c", OWNER, str(path)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout and process.stdout.readline() == "True\n"
            yield process
        finally:
            process.kill()


def test_a_request_has_one_owner_until_it_is_given_back(tmp_path: Path) -> None:
    one, other = Claims(tmp_path / "claims"), Claims(tmp_path / "claims")
    assert one.claim("a1")
    assert not other.claim("a1") and other.is_claimed("a1")
    assert other.claim("b2")
    other.release("a1")  # not its own: nothing happens
    assert other.is_claimed("a1")
    one.release("a1")
    assert not other.is_claimed("a1") and other.claim("a1")
    other.close()
    assert one.claim("b2")
    one.close()
    assert [path.name for path in (tmp_path / "claims").iterdir()] == [GUARD]


@pytest.mark.slow
def test_death_frees_a_claim_at_once(tmp_path: Path) -> None:
    mine = Claims(tmp_path / "claims")
    with owner(tmp_path / "claims") as process:
        assert not mine.claim("a1")
        process.kill()
        process.wait()
        assert not mine.is_claimed("a1")
        assert mine.claim("a1")
    mine.close()


@pytest.mark.slow
def test_what_the_dead_left_is_cleaned_up(tmp_path: Path) -> None:
    folder = tmp_path / "claims"
    with owner(folder):
        pass
    assert len([*folder.iterdir()]) == 3, "the guard, the owner's file and its claim"
    mine = Claims(folder)
    assert len([*folder.iterdir()]) == 2
    mine.close()


@pytest.mark.slow
def test_of_many_threads_one_takes_over_from_the_dead(tmp_path: Path) -> None:
    folder = tmp_path / "claims"
    everyone = [Claims(folder) for _ in range(8)]
    with owner(folder):
        pass
    with ThreadPoolExecutor(len(everyone)) as threads:
        claimed = list(threads.map(lambda claims: claims.claim("a1"), everyone))
    again = [claims.claim("a1") for claims in everyone if not any(claimed)]
    assert sum(claimed) + sum(again) == 1
    for claims in everyone:
        claims.close()


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "claims").write_bytes(b"no folder")
    with pytest.raises(UserError, match="claims cannot be written"):
        Claims(tmp_path / "claims")
