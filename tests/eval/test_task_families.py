"""Runs of one goal or one family of tasks: said, and counted as one task wherever asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import trajudge as tj
from trajudge.annotations import Role
from trajudge.annotations import store as annotation_store
from trajudge.annotations.agentrewardbench import family_of
from trajudge.annotations.model import Label
from trajudge.eval.accept.accept import transfer_obstacles
from trajudge.eval.accept.settings import TrainingConfig
from trajudge.eval.accept.training import JudgedRun, choose_runs
from trajudge.eval.audit import Labelled, rank_agents
from trajudge.eval.baselines import Examples
from trajudge.eval.cli import main
from trajudge.eval.labelling.agreement import label_agreements
from trajudge.eval.process import fault_scores
from trajudge.eval.select.decide import decide
from trajudge.eval.select.decision import Equivalence, Homogeneity, Transport
from trajudge.eval.select.evidence import gather
from trajudge.eval.select.plan import CandidateFamily, SelectionPlan, Target
from trajudge.eval.select.scores import Rule
from trajudge.eval.store.task_goals import goal_digest, read_goals
from trajudge.judges.model import Judgment, Status
from trajudge.robustness.adaptive import adaptive_success
from trajudge.robustness.model import LabelQuestion, Relation
from trajudge.robustness.pairs import RunVerdict, perturbed_pairs
from trajudge.robustness.perturb import VariantLine
from trajudge.trajectories import store
from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey


def with_goal(number: int, goal: str, url: str | None = "https://shop.example/") -> Trajectory:
    key = TrajectoryKey(benchmark="own", agent="a", task_id=f"run-{number:02}")
    steps = (Step(index=0, observation=Observation(url=url), action="click('1')"),)
    return Trajectory(key=key, raw_task_id=key.task_id, goal=goal, steps=steps, answer="done")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Forty accepted runs of ten goals, each with a task id of its own; five goals succeed."""
    runs = [with_goal(number, f"Buy item {number // 4}") for number in range(40)]
    store.write(tmp_path / "trajectories.jsonl", runs)
    labels = [
        Label(key=one.key, raw_task_id="", annotator="x", success=number // 4 % 2 == 0)
        for number, one in enumerate(runs)
    ]
    annotation_store.write(tmp_path / "labels.jsonl", labels)
    data = f"trajudge:{tmp_path / 'trajectories.jsonl'}"
    assert (
        main(["judge", "--judge", "heuristic", "--data", data, "--out", str(tmp_path / "r")]) == 0
    )
    return tmp_path / "r"


def test_the_two_widths_are_said_and_the_goals_counted(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(set(read_goals(run).values())) == 10
    assert main(["score", str(run), "--baselines", "off"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "40 task ids share 10 goals and their start pages" in shown
    assert "50.0 [33.8, 66.2] counts 40 tasks, 50.0 [20.0, 80.0] 10 goals" in shown
    assert "share 10 goals" in (run / "results.json").read_text()
    goals = ["--task-id", "goal"]
    assert main(["score", str(run), "--baselines", "off", *goals]) == 0
    shown = capsys.readouterr().out
    assert "50.0 [20.0, 80.0]" in shown and "share" not in shown
    assert {s.tasks for s in tj.score(run, task_id="goal").scores if s.n} == {10}
    words = ["audit", str(run), "--evaluator", "heuristic", "--out", str(tmp_path / "audit")]
    assert main([*words, *goals]) == main(words) == 0
    by_goal, by_id = (tj.audit(run, evaluator="heuristic", task_id=t) for t in ("goal", "recorded"))
    assert by_goal.errors[0].precision.low == pytest.approx(0.19984, abs=0.0001)
    assert "counts 40 tasks" in by_id.shared_goals and not by_goal.shared_goals
    (run / "goals.jsonl").unlink()
    capsys.readouterr()
    assert main(["score", str(run), *goals]) == 2
    assert "name no goals" in capsys.readouterr().err


def test_ranks_say_both_widths_and_count_goals(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["score", str(run), "--ranks", "--baselines", "off"]
    assert main(words) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "50.0 [33.8, 66.2] counts 40 tasks, 50.0 [20.0, 80.0] 10 goals" in shown
    assert main([*words, "--task-id", "goal"]) == 0
    shown = capsys.readouterr().out
    assert "50.0 [20.0, 80.0]" in shown and "task ids" not in shown


def test_agreement_counts_goals_in_a_queue_and_in_its_export(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queue, out = str(tmp_path / "queue"), tmp_path / "labels"
    build = ["label", "build", str(run), "--budget", "40", "--double", "1", "--out", queue]
    assert main(build) == 0
    labels = [
        Label(key=one.key, raw_task_id="", annotator=name, success=success)
        for number in range(40)
        for one in (with_goal(number, ""),)
        for name, success in (("x", number // 4 % 2 == 0), ("y", number // 4 < 7))
    ]
    file = tmp_path / "opinions.jsonl"
    annotation_store.write(file, labels)
    assert main(["label", "import", queue, "--annotations", f"trajudge:{file}"]) == 0
    assert main(["label", "export", queue, "--out", str(out)]) == 0
    exported = ["label", "estimate", "--annotations", f"trajudge:{out / 'labels.jsonl'}"]
    for words in (["label", "estimate", queue], exported):
        capsys.readouterr()
        assert main(words) == 0
        captured = capsys.readouterr()
        assert "counts 40 tasks" in captured.err and " 10 goals" in captured.err
        assert main([*words, "--task-id", "goal", "--json"]) == 0
        by_goal = capsys.readouterr()
        assert "goals" not in by_goal.err
        success = json.loads(by_goal.out)["agreement"][0]
        assert (success["label"], success["n"], success["tasks"]) == ("success", 40, 10)
    (out / "goals.jsonl").unlink()
    assert main([*exported, "--task-id", "goal"]) == 2


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (with_goal(1, "  buy  ITEM 1"), True),
        (with_goal(1, "Buy item 1", "https://shop.example"), True),
        (with_goal(1, "Buy item 1", "https://other.example/"), False),
        (with_goal(1, "Buy item 1", None), False),
        (with_goal(1, "Buy item 11"), False),
    ],
)
def test_a_goal_is_its_words_and_its_start_page(other: Trajectory, same: bool) -> None:
    assert (goal_digest(with_goal(0, "Buy item 1")) == goal_digest(other)) is same
    assert goal_digest(with_goal(0, " ")) == 0


def test_a_file_of_goals_that_cannot_be_read_is_named(run: Path) -> None:
    lines = (run / "goals.jsonl").read_text().splitlines()
    assert json.loads(lines[0]).keys() == {"benchmark", "task_id", "goal"}
    (run / "goals.jsonl").write_text("[]\n")
    with pytest.raises(tj.UserError, match=r"goals\.jsonl: cannot be read as goals"):
        read_goals(run)


_SITES, _EACH, _AGENTS = 12, 5, ("one", "two")


def numbered() -> list[TrajectoryKey]:
    """The tasks of sites, as CUAVerifierBench names them."""
    return [
        TrajectoryKey(benchmark="cuaverifierbench", agent=agent, task_id=f"set/Site {site}--{n}")
        for site in range(_SITES)
        for n in range(_EACH)
        for agent in _AGENTS
    ]


def attempts() -> list[TrajectoryKey]:
    """The same runs as attempts at one task of each site."""
    return [
        TrajectoryKey(benchmark="other", agent=agent, task_id=f"set/Site {site}", attempt=n)
        for site in range(_SITES)
        for n in range(_EACH)
        for agent in _AGENTS
    ]


Made = tuple[list[Label], list[Judgment]]


def made(keys: list[TrajectoryKey]) -> Made:
    """Label and judge the runs so that those of a site mostly end alike."""
    rng = np.random.default_rng(5)
    by_site = np.repeat(rng.random(_SITES) < 0.6, _EACH * len(_AGENTS))
    success = np.where(rng.random(len(keys)) < 0.8, by_site, rng.random(len(keys)) < 0.5).tolist()
    says = np.where(rng.random(len(keys)) < 0.8, success, by_site).tolist()
    labels = [
        Label(key=key, raw_task_id=key.task_id, annotator="A", success=yes, process=yes)
        for key, yes in zip(keys, success, strict=True)
    ]
    judgments = [
        Judgment(key=key, judge="judge", status=Status.OK, success=yes, process=yes)
        for key, yes in zip(keys, says, strict=True)
    ]
    return labels, judgments


def of_faults(labels: list[Label], judgments: list[Judgment]) -> object:
    [found] = fault_scores(judgments, {each.key: each for each in labels})
    return found.intervals


def of_audit(labels: list[Label], judgments: list[Judgment]) -> object:
    expert = {each.key: bool(each.success) for each in labels}
    rule = {each.key: bool(each.success) for each in judgments}
    labelled = Labelled.of(expert, expert)
    verdicts = np.array([rule[key] for key in expert])
    found = rank_agents("overall", "judge", labelled, verdicts)
    return labelled.rate(verdicts, np.ones(len(verdicts), dtype=bool)), found.low, found.high


def of_selection(labels: list[Label], judgments: list[Judgment]) -> object:
    family = CandidateFamily(name="judge", rule=Rule(judges=("judge",)), thresholds=(1.0,))
    plan = SelectionPlan(target=Target(rate=0.5), families=(family,))
    evidence = gather(plan, judgments, {each.key: each for each in labels})
    [found] = decide(plan, evidence).findings
    return found.p_value, found.precision, found.recall


def of_transfer(_: list[Label], judgments: list[Judgment]) -> object:
    same = Homogeneity(rates={}, chi_square=0.0, df=1, p_value=1.0)
    transport = Transport(
        allowed=True,
        reason="",
        false_positive_rate=same,
        true_positive_rate=same,
        least_success_rate=0.9,
        accepted_to_label=None,
        equivalence=Equivalence(margin=0.1, false_positive=0.0, true_positive=0.0),
        false_positive_limit=0.0,
    )
    rule = Rule(judges=("judge",))
    return [*transfer_obstacles(transport, rule, 1.0, judgments, 0.95).values()]


def of_agreement(labels: list[Label], judgments: list[Judgment]) -> object:
    seconds = [
        first.model_copy(update={"role": Role.SECONDARY, "success": second.success})
        for first, second in zip(labels, judgments, strict=True)
    ]
    found = next(each for each in label_agreements([*labels, *seconds]) if each.label == "success")
    return found.tasks, found.intervals


def of_folds(labels: list[Label], _: list[Judgment]) -> object:
    step = Step(index=0, action="click('1')")
    runs = [
        Trajectory(key=each.key, raw_task_id=each.key.task_id, goal="Find it.", steps=(step,))
        for each in labels
    ]
    return len(np.unique(Examples.of(runs, {each.key: True for each in labels}).groups))


def of_changes(labels: list[Label], judgments: list[Judgment]) -> object:
    changes = [
        VariantLine(
            key=each.key.model_copy(update={"agent": f"{each.key.agent}-changed"}),
            of=each.key,
            perturbation="drawn-warm",
            version=1,
            relations={LabelQuestion.SUCCESS: Relation.KEEP},
            truth={LabelQuestion.SUCCESS: each.success},
            edits=(),
            source_truth=each.success,
        )
        for each in labels
    ]
    clean = {each.key: RunVerdict(each.success) for each in labels}
    after = {
        change.key: RunVerdict(each.success)
        for change, each in zip(changes, judgments, strict=True)
    }
    [pairs] = perturbed_pairs(changes, clean | after)
    return len(set(pairs.cluster.tolist()))


def of_attempts_to_deceive(labels: list[Label], _: list[Judgment]) -> object:
    return adaptive_success([each.key for each in labels], []).within


@pytest.mark.parametrize(
    "measured",
    [
        of_faults,
        of_audit,
        of_selection,
        of_transfer,
        of_agreement,
        of_folds,
        of_changes,
        of_attempts_to_deceive,
    ],
)
def test_numbered_tasks_of_a_site_count_as_runs_of_one_task(
    measured: Callable[[list[Label], list[Judgment]], object],
) -> None:
    assert measured(*made(numbered())) == measured(*made(attempts()))


def test_no_site_stands_in_the_training_file_and_in_the_test_file() -> None:
    runs = [JudgedRun(key, 1.0, True, str(key).encode()) for key in numbered()]
    config = TrainingConfig(format="trl-messages", test_share=0.3)
    sites: dict[str, set[str]] = {}
    for _, (run, file) in choose_runs(runs, config).runs.items():
        sites.setdefault(file, set()).add(family_of(run.key))
    assert {file: len(names) for file, names in sites.items()} == {"train": 8, "test": 4}
