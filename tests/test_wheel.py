"""The release as it is built (an sdist, a wheel from it) and installed among other packages of the
same names, and checkouts that hold no links."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conftest import missing

ROOT = Path(__file__).parents[1]
STRANGERS = ("judges", "rules")  # on the package index, and once the names of our folders
OWN = (
    *("prompts", "rules", "judges", "trajectories", "annotations", "environments", "proxy", "app"),
    "rewards",
    "robustness",
)
USER = """
from pathlib import Path

import trajudge as tj


async def mine(trajectory: tj.Trajectory, ask: tj.Model) -> tj.Verdict:
    reply = await ask([tj.Message(role="user", parts=(tj.Text(text=trajectory.goal),))])
    return tj.Verdict(success="yes" in reply.text)


async def cell() -> tj.Run:
    return await tj.ajudge("sample", mine, "gpt-4o", max_cost=5)


runs: list[tj.Trajectory] = tj.load()
reveal_type(tj.labels()[runs[0].key].success)
jury = tj.panel("simplified", mine, rule="majority")
judged = tj.judge(runs, jury, model="gpt-4o", out=Path("run"), samples=2, limit=5)
judged = judged + tj.judge("sample", "heuristic") + tj.read_run("run")
reveal_type(judged)
reveal_type(judged[0].success)
scores = tj.score(judged, tj.labels(), runs, by="agent")
reveal_type(scores)
reveal_type(scores.scores[0].precision)
reveal_type(scores.plot())
reveal_type(tj.compare([judged, judged]).differences)
decision = tj.select(judged, target_precision=0.8)
reveal_type(decision.best)
reveal_type(tj.accept(judged, decision).counts)
reveal_type(tj.audit(judged).n)
"""
REVEALED = (
    "bool | None",
    "trajudge.face.results.Run",
    "bool | None",
    "trajudge.face.results.Scores",
    "float | None",
    "matplotlib.axes._axes.Axes",
    "tuple[trajudge.eval.scoring.records.MetricDifference, ...]",
    "trajudge.eval.select.decision.CandidateResult | None",
    "dict[str, int]",
    "int",
)
# What the script "trajudge" does, of three commands.
COMMANDS = """
from trajudge.eval.cli import main

for words in (["score", "run"], ["report", "run", "--show", "5"], ["judges", "list"]):
    assert main(words) == 0, words
    print("=====")
"""
MISTAKES = """
import trajudge as tj

tj.score([3])
"""


def run(words: Sequence[object], folder: Path, **environment: str) -> str:
    done = subprocess.run(
        [*map(str, words)],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked sdist."""
    folder = tmp_path_factory.mktemp("sdist")
    run([sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder], ROOT)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    return next(path for path in folder.iterdir() if path.is_dir())


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is built from the sdist, as package indexes and distributions do."""
    folder = tmp_path_factory.mktemp("wheel")
    run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], source)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and the strangers; what they need is this one's."""
    folder = tmp_path_factory.mktemp("environment")
    run([sys.executable, "-m", "venv", "--without-pip", folder], folder)
    site = next(folder.glob("lib/python*/site-packages"))
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-compile",
        "--target",
        site,
    ]
    both = subprocess.run([*map(str, pip), wheel, *STRANGERS], capture_output=True, check=False)
    if both.returncode:
        run([*pip, wheel], folder)  # the wheel is ours to install, whatever the index says
        missing("index", "the packages judges and rules could not be installed")
    (site / "of_the_tests.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return folder / "bin" / "python"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's project with packages of its own."""
    for name in OWN:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('the project own')\n")
    return tmp_path


@pytest.mark.slow
def test_the_wheel_holds_one_package_and_one_forwarding_module(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
    assert {name.split("/")[0] for name in names} == {"trajudge", "eval"}
    assert [name for name in names if name.startswith("eval/")] == ["eval/judge.py"]
    assert "trajudge/py.typed" in names
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "trajudge").rglob("*")
             if path.is_file() and "__pycache__" not in path.parts}  # fmt: skip
    assert files == {name for name in names if name.startswith("trajudge/")}


@pytest.mark.slow
def test_a_checkout_without_links_runs_the_main_job(source: Path, tmp_path: Path) -> None:
    """Git with ``core.symlinks=false`` writes a file in place of each link; zip files do alike."""
    packed, checkout = tmp_path / "checkout.zip", tmp_path / "checkout"
    with zipfile.ZipFile(packed, "w") as archive:
        for path in source.rglob("*"):
            archive.write(path, path.relative_to(source))
        for room in ("annotations", "judges", "prompts", "trajectories"):
            archive.writestr(room, f"trajudge/{room}")
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(checkout)
    words = ["--judge", "heuristic", "--data", "sample", "--out", tmp_path / "run"]
    shown = run([sys.executable, "-m", "eval.judge", *words], checkout, PYTHONSAFEPATH="")
    assert "heuristic" in shown
    where = "import trajudge.judges.registry as it; print(it.__file__)"
    assert run([sys.executable, "-c", where], checkout).startswith(str(checkout))


@pytest.mark.slow
def test_the_users_command_runs_beside_strangers(python: Path, folder: Path) -> None:
    words = ["--judge", "heuristic", "--data", "sample", "--out", "run"]
    assert "heuristic" in run([python, "-m", "eval.judge", *words], folder)
    shown = run([python, "-c", COMMANDS], folder).split("=====\n")
    for word, text in zip(("heuristic", "report.html", "webjudge"), shown, strict=False):
        assert word in text
    assert len(shown) == 4


@pytest.mark.slow
def test_the_library_is_typed_for_its_users(python: Path, folder: Path) -> None:
    (folder / "mine.py").write_text(USER)
    (folder / "wrong.py").write_text(MISTAKES)
    mypy = [sys.executable, "-m", "mypy", "--strict", "--python-executable", python]
    checked = subprocess.run(
        [*map(str, mypy), "--cache-dir", folder / "cache", "mine.py", "wrong.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    assert tuple(re.findall(r'mine.py:.* Revealed type is "(.*)"', checked)) == REVEALED, checked
    errors = re.findall(r"^(.*):(\d+): error", checked, flags=re.M)
    assert errors == [("wrong.py", "4")], checked
