"""The app tells what a run paid in the words and figures of the command's first screen."""

from __future__ import annotations

import html
import json
import os
from pathlib import Path

import pytest

from tests.app.made_runs import Task, write_run
from tests.app.serving import Served, served
from tests.eval.judge_command import model
from tests.eval.unattributed import RubricTill, Till, shown_cost
from tests.llm_server import LlmServer
from tests.screens import on_one_line
from tests.waiting import wait_until
from trajudge.app import scoring
from trajudge.app.run_list import listed_runs
from trajudge.app.scoring import ListedCost, RunCosts
from trajudge.app.workspace import open_workspace
from trajudge.eval.cli import main as trajudge
from trajudge.eval.reporting.sentences import RunCost
from trajudge.eval.store.run_folder import COST, JUDGMENTS
from trajudge.eval.store.table import PAYMENTS
from trajudge.judges.engine.budget import Payments

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
        check_listed(site, told)
        path = f"/run/{folder.name}"
        wait_until(lambda: "Coverage" in site.ask(path).text, every=0.05)
        page = html.unescape(site.ask(path).text)
        (folder / COST).unlink()  # as an earlier release left it
        check_listed(site, told)
    sentence = page.partition("<bdi>Cost: ")[2].partition("</bdi>")[0]
    assert sentence
    assert f"Cost: {sentence} " in screen


def check_listed(site: Served, told: tuple[float, float]) -> None:
    """Check what the list says of its only run, to a program and to a person."""
    cost, more = told
    (run,) = json.loads(site.ask("/", Accept="application/json").text)["runs"]
    assert run["cost"] == pytest.approx(cost, abs=1e-4)
    assert run["more"] == pytest.approx(more, abs=1e-4)
    text = f"{cost:.4f} + {more:.4f}" if more else f"<td>{cost:.4f}</td>"
    assert text in site.ask("/").text


@pytest.mark.slow
def test_failed_attempts_and_shared_requests(capsys: pytest.CaptureFixture[str]) -> None:
    with LlmServer(text=Till()) as server:
        assert model(server, *PRICES) == 0
    told = shown_cost(capsys.readouterr().out)
    assert told[1] > 0
    check(Path("run"), told, capsys)


@pytest.mark.slow
def test_shared_requests_and_what_the_cache_answered(capsys: pytest.CaptureFixture[str]) -> None:
    with LlmServer(text=RubricTill()) as server:
        rubric = [*PRICES, "--judge", "rubric"]
        assert model(server, *rubric) == 0
        check(Path("run"), shown_cost(capsys.readouterr().out), capsys)
        assert model(server, *rubric, "--out", "again") == 0
    told = shown_cost(capsys.readouterr().out)
    assert told == (0, 0)
    check(Path("again"), told, capsys)


def listed(site: Served) -> tuple[float, float]:
    (run,) = json.loads(site.ask("/", Accept="application/json").text)["runs"]
    return run["cost"], run["more"]


@pytest.mark.parametrize("largest", [scoring.LARGE, pytest.param(0, marks=pytest.mark.slow)])
def test_what_was_paid_since_the_results_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, largest: int
) -> None:
    monkeypatch.setattr(scoring, "LARGE", largest)
    folder = write_run(tmp_path, [Task(str(n), True, True) for n in range(3)])
    with served(open_workspace([folder])) as site:
        assert listed(site) == pytest.approx((0.03, 0))
        written = RunCost(dollars=0.5, more=0.25, sentence="Cost: $0.5")
        (folder / COST).write_text(written.model_dump_json())
        assert listed(site) == (0.5, 0.25)
        os.utime(folder / COST, ns=((folder / COST).stat().st_mtime_ns - 10**9,) * 2)
        payments = Payments(folder / PAYMENTS)
        payments.paid("f" * 64, 7.0)  # as by trajudge run batch resume
        payments.close()
        assert wait_until(lambda: listed(site) == pytest.approx((0.03, 7)), every=0.05)


def test_a_page_does_not_wait_for_costs_that_take_long(tmp_path: Path) -> None:
    folder = write_run(tmp_path, [Task("1", True, True)])
    runs, paid = [*open_workspace([folder]).runs.values()], RunCosts()
    (at_once,) = listed_runs(runs, paid.of(runs, wait=0))
    assert (at_once.cost, at_once.cost_text) == (None, "…")
    (later,) = listed_runs(runs, paid.of(runs))
    assert later.cost_text == "0.0100"


def test_a_run_that_changes_all_the_time_is_counted_once_for_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a pause between counts it is due again as soon as it is counted; of many runs that
    are judged at a time one always is."""
    folder, counted, times = write_run(tmp_path, [Task("1", True, True)]), scoring._counted, []

    def changing(run: Path) -> ListedCost:
        times.append(run)
        if len(times) < 5:
            os.utime(run / JUDGMENTS, ns=(len(times), len(times)))
        return counted(run)

    monkeypatch.setattr(scoring, "SHARE", 1.0)
    monkeypatch.setattr(scoring, "_counted", changing)
    runs = [*open_workspace([folder]).runs.values()]
    (told,) = RunCosts().of(runs).values()
    assert told.dollars == pytest.approx(0.01)
    assert len(times) == 1


def test_a_run_that_cannot_be_counted_has_no_cost(tmp_path: Path) -> None:
    folder = write_run(tmp_path, [Task("1", True, True)])
    (folder / JUDGMENTS).write_bytes(b"no judgment\n")
    runs = [*open_workspace([folder]).runs.values()]
    assert [run.cost_text for run in listed_runs(runs, RunCosts().of(runs))] == ["–"]
