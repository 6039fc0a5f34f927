"""Figures stand where the numbers are: the curve and the bins of scores, worked out by hand."""

from __future__ import annotations

import html
import random
import re
from pathlib import Path

import numpy as np
import pytest

from tests.app.made_runs import Task, judgment, write_run
from tests.app.serving import served
from trajudge.app.workspace import open_workspace
from trajudge.eval.cli import main as trajudge
from trajudge.eval.store.run_folder import JUDGMENTS, judgment_line


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[float, bool]]]:
    """A run of a judge that gives scores, with score and label of every trajectory."""
    rng = random.Random(4)
    tasks = [Task(str(n), rng.random() < 0.5, None) for n in range(200)]
    scores = [round(rng.betavariate(2, 1) if task.truth else rng.random(), 3) for task in tasks]
    tasks = [task._replace(verdict=score > 0.6) for task, score in zip(tasks, scores, strict=True)]
    run = write_run(tmp_path_factory.mktemp("scored"), tasks)
    made = [
        judgment(task, "judge").model_copy(update={"score": score})
        for task, score in zip(tasks, scores, strict=True)
    ]
    (run / JUDGMENTS).write_bytes(b"".join(map(judgment_line, made)))
    return run, [(score, bool(task.truth)) for task, score in zip(tasks, scores, strict=True)]


def page_and_report(run: Path) -> list[str]:
    with served(open_workspace([run])) as site:
        site.ask(f"/run/{run.name}", Accept="application/json")  # waits for the scores
        page = site.ask(f"/run/{run.name}").text
    out = run.parent / "report.html"
    assert trajudge(["report", str(run), "--out", str(out), "--baselines", "off"]) == 0
    return [page, out.read_text()]


def test_curve_and_bins_are_those_of_the_scores(
    scored: tuple[Path, list[tuple[float, bool]]],
) -> None:
    run, pairs = scored
    scores, labels = (np.array(each) for each in zip(*pairs, strict=True))
    for page in page_and_report(run):
        line = re.search(r'<polyline class="curve" points="([^"]+)"', page)
        assert line is not None
        drawn = [[float(one) / 300 for one in part.split(",")] for part in line[1].split()]
        for recall, below in drawn[1::2]:  # every second point is a threshold's
            told = [
                abs((labels & (scores >= t)).sum() / labels.sum() - recall) < 1e-4
                and abs((labels & (scores >= t)).sum() / (scores >= t).sum() - 1 + below) < 1e-4
                for t in scores
            ]
            assert any(told), (recall, below)
        assert drawn[-1][0] == 1
        table = html.unescape(page.split("Scores of judge A", 1)[1].split("</table>")[0])
        rows = re.findall(r">([\d.]+)</th><td>([\d.]+) \[.*?\]</td><td>(\d+)</td>", table)
        bins = np.minimum((scores * 10).astype(int), 9)
        assert rows == [
            (
                f"{scores[bins == b].mean():.2f}",
                f"{100 * labels[bins == b].mean():.1f}",
                str((bins == b).sum()),
            )
            for b in np.unique(bins)
        ]
