"""The overview tells what ``trajudge score`` tells, and every count leads to its judgments."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.made_runs import Task, write_run
from tests.app.serving import Served, served
from tests.eval.cases import key
from tests.waiting import wait_until
from trajudge.app import scoring
from trajudge.app.web import trajectory_link
from trajudge.app.workspace import open_workspace
from trajudge.eval.cli import main as trajudge
from trajudge.eval.judge import main as judge
from trajudge.eval.reporting.results import results_json
from trajudge.eval.store.run_folder import JUDGMENTS, locked_folder, write_labels
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
