"""The overview tells what ``trajudge score`` tells, and every count leads to its judgments."""

from __future__ import annotations

import html
import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.app.made_runs import Task, write_run
from tests.app.serving import Served, served
from tests.eval.cases import key
from tests.eval.judge_command import model
from tests.eval.unattributed import RubricTill, Till, shown_cost
from tests.llm_server import LlmServer
from tests.screens import on_one_line
from tests.waiting import wait_until
from trajudge.app import scoring, workspace
from trajudge.app.run_list import listed_runs
from trajudge.app.run_page import Distribution, Group, Spending, spending_of
from trajudge.app.scoring import ListedCost, RunCosts
from trajudge.app.web import trajectory_link
from trajudge.app.workspace import open_workspace
from trajudge.eval.cli import main as trajudge
from trajudge.eval.judge import main as judge
from trajudge.eval.reporting.results import results_json
from trajudge.eval.reporting.sentences import RunCost
from trajudge.eval.store.filters import HEAD, JudgmentView, read_view
from trajudge.eval.store.run_folder import COST, JUDGMENTS, locked_folder, write_labels
from trajudge.eval.store.table import PAYMENTS
from trajudge.judges.engine.budget import Payments
from trajudge.util.errors import UserError


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The sample, judged, and a run in which one verdict is missing."""
    folder = tmp_path_factory.mktemp("overview")
    assert judge(["--judge", "heuristic", "--data", "sample", "--out", str(folder / "sample")]) == 0
    tasks = [Task(str(place), place % 3 == 0, place % 2 == 0) for place in range(20)]
    tasks[3] = tasks[3]._replace(verdict=None)
    return [folder / "sample", write_run(folder, tasks)]


@pytest.fixture(scope="module")
def site(runs: list[Path]) -> Iterator[Served]:
    with served(open_workspace(runs)) as running:
        yield running


@pytest.mark.slow
def test_its_json_is_that_of_score(
    site: Served, runs: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    told = json.loads(site.ask("/run/sample", Accept="application/json").text)
    capsys.readouterr()
    words = ["score", str(runs[0]), "--json", "--baselines", "off", "--by", "agent"]
    assert trajudge(words) == 0
    assert told == json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("run", ["sample", "judge"])
def test_every_count_leads_to_as_many_judgments(site: Served, run: str) -> None:
    assert told_in_time(site, f"/run/{run}", "Coverage")
    page = site.ask(f"/run/{run}").text
    linked = set(re.findall(r'<a href="(/run/[^"]*/judgments[^"]*)">([\d,.]+)</a>', page))
    counts = {(html.unescape(link), count) for link, count in linked if "." not in count}
    assert len(counts) > 8
    for link, count in counts:
        told = json.loads(site.ask(link, Accept="application/json").text)
        assert told["total"] == int(count.replace(",", "")), link


def test_it_shows_the_figures_of_score(site: Served, capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(site.ask("/run/sample", Accept="application/json").text)
    (score,) = [
        s
        for s in told["scores"]
        if (s["benchmark"], s["agent"], s["label"], s["baseline"])
        == ("overall", "all", "success", False)
    ]
    low, high = score["intervals"]["precision"]
    page = site.ask("/run/sample").text
    assert f"<td>{100 * score['precision']:.1f} [{100 * low:.1f}, {100 * high:.1f}]</td>" in page
    for name in ("recall", "f1"):
        assert f"<td>{100 * score[name]:.1f} [" in page
    assert f"<td>{100 * score['npv']:.1f}</td>" in page
    assert f"<td>{score['kappa']:.2f}</td>" in page or f"<td>{score['kappa']:.2f} [" in page


def told_in_time(site: Served, path: str, text: str) -> bool:
    """Whether a page that waits for nothing says it at last."""
    return wait_until(lambda: text in site.ask(path).text, every=0.05)


def test_a_growing_run_is_scored_anew(tmp_path: Path) -> None:
    run = write_run(tmp_path, [Task(str(n), n % 2 == 0, True) for n in range(6)])
    lines = (run / "judgments.jsonl").read_bytes().splitlines(keepends=True)
    (run / "judgments.jsonl").write_bytes(b"".join(lines[:4]))
    with served(open_workspace([run])) as site:
        assert told_in_time(site, "/run/judge", "on 4 trajectories")
        with (run / "judgments.jsonl").open("ab") as file:
            file.writelines(lines[4:])
        assert told_in_time(site, "/run/judge", "on 6 trajectories")


def test_the_list_says_what_stands_in_the_folders(site: Served, runs: list[Path]) -> None:
    sample, other = json.loads(site.ask("/", Accept="application/json").text)["runs"]
    assert (sample["judge"], sample["judged"], sample["failed"]) == ("heuristic", 130, 0)
    results = json.loads((runs[0] / "results.json").read_text())
    (score,) = [
        s
        for s in results["scores"]
        if (s["benchmark"], s["label"], s["baseline"]) == ("overall", "success", False)
    ]
    assert sample["precision"] == score["precision"]
    assert (sample["cost"], other["cost"]) == (0, pytest.approx(0.2))
    assert (other["judge"], other["judged"], other["precision"]) == ("judge", None, None)
    assert not sample["running"]
    with locked_folder(runs[0]):
        assert "● running" in site.ask("/").text


@pytest.mark.parametrize(
    "content", ["[]", "{", '{"scores": 3, "coverage": [1]}', "null", '{"spending": [3]}']
)
def test_results_that_somebody_broke_are_left_out(tmp_path: Path, content: str) -> None:
    run = write_run(tmp_path, [Task("1", True, True)])
    (run / "results.json").write_text(content)
    with served(open_workspace([run])) as site:
        answer = site.ask("/?sort=-precision")
    assert answer.status == 200


@pytest.mark.slow
def test_a_large_run_is_scored_by_another_process(
    runs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = scoring.score_run(runs[0], None)
    monkeypatch.setattr(scoring, "LARGE", 0)
    apart = scoring.score_run(runs[0], None)
    assert results_json(apart.scores) == results_json(here.scores)
    with pytest.raises(UserError, match="absent: cannot be read"):
        scoring.score_run(runs[0], "trajudge:absent")


def test_sorting_puts_the_unknown_last(site: Served) -> None:
    for sort in ("precision", "-precision"):
        runs = json.loads(site.ask(f"/?sort={sort}", Accept="application/json").text)["runs"]
        assert [run["name"] for run in runs] == ["sample", "judge"]
    assert site.ask("/?sort=luck").status == 422


def test_runs_of_one_name_have_addresses_of_their_own(tmp_path: Path) -> None:
    folders = [
        write_run(tmp_path / part, [Task("1", True, True)], judge="a judge/"[:-1])
        for part in ("one", "two")
    ]
    workspace = open_workspace([*folders, folders[0]])
    assert [*workspace.runs] == ["a-judge", "a-judge-2"]


def test_a_run_without_labels_says_so(tmp_path: Path) -> None:
    run = write_run(tmp_path, [Task("1", True, True)])
    write_labels(run, [])
    with served(open_workspace([run])) as site:
        assert told_in_time(site, "/run/judge", "Coverage")
        page = site.ask("/run/judge").text
    assert "No expert labels belong to these trajectories" in page
    assert "wrong yes" not in page


@pytest.mark.parametrize("content", [None, b"torn\n"])
def test_a_run_that_cannot_be_read_takes_nothing_from_the_others(
    tmp_path: Path, content: bytes | None
) -> None:
    task = Task("1", True, False)
    runs = [write_run(tmp_path / name, [task], judge=name) for name in ("whole", "lost")]
    with served(open_workspace(runs)) as site:
        journal = runs[1] / JUDGMENTS
        journal.unlink()  # while the pages are served
        if content is not None:
            journal.write_bytes(content)
        for path in (trajectory_link(key(task.name)), "/run/whole/judgment/0"):
            answer = site.ask(path)
            assert answer.status == 200
            assert 'href="/run/whole/judgment/0">' in answer.text
            assert f"{journal}" in answer.text
        assert site.ask("/run/lost").status == 422
        assert "1970" not in site.ask("/").text


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


def test_a_page_does_not_wait_for_costs_that_take_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, counted, released = (
        write_run(tmp_path, [Task("1", True, True)]),
        scoring._counted,
        Event(),
    )

    def held(run: Path) -> ListedCost:
        released.wait()
        return counted(run)

    monkeypatch.setattr(scoring, "_counted", held)
    runs, paid = [*open_workspace([folder]).runs.values()], RunCosts()
    (at_once,) = listed_runs(runs, paid.of(runs, wait=0))
    assert (at_once.cost, at_once.more, at_once.cost_text) == (None, 0.0, "…")
    released.set()
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


def test_what_is_spent_and_where_most_is_wrong(tmp_path: Path) -> None:
    """Of 11 judgments one has no verdict and one no label; five of the others are wrong."""
    said = [(True, True)] * 3 + [(False, True)] * 3 + [(True, False)] * 2 + [(False, False)]
    tasks = [Task(str(n), *both) for n, both in enumerate([*said, (True, None), (None, True)])]
    (run,) = open_workspace([write_run(tmp_path, tasks)]).runs.values()
    where = "/run/judge/judgments?f=benchmark%3Awebarena+agent%3Aagent"
    spent, dollars = spending_of(run), cast(float, pytest.approx(0.11))
    assert spent == Spending(
        [Distribution("judge", 11, 0, dollars, 0.01, 0.01, 0.01)],
        [Distribution("judge", 0, 11, 0, 0, 0, 0)],
        [Group("webarena", "agent", 11, dollars, where)],
        [Group("webarena", "agent", 9, 5, f"{where}+wrong%3Aany")],
    )
    assert (spent.has_cost, spent.has_seconds) == (True, False)
    assert not spent._replace(cost=spent.seconds).has_cost


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *modules: object) -> None:
        self.now = 0.0
        for module in modules:
            monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))


def test_computing_takes_a_tenth_of_the_time_of_a_run_that_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run,) = open_workspace([write_run(tmp_path, [Task("1", True, True)])]).runs.values()
    clock = Clock(monkeypatch, scoring)
    versions = iter("aabbbbcccc")  # one for a page, and one for the work that it begins
    seen: list[float] = []

    def compute(_: object) -> float:
        seen.append(clock.now)
        clock.now += 1.0
        return clock.now

    kept = scoring.Keeper(compute, lambda _: ((ord(next(versions)), 0, 0, 0),))
    assert kept.of(run, wait=60) == (1.0, True)  # so that the next begins at 10 s
    clock.now = 9.99
    assert kept.of(run, wait=60) == (1.0, False)
    clock.now = 10.0
    assert kept.of(run, wait=60) == (11.0, True)
    clock.now = 100.0
    assert kept.of(run, wait=60) == (11.0, True)  # the last "b": nothing has changed
    assert kept.of(run, wait=60) == (101.0, True)
    assert kept.of(run) == (101.0, True)
    assert kept.of(run) == (101.0, True)
    assert seen == [0.0, 10.0, 100.0]


def test_a_page_waits_for_costs_as_long_as_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slowly(_: Path) -> ListedCost:
        time.sleep(0.05)
        return ListedCost(2.0)

    monkeypatch.setattr(scoring, "_counted", slowly)
    runs = [*open_workspace([write_run(tmp_path, [Task("1", True, True)])]).runs.values()]
    assert RunCosts().of(runs, wait=60) == {"judge": ListedCost(2.0, 0.0, is_pending=False)}


def test_a_run_of_20_megabytes_is_large(tmp_path: Path) -> None:
    assert not scoring.is_large(tmp_path)
    (tmp_path / JUDGMENTS).touch()
    for size in (19_999_999, 20_000_000):
        os.truncate(tmp_path / JUDGMENTS, size)
        assert scoring.is_large(tmp_path) is (size == 20_000_000)


def test_reading_takes_a_tenth_of_the_time_of_a_run_that_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it takes half a second or more; else it is read at each change."""
    folder = write_run(tmp_path, [Task("1", True, True)])
    (run,) = open_workspace([folder]).runs.values()
    clock, read = Clock(monkeypatch, workspace), read_view
    seen: list[float] = []
    took = 0.5

    def slowly(*words: Any, **more: Any) -> JudgmentView:
        seen.append(clock.now)
        clock.now += took
        return read(*words, **more)

    monkeypatch.setattr(workspace, "read_view", slowly)
    for now in (0.0, 1.0, 4.99, 5.0):
        clock.now = now
        os.utime(folder / JUDGMENTS, ns=(int(now * 100),) * 2)
        run.view()
    assert run.held() is not None
    assert seen == [0.0, 5.0]
    took = 0.49
    for now in (20.0, 20.5, 21.0):
        clock.now = now
        os.utime(folder / JUDGMENTS, ns=(int(now * 100),) * 2)
        assert run.held() is None
        run.view()
    run.view()
    assert seen[2:] == [20.0, 20.5, 21.0]


def test_the_whole_reasoning_of_500_megabytes_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_run(tmp_path, [Task("1", True, True)])
    view = next(iter(open_workspace([folder]).runs.values())).view()
    longest: list[object] = []

    def short(*_: object, **more: object) -> JudgmentView:
        longest.append(more.get("longest"))
        return view

    monkeypatch.setattr(workspace, "read_view", short)
    for size in (500_000_000, 500_000_001):
        os.truncate(folder / JUDGMENTS, size)
        (run,) = open_workspace([folder]).runs.values()
        run.view()
        told = any("is looked for in the first" in note for note in run.notes(wait=0))
        assert told is (size > 500_000_000)
    assert [*dict.fromkeys(longest)] == [None, HEAD]
