"""Leave one benchmark out: nothing that is scored on a benchmark saw a label of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.eval.baselines.runs import labelled, run
from tests.screens import one_screen
from trajudge.annotations import Label
from trajudge.eval.baselines import BEST, transfer_screen, transferred
from trajudge.eval.cli import main
from trajudge.eval.scoring.records import ScoreReport
from trajudge.judges.model import Judgment, Status
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.util.errors import UserError

BENCHMARKS = ("almanac", "console", "press")
RUNS = [
    run(task, f"Found the {'cheap' if task % 2 else 'wrong'} lamp.", benchmark=benchmark)
    for benchmark in BENCHMARKS
    for task in range(8)
]


def truth(one: Trajectory) -> bool:
    return bool(int(one.raw_task_id.split(".")[1]) % 2)


LABELS = {one.key: labelled(one, truth(one)) for one in RUNS}


def judged(name: str, right: tuple[str, ...], **scores: float) -> list[Judgment]:
    """Verdicts that are right on some benchmarks and wrong on the others."""
    return [
        Judgment(
            key=one.key,
            judge=name,
            status=Status.OK,
            success=truth(one) is (one.key.benchmark in right),
            score=scores.get(one.key.benchmark, 0.5) + 0.2 * truth(one) if scores else None,
        )
        for one in RUNS
    ]


def without_labels_of(benchmark: str) -> dict[TrajectoryKey, Label]:
    """The labels with those of one benchmark turned round."""
    return {
        key: each.model_copy(update={"success": not each.success})
        if key.benchmark == benchmark
        else each
        for key, each in LABELS.items()
    }


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_labels_of_the_benchmark_left_out_change_no_verdict_on_it(benchmark: str) -> None:
    judgments = [*judged("a", ("almanac", "press")), *judged("b", ("console",), press=0.3)]
    before = transferred(RUNS, judgments, LABELS).judgments
    after = transferred(RUNS, judgments, without_labels_of(benchmark)).judgments
    here = [j for j in before if j.key.benchmark == benchmark]
    assert {j.judge for j in here} == {"telemetry", "tfidf-answer", BEST, "b at its threshold"}
    assert here == [j for j in after if j.key.benchmark == benchmark]


def test_the_judge_that_is_best_elsewhere_is_scored_here() -> None:
    judgments = [*judged("a", ("almanac",)), *judged("b", ("console", "press"))]
    found = transferred(RUNS, judgments, LABELS)
    assert "almanac: b is the best of 2 on the others (F1 100.0)" in found.notes
    best = {j.key: j.success for j in found.judgments if j.judge == BEST}
    assert all(best[one.key] is not truth(one) for one in RUNS if one.key.benchmark == "almanac")


def test_a_threshold_is_carried_over() -> None:
    """Elsewhere successes score 0.7 and failures 0.5, here 0.5 and 0.3: nothing is accepted."""
    judgments = judged("s", BENCHMARKS, almanac=0.3)
    found = transferred(RUNS, judgments, LABELS).judgments
    mine = [j for j in found if j.judge == "s at its threshold" and j.key.benchmark == "almanac"]
    assert len(mine) == 8
    assert not any(j.success for j in mine)


def test_one_benchmark_is_too_few() -> None:
    with pytest.raises(UserError, match="labels of 1"):
        transferred(RUNS[:8], [], LABELS)


@pytest.mark.slow
@pytest.mark.real_data
def test_five_benchmarks_from_one_command_with_the_same_bytes(
    arb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["score", "--judgments", str(arb), "--annotations", f"agentrewardbench:{arb}"]
    written = []
    for _ in range(2):
        assert main([*words, "--transfer", "--json"]) == 0
        written.append(capsys.readouterr().out)
    assert written[0] == written[1]
    report = ScoreReport.model_validate_json(written[0])
    one_screen(transfer_screen(report, "success"), 100)
    rows = {(s.benchmark, s.judge): s for s in report.scores}
    for name in ("telemetry", "tfidf-answer"):
        places = [benchmark for benchmark, judge in rows if judge == name]
        assert len(places) == 6
        assert sum(rows[place, name].n for place in places if place != "overall") == 925
        assert "precision" in rows["overall", name].intervals
