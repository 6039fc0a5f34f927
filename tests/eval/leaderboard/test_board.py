"""What is compared on a leaderboard, and what each cell says."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.eval.cases import call, failed, key, label, said
from tests.eval.leaderboard.folders import write_run
from tests.trajectories.loaders.cua_made import release
from trajudge.eval.leaderboard.board import (
    Board,
    BoardRow,
    LeaderboardConfig,
    build_board,
    gather_board,
    read_runs,
)
from trajudge.eval.store.run_folder import read_manifest, write_manifest
from trajudge.judges.model import Status
from trajudge.judges.training import key_hash
from trajudge.util.errors import UserError

TASKS = range(40)
LABELS = [label(task, task % 2 == 0) for task in TASKS]


def board(*folders: Path, split: str = "test") -> Board:
    return build_board(read_runs(folders), split=split)


def rows(found: Board, suite: int = 0, table: int = 0) -> dict[str, BoardRow]:
    return {row.judge: row for row in found.suites[suite].tables[table].rows}


def test_a_cell_counts_failures_as_not_accepted_and_out_of_coverage(tmp_path: Path) -> None:
    judged = [said(task, True, calls=(call(0.002), call(0.001))) for task in range(20)]
    broken = [failed(task, Status.UNPARSABLE, calls=(call(0.002),)) for task in range(20, 30)]
    found = rows(board(write_run(tmp_path / "run", [*judged, *broken], LABELS)))["judge"]
    assert (found.score.n, found.score.missing, found.labelled) == (30, 10, 40)
    assert found.coverage == 0.5
    assert found.score.precision == 0.5
    assert found.score.recall == pytest.approx(10 / 15)
    assert found.cost == pytest.approx(1000 * (20 * 0.003 + 10 * 0.002) / 30)
    assert found.common is None


def test_an_unknown_price_is_no_cost_of_zero(tmp_path: Path) -> None:
    judged = [said(task, True, calls=(call(None if task else 0.1),)) for task in TASKS]
    assert rows(board(write_run(tmp_path / "run", judged, LABELS)))["judge"].cost is None
    free = write_run(
        tmp_path / "free", [said(task, True, judge="rules") for task in TASKS], LABELS, model=None
    )
    assert rows(board(free))["rules"].cost == 0


def test_a_clear_winner_ranks_alone_and_noise_is_tied(tmp_path: Path) -> None:
    right = [said(task, task % 2 == 0, judge="right") for task in TASKS]
    always = [said(task, True, judge="always") for task in TASKS]
    nearly = [said(task, task != 1, judge="nearly") for task in TASKS]
    found = rows(
        board(
            *(
                write_run(tmp_path / judgments[0].judge, judgments, LABELS)
                for judgments in (always, right, nearly)
            )
        )
    )
    assert next(iter(found)) == "right"
    ranks = {judge: row.ranks["precision"] for judge, row in found.items()}
    assert (ranks["right"].best, ranks["right"].worst) == (1, 1)
    assert ranks["always"] == ranks["nearly"]
    assert (ranks["always"].best, ranks["always"].worst) == (2, 3)
    assert {row.common for row in found.values()} == {40}


def test_a_judge_that_accepts_nothing_has_no_rank_by_precision(tmp_path: Path) -> None:
    never = [said(task, False, judge="never") for task in TASKS]
    right = [said(task, task % 2 == 0) for task in TASKS]
    found = rows(
        board(write_run(tmp_path / "a", never, LABELS), write_run(tmp_path / "b", right, LABELS))
    )
    assert "precision" not in found["never"].ranks
    assert list(found) == ["judge", "never"]


def test_parts_of_a_submission_are_one_row_and_other_settings_another(tmp_path: Path) -> None:
    first, second = [said(t, True) for t in TASKS[:20]], [said(t, True) for t in TASKS[20:]]
    parts = [
        write_run(tmp_path / "first", first, LABELS[:20], data="trajudge:one"),
        write_run(tmp_path / "second", second, LABELS[20:], data="trajudge:two"),
    ]
    # As two releases record the price of one model.
    table = {"source": "table", "detail": "gpt-4o in 2025"}
    for part, price in zip(parts, (table, {**table, "price": {"input": 2.5}}), strict=True):
        write_manifest(part, read_manifest(part) | {"prices": {"gpt-4o": price}})
    found = rows(board(*parts))
    assert (list(found), found["judge"].score.n) == (["judge"], 40)
    other = write_run(tmp_path / "third", second, LABELS[20:], parameters={"temperature": 1})
    assert set(rows(board(parts[0], other))) == {"judge (first)", "judge (third)"}
    again = write_run(tmp_path / "again", second, LABELS[20:])
    assert set(rows(board(*parts, again))) == {
        "judge (first)",
        "judge (second)",
        "judge (again)",
    }


def test_runs_in_folders_of_one_name_stay_apart(tmp_path: Path) -> None:
    judged = [said(task, True) for task in TASKS]
    runs = [write_run(tmp_path / parent / "run", judged, LABELS) for parent in "ab"]
    assert set(rows(board(*runs))) == {"judge (run 1)", "judge (run 2)"}


def test_benchmarks_that_nobody_judged_together_are_suites_of_their_own(tmp_path: Path) -> None:
    web = write_run(tmp_path / "web", [said(task, True) for task in TASKS], LABELS)
    other = write_run(
        tmp_path / "other",
        [said(task, False, benchmark="mine") for task in TASKS],
        [label(task, False, benchmark="mine") for task in TASKS],
    )
    found = board(other, web)
    assert [suite.name for suite in found.suites] == ["AgentRewardBench", "mine"]
    assert [table.benchmark for table in found.suites[0].tables] == ["webarena"]


def test_every_benchmark_has_a_table_below_the_whole(tmp_path: Path) -> None:
    judged = [said(t, True, benchmark=b) for t in TASKS for b in ("webarena", "visualwebarena")]
    labels = [label(t, t % 2 == 0, benchmark=b) for t in TASKS for b in ("webarena", "workarena")]
    found = board(write_run(tmp_path / "run", judged, labels))
    assert [t.benchmark for t in found.suites[0].tables] == ["overall", "webarena"]
    assert found.suites[0].tables[0].rows[0].labelled == 80


def test_official_rewards_are_a_row_of_their_own(tmp_path: Path) -> None:
    rewards = {key(task): 1.0 if task < 10 else 0.0 for task in TASKS[:30]}
    run = write_run(tmp_path / "run", [said(task, True) for task in TASKS], LABELS, rewards)
    found = rows(board(run))["rule-based"]
    assert (found.score.n, found.labelled, found.cost) == (30, 40, 0)
    assert found.score.precision == 0.5


def test_only_the_asked_split_counts_where_there_are_splits(tmp_path: Path) -> None:
    labels = [label(task, task % 2 == 0, split="dev" if task < 10 else "test") for task in TASKS]
    run = write_run(tmp_path / "run", [said(task, True) for task in TASKS], labels)
    assert rows(board(run))["judge"].score.n == 30
    assert rows(board(run, split="dev"))["judge"].score.n == 10
    assert rows(board(run, split="all"))["judge"].score.n == 40


def test_what_a_judge_was_trained_on_is_left_out_of_its_row(tmp_path: Path) -> None:
    judged = [said(task, True) for task in TASKS]
    hashes = [key_hash(key(task)) for task in TASKS[:15]]
    found = rows(board(write_run(tmp_path / "run", judged, LABELS, training_keys=hashes)))["judge"]
    assert (found.score.n, found.labelled) == (25, 40)


def test_contradicting_labels_are_said(tmp_path: Path) -> None:
    judged = [said(task, True) for task in TASKS]
    turned = [label(0, False), *LABELS[1:]]
    runs = [
        write_run(tmp_path / "a", judged, LABELS),
        write_run(tmp_path / "b", [j.model_copy(update={"judge": "b"}) for j in judged], turned),
    ]
    remarks = board(*runs).suites[0].remarks
    assert "two different labels of 1 trajectory" in remarks[0]


def test_without_a_label_there_is_no_board(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [said(0, True)], [])
    with pytest.raises(UserError, match="no judgment of split test has an expert's label"):
        board(run)


def test_the_csv_is_blank_where_nothing_is_defined(tmp_path: Path) -> None:
    from trajudge.eval.leaderboard.page import board_csv

    run = write_run(tmp_path / "run", [said(task, False) for task in TASKS], LABELS)
    (row,) = csv.DictReader(board_csv(board(run)).splitlines())
    assert (row["rank"], row["precision"], row["precision_low"]) == ("", "", "")
    assert (row["recall"], row["n"], row["coverage"]) == ("0.0", "40", "1.0")


def test_faults_are_a_table_of_their_own(tmp_path: Path) -> None:
    """One judge answers both questions, one only that of the process, one only that of success."""
    labels = [
        each.model_copy(update={"process": task % 4 != 0}) for task, each in enumerate(LABELS)
    ]
    both = [said(t, True, judge="both", process=t % 4 != 0) for t in TASKS]
    fault = [said(t, None, judge="fault", process=False) for t in TASKS]
    success = [said(t, True, judge="success") for t in TASKS]
    rewards = {key(task): 1.0 for task in TASKS}
    runs = [
        write_run(tmp_path / judgments[0].judge, judgments, labels, rewards)
        for judgments in (both, fault, success)
    ]
    found = board(*runs)
    assert [(s.question, s.title) for s in found.suites] == [
        ("success", "AgentRewardBench"),
        ("fault", "AgentRewardBench, fault in the process"),
    ]
    assert set(rows(found)) == {"both", "success", "rule-based"}
    faults = rows(found, suite=1)
    assert set(faults) == {"both", "fault"}
    assert (faults["both"].score.precision, faults["both"].score.recall) == (1.0, 1.0)
    assert (faults["fault"].score.precision, faults["fault"].score.positives) == (0.25, 10)


def test_a_runs_own_labels_do_not_count_beside_the_annotations(tmp_path: Path) -> None:
    """A submitter turned a label round, and added trajectories that the annotations do not have."""
    easy = range(100, 140)
    honest = write_run(tmp_path / "honest", [said(t, True, judge="a") for t in TASKS], LABELS)
    turned = [label(1, True), *(each for t, each in enumerate(LABELS) if t != 1)]
    cheat = write_run(
        tmp_path / "cheat",
        [said(t, True, judge="b") for t in (*TASKS, *easy)],
        [*turned, *(label(t, True) for t in easy)],
    )
    assert rows(board(honest, cheat))["b"].score.precision == pytest.approx(61 / 80)
    annotations = f"trajudge:{honest / 'labels.jsonl'}"
    found = gather_board(LeaderboardConfig(runs=(honest, cheat), annotations=annotations))
    both = rows(found)
    assert (both["b"].score.n, both["b"].labelled, both["b"].score.precision) == (40, 40, 0.5)
    assert both["a"].score.counts == both["b"].score.counts
    remarks = " ".join(found.suites[0].remarks)
    assert "two different labels of 1 trajectory" in remarks
    assert "40 trajectories labelled by a run alone" in remarks
    assert len(found.suites) == 1
    assert found.notes == ()


def test_the_label_policy_of_a_benchmark_is_said(tmp_path: Path) -> None:
    judged = [said(task, True) for task in TASKS]
    labels = "cuaverifierbench/blind-majority:somewhere"
    run = write_run(tmp_path / "run", judged, LABELS, annotations=labels)
    assert board(run).suites[0].remarks[0] == "labels of run: cuaverifierbench/blind-majority"
    release(tmp_path / "data" / "cuaverifierbench")
    found = gather_board(LeaderboardConfig(published=tmp_path / "data"))
    assert found.suites[0].remarks[0].startswith("labels: adjudicated, 6 runs")
    row = rows(found)["universal-verifier@published"]
    assert (row.score.n, row.labelled) == (5, 6)
    assert [suite.question for suite in found.suites] == ["success", "fault"]
