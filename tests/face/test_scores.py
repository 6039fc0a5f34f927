"""What scoring, selecting, accepting and auditing give: data that a notebook shows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import trajudge as tj
from trajudge.eval.scoring.compute import score


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tj.Run:
    """Two judges on the whole sample."""
    folder = tmp_path_factory.mktemp("two")
    names = ("heuristic", "rule-based")
    first, second = (tj.judge("sample", name, out=folder / name) for name in names)
    return first + second


@pytest.mark.slow
def test_the_scores_are_the_commands(two: tj.Run) -> None:
    ours = tj.score(two)
    theirs = score(two, two.labels, rewards=two.rewards)
    assert ours.scores == theirs.scores
    assert ours.comparison == theirs.comparison


def test_a_frame_has_a_row_per_judge_label_and_benchmark(two: tj.Run) -> None:
    found = tj.score(two)
    frame = found.to_frame()
    assert len(frame) == len(found.scores)
    rows = frame.query(
        "judge == 'heuristic' and evaluator == 'judge' and benchmark == 'overall' "
        "and label == 'success'"
    )
    (row,) = rows.to_dict("records")
    low, high = next(
        s for s in found.scores if not s.baseline and s.benchmark == "overall"
    ).intervals["precision"]
    assert (row["precision_low"], row["precision_high"]) == (low, high)
    assert row["n"] == 130


@pytest.mark.slow
def test_labels_and_rewards_may_be_given(two: tj.Run) -> None:
    runs, truth = tj.load("sample"), tj.labels("sample")
    whole = tj.score(list(two), truth, runs)
    assert whole.scores == tj.score(two).scores
    assert not any(s.n for s in tj.score(list(two)).scores)
    one_label = dict(list(truth.items())[:1])
    assert {s.n for s in tj.score(two, one_label).scores} <= {0, 1}


def test_a_notebook_shows_tables_and_escapes_names() -> None:
    key = tj.TrajectoryKey(benchmark="webarena", agent="<b>agent</b>", task_id="1")
    judgment = tj.Judgment(
        key=key, judge="<script>", status=tj.Status.OK, success=True, reasoning="<img src=x>"
    )
    label = tj.Label(key=key, raw_task_id="1", annotator="a", role="primary", success=True)
    shown = tj.score([judgment], {key: label})._repr_html_()
    assert "&lt;script&gt;" in shown
    assert "<script>" not in shown
    assert shown.index("precision") < shown.index("recall")


def test_a_notebook_sees_the_finding_first_and_can_unfold_the_rest(two: tj.Run) -> None:
    screen, everything = tj.score(two)._repr_html_().split("<details>")
    assert screen.count("<table>") == 1
    assert (
        screen.index("Precision, the highest first: ")
        < screen.index("<table>")
        < screen.index("Coverage: ")
    )
    assert 0 < screen.count("<p>warning: ") <= 5
    assert everything.count("<table>") > 5


@pytest.mark.slow
def test_printed_results_are_tables_and_scores_fill_one_screen(two: tj.Run) -> None:
    lines = str(tj.score(two)).splitlines()
    assert len(lines) <= 40 and max(map(len, lines)) <= 100
    assert any(line.startswith("Overall") for line in lines)
    assert not any("--full" in line for line in lines)


def test_what_a_plain_prompt_shows_is_one_line(two: tj.Run) -> None:
    """It was every record of the scores, 162 KB."""
    assert repr(tj.score(two)) == (
        "<Scores: 2 judges on 130 trajectories of 7 benchmarks; print() shows them>"
    )
    compared = repr(tj.compare(two))
    assert compared == "<JudgeComparison: heuristic, rule-based; print() shows it>"


def test_a_printed_comparison_fills_one_screen_the_finding_first(two: tj.Run) -> None:
    """Two judges took more than sixty lines."""
    for by in ("overall", "benchmark"):
        lines = str(tj.compare(two, by=by)).splitlines()
        assert len(lines) <= 40 and max(map(len, lines)) <= 100
        assert lines[0] == "Precision, the highest first: rule-based, heuristic"
        assert "first      second" in "\n".join(lines)
        assert any(line.startswith("Every difference: to_frame()") for line in lines)
    screen, everything = tj.compare(two)._repr_html_().split("<details>")
    assert "<table>" not in screen
    assert everything.count("<table>") >= 4
    assert "labels with labels=KIND:PATH" in str(tj.compare(two, {}))


def test_a_printed_audit_fills_one_screen_and_a_notebook_can_unfold_the_rest(
    two: tj.Run,
) -> None:
    found = tj.audit(two)
    lines = str(found).splitlines()
    assert len(lines) <= 40 and max(map(len, lines)) <= 100
    assert lines[0].startswith("The official reward passes 17 of 130 runs, of which 12 are")
    assert any(line.endswith("wider than 60 points: to_frame()") for line in lines)
    assert not any("--full" in line for line in lines)
    screen, everything = found._repr_html_().split("<details>")
    assert "<table>" not in screen
    assert everything.count("<table>") == 2


def test_judgments_are_shown_and_framed(two: tj.Run) -> None:
    frame = two.to_frame()
    assert len(frame) == len(two) == 260
    assert {"benchmark", "agent", "task_id", "judge", "status", "success", "cost"} <= set(frame)
    shown = two._repr_html_()
    assert "The first 10 of 260 judgments" in shown
    assert "heuristic" in repr(two)
    with pytest.raises(ValueError):
        _ = two.folder


def test_judges_are_compared_pair_by_pair(two: tj.Run) -> None:
    found = tj.compare(two)
    frame = found.to_frame()
    assert set(frame["first"]) | set(frame["second"]) == {"heuristic", "rule-based"}
    assert {"difference", "low", "high", "p_holm"} <= set(frame)
    assert "heuristic" in found._repr_html_()


def test_plots_are_axes(two: tj.Run) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    scores = tj.score(two)
    axes = scores.plot()
    assert axes.get_ylabel() == "precision (%)"
    assert scores.plot("success_rate", axes=pyplot.figure().add_subplot()).get_ylim() == (0, 105)
    with pytest.raises(tj.UserError, match="nothing is scored"):
        tj.score(list(two), {}).plot()
    pyplot.close("all")


def test_a_plot_shows_estimates_without_an_interval_as_points(two: tj.Run) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    few = tj.score([j for j in two if j.key.benchmark == "almanac"], two.labels, tj.load())
    rates = {s.precision for s in few.scores if s.label == "success" and not s.intervals}
    axes = few.plot()
    drawn = {y for line in axes.get_lines() for y in np.ravel(line.get_ydata())}
    assert {100 * rate for rate in rates if rate is not None} <= drawn
    by_agent = few.plot("success_rate")
    assert {y for line in by_agent.get_lines() for y in np.ravel(line.get_ydata())} >= {0, 100}
    pyplot.close("all")


def test_a_run_is_read_again(two: tj.Run) -> None:
    again = tj.read_run(two.folders[0])
    assert (
        tj.score(again).scores
        == tj.score([j for j in two if j.judge == "heuristic"], again.labels, tj.load()).scores
    )
    with pytest.raises(tj.UserError, match="not the folder of a run"):
        tj.read_run("nowhere")


@pytest.mark.slow
def test_select_then_accept(two: tj.Run) -> None:
    found = tj.select(two, target_precision=0.05, confidence=0.6)
    assert len(found.to_frame()) == len(found.findings)
    assert found.best is not None
    assert (found.folder / "decision.json").is_file()
    assert "Decision" in found._repr_html_()
    assert repr(found) == (f"<Decision: {found.best.name}, in {found.folder}; print() shows it>")
    kept = tj.accept(two, found, data="sample", any_benchmark=True)
    assert sum(kept.counts.values()) == 130
    assert (kept.folder / "accepted.jsonl").is_file()
    assert kept.to_frame()["trajectories"].sum() == 130
    share = f"Accepted {kept.counts['accepted']} of 130 trajectories"
    finding = " ".join(str(kept).split()).partition(" rejected because ")[0]
    assert repr(kept) == f"<AcceptanceResult: {finding}; print() shows it>"
    assert f" with {found.best.name};" in finding
    assert share in str(kept).splitlines()[0]
    assert str(kept).endswith("accepted.jsonl, rejected.jsonl, acceptance.json")
    with pytest.raises(tj.UserError, match="--confidence 2: must be less than 1"):
        tj.select(two, target_precision=0.5, confidence=2)
    with pytest.raises(tj.UserError, match="margin wide: must be a number"):
        tj.select(two, margin="wide")
    with pytest.raises(tj.UserError, match=r"nowhere\.json: cannot be read"):
        tj.select(two, target_precision=0.05, threat="page", robustness=["nowhere.json"])


@pytest.mark.slow
def test_audit_tells_where_the_rule_is_wrong(two: tj.Run, folder: Path) -> None:
    found = tj.audit(two)
    assert found.n == 130
    assert {"facet", "precision_rate", "precision_low"} <= set(found.to_frame())
    assert "Errors of the official reward" in found._repr_html_()
    first = "the official reward against the experts on 130 trajectories"
    assert repr(found) == f"<RuleAudit: {first}; print() shows it>"
    assert not (folder / "audit").exists()
    in_memory = tj.judge(tj.load("sample"), "heuristic")
    assert tj.audit(in_memory, annotations=str(two.folders[0] / "labels.jsonl")).n == 130
    with pytest.raises(tj.UserError, match="judged trajectories in memory"):
        tj.accept(in_memory, judge="heuristic", threshold=1)
