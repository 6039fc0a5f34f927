"""The app tells what a run paid in the words and figures of the command's first screen."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest

from tests.app.serving import served
from tests.eval.judge_command import model
from tests.eval.test_paid_beside import RubricTill, Till, shown_cost
from tests.llm_server import LlmServer
from tests.screens import on_one_line
from tests.waiting import wait_until
from trajudge.app.server.workspace import open_workspace
from trajudge.eval.cli import main as trajudge

pytestmark = pytest.mark.slow

PRICES = ["--prices", "prices.toml", "--max-failures", "100%", "--yes"]


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A working folder and a cache of its own, and prices in it."""
    monkeypatch.setenv("TRAJUDGE_CACHE", str(tmp_path / "cache" / "replies.sqlite"))
    monkeypatch.chdir(tmp_path)
    Path("prices.toml").write_text('[models."gpt-4o"]\ninput = 250.0\noutput = 1000.0\n')


def check(folder: Path, told: tuple[float, float], capsys: pytest.CaptureFixture[str]) -> None:
    """Check the list and the page of a run against its first screen."""
    capsys.readouterr()
    assert trajudge(["score", str(folder)]) == 0
    screen = on_one_line(capsys.readouterr().out)
    with served(open_workspace([folder])) as site:
        (run,) = json.loads(site.ask("/", Accept="application/json").text)["runs"]
        listed = site.ask("/").text
        path = f"/run/{folder.name}"
        wait_until(lambda: "Coverage" in site.ask(path).text, every=0.05)
        page = html.unescape(site.ask(path).text)
    cost, more = told
    assert run["cost"] == pytest.approx(cost, abs=1e-4)
    assert run["more"] == pytest.approx(more, abs=1e-4)
    assert (f"{cost:.4f} + {more:.4f}" if more else f"<td>{cost:.4f}</td>") in listed
    sentence = page.partition("<bdi>Cost: ")[2].partition("</bdi>")[0]
    assert sentence
    assert f"Cost: {sentence} " in screen


def test_failed_attempts_and_shared_requests(capsys: pytest.CaptureFixture[str]) -> None:
    with LlmServer(text=Till()) as server:
        assert model(server, *PRICES) == 0
    told = shown_cost(capsys.readouterr().out)
    assert told[1] > 0
    check(Path("run"), told, capsys)


def test_shared_requests_and_what_the_cache_answered(capsys: pytest.CaptureFixture[str]) -> None:
    with LlmServer(text=RubricTill()) as server:
        rubric = [*PRICES, "--judge", "rubric"]
        assert model(server, *rubric) == 0
        check(Path("run"), shown_cost(capsys.readouterr().out), capsys)
        assert model(server, *rubric, "--out", "again") == 0
    told = shown_cost(capsys.readouterr().out)
    assert told == (0, 0)
    check(Path("again"), told, capsys)
