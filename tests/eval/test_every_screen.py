"""What every command of a run shows fits the terminal, whatever judges are called."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from wcwidth import wcswidth

from tests.screens import one_screen
from trajudge.eval.cli import main

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_folder")]

# A wide name, and one longer than any line.
LONG = "judge" + "-of-a-long-name" * 8
NAMES = ("法官の日本語判定器による長い名前の審査員", LONG)
JUDGE = """
from trajudge import Verdict
needs_model = False
async def judge(trajectory, ask):
    return Verdict(success=len(trajectory.steps) % 2 == {odd})
"""
OUT = ["--out", "OUT"]
SAMPLE = ["--data", "sample", "--limit", "40"]
COMMANDS = {
    "judge": ["judge", "--judge", "heuristic", *SAMPLE, *OUT],
    "judge --dry-run": ["judge", "--model", f"claude-{LONG}", *SAMPLE, "--dry-run"],
    "score": ["score", "RUNS"],
    "score --by agent": ["score", "RUNS", "--by", "agent"],
    "score --compare": ["score", "RUNS", "--compare", "benchmark"],
    "score --table": ["score", "RUNS", "--table", "3"],
    "select": ["select", "RUNS", "--target-precision", "0.8", *OUT],
    "accept": ["accept", "--judge", NAMES[0], "--threshold", "1", "--run", "RUN", *OUT],
    "audit": ["audit", "RUNS", *OUT],
    "score --ranks": ["score", "RUNS", "--ranks"],
    "report": ["report", "RUNS", "--show", "5", "--out", "OUT.html"],
    "score --checks": ["score", "RUNS", "--checks"],
    "label build": ["label", "build", "RUNS", "--budget", "20", *OUT],
    "judges list": ["judges", "list"],
    "judges fidelity": ["judges", "fidelity"],
    "data sources": ["data", "sources"],
}
WHOLE = {
    name: [*COMMANDS[name], "--full"]
    for name in ("judge", "score", "score --table", "select", "audit")
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Runs on the bundled sample of judges whose names fit no column."""
    folder = tmp_path_factory.mktemp("runs")
    made = []
    for odd, name in enumerate(NAMES):
        file, run = folder / f"{name}.py", folder / f"run-{odd}"
        file.write_text(JUDGE.format(odd=odd))
        assert main(["judge", "--judge", str(file), *SAMPLE, "--out", str(run)]) == 0
        made.append(str(run))
    return made


@pytest.fixture
def shown(
    runs: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[list[str], int], str]:
    """What a command shows on standard output; its folders have short names."""

    def show(words: list[str], width: int) -> str:
        monkeypatch.setenv("COLUMNS", str(width))
        capsys.readouterr()
        words = [word.replace("OUT", f"out-{width}") for word in words]
        words = [runs[0] if word == "RUN" else word for word in words]
        place = words.index("RUNS") if "RUNS" in words else None
        given = words if place is None else [*words[:place], *runs, *words[place + 1 :]]
        assert main(given) in (0, 1)
        return capsys.readouterr().out

    return show


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_ends_with_one_screen(name: str, shown: Callable[[list[str], int], str]) -> None:
    for width in (100, 80, 60):
        text = shown(COMMANDS[name], width)
        if width >= 80:
            one_screen(text, width)
        assert max(map(wcswidth, text.splitlines())) <= width, max(text.splitlines(), key=wcswidth)


@pytest.mark.parametrize("name", WHOLE)
def test_everything_is_as_wide_as_the_screen(
    name: str, shown: Callable[[list[str], int], str]
) -> None:
    for width in (100, 60):
        text = shown(WHOLE[name], width)
        wide = [line for line in text.splitlines() if wcswidth(line) > width]
        assert not wide
