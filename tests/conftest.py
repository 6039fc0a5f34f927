"""Real parts for tests: real data and a real browser, or a skip with its reason."""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.internal.conjecture import providers

from tests.samples import FUZZING, examples
from tests.screens import one_screen
from trajudge.util.machine import CHROMIUMS, installed_chromium

# Half of what collecting costs is rewriting assertions, and every command that a test starts would
# compile its modules anew: bytecode is kept, whatever the shell says.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell that starts the tests in the background has them ignore Ctrl-C, and whatever they start:
# also a command that a test sends one.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Workers outnumber cores already: threads of theirs that multiply small matrices only wait for
# each other.
for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# A loaded machine, or a slow library, is no failure. The search is the same every
# time, so that a commit passes or fails always; ``make fuzz`` searches anew (``tests/fuzz.py``).
settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    max_examples=examples(),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "fuzz",
    deadline=None,
    database=DirectoryBasedExampleDatabase(os.environ.get("TRAJUDGE_FUZZ", ".fuzz")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fuzz" if FUZZING else "repeatable")
if not FUZZING:
    # Hypothesis also tries the constants of every module of ours that is imported by then. What is
    # imported depends on what a worker ran before, and the search has to be the same every time.
    vars(providers)["_get_local_constants"] = lambda: providers._local_constants

REQUIRED = {part.strip() for part in os.environ.get("TRAJUDGE_REQUIRE", "").split(",")} - {""}


TESTS = Path(__file__).parent


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """More workers than cores for ``-n auto``: a test waits a third of its time, for a browser or
    a server."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    cores = os.cpu_count() or 1
    return cores + max(2, cores // 2)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Where workers collect all tests, each begins to import them at a different place: what one
    has compiled the others find."""
    worker: dict[str, object] | None = getattr(session.config, "workerinput", None)
    if worker is None or session.config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    gc.disable()  # until ``pytest_collection``
    modules = sorted(TESTS.rglob("test_*.py"))
    start = len(modules) * int(str(worker["workerid"])[2:]) // int(str(worker["workercount"]))
    for path in modules[start:] + modules[:start]:
        with suppress(Exception, pytest.skip.Exception):  # collecting says what is wrong
            importlib.import_module(".".join(path.relative_to(TESTS.parent).with_suffix("").parts))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without looking for garbage: what is imported and collected stays to the end, and a
    search through it is repeated ever more often. Later searches pass it over, and are rarer than
    by default: what thousands of tests hold in common is searched with each."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(5_000)  # a higher one would be taken for the user's own choice
        gc.enable()


def missing(what: str, reason: str) -> NoReturn:
    """Skip, or fail where ``TRAJUDGE_REQUIRE`` says that this machine must have it."""
    if what in REQUIRED:
        pytest.fail(f"TRAJUDGE_REQUIRE={what}: {reason}", pytrace=False)
    pytest.skip(reason)


@pytest.fixture
def anyio_backend() -> str:
    """Tests marked ``anyio`` run on asyncio, as the engine does."""
    return "asyncio"


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real files that ``TRAJUDGE_REAL_DATA`` names."""
    folder = os.environ.get("TRAJUDGE_REAL_DATA")
    if not folder or not Path(folder).is_dir():
        missing("real-data", "TRAJUDGE_REAL_DATA names no folder with the real files")
    assert folder
    return Path(folder).resolve()


@pytest.fixture(scope="session")
def arb(real_data: Path) -> Path:
    """AgentRewardBench's folder among the real files."""
    return real_data / "agentrewardbench"


@pytest.fixture(scope="session")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What commands keep between runs, for tests that do not share the user's."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The columns of the terminal: few, since what fits them fits more (``test_every_screen``)."""
    columns: int = getattr(request, "param", 80)
    monkeypatch.setenv("COLUMNS", str(columns))
    return columns


@pytest.fixture
def screen_lines(width: int, capsys: pytest.CaptureFixture[str]) -> Callable[[], list[str]]:
    """The lines shown by the time of the call, which must fit one screen."""

    def shown() -> list[str]:
        captured = capsys.readouterr()
        return one_screen(captured.out + captured.err, width)

    return shown


@pytest.fixture(scope="session")
def chromium() -> Path:
    """The system's chromium, the shell before all others."""
    if found := installed_chromium():
        return Path(found)
    missing("browser", "no chromium here: install it with  apt-get install chromium-headless-shell")


@pytest.fixture(scope="session")
def whole_chromium() -> Path:
    """A chromium with windows, which keeps the pages that one leaves; the shell keeps none."""
    for name in CHROMIUMS[1:]:
        if found := shutil.which(name):
            return Path(found)
    missing("browser", "no chromium with windows here: install it with  apt-get install chromium")
