"""Agreement of annotators, against other packages and the figures of the paper."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from trajudge.annotations import Label, Role, open_annotations
from trajudge.annotations.store import write
from trajudge.eval.cli import main
from trajudge.eval.labelling.agreement import SCALES, AnnotatedLabel, label_agreements
from trajudge.stats.agreement import (
    BY_CHANCE,
    NOT_PAIRABLE,
    TOO_FEW_TASKS,
    Scale,
    annotator_agreement,
    krippendorff_alpha,
)
from trajudge.stats.intervals import Floats, Ints, clustered_agreement
from trajudge.trajectories.model import TrajectoryKey


def opinion(
    task: str,
    role: Role,
    success: bool | None,
    benchmark: str = "webarena",
    annotator: str = "x",
) -> Label:
    key = TrajectoryKey(benchmark=benchmark, agent="a", task_id=task)
    return Label(key=key, raw_task_id=task, annotator=annotator, role=role, success=success)


def test_only_pairs_without_an_unsure_label_count() -> None:
    annotations = [
        opinion("1", Role.SECONDARY, True),
        opinion("1", Role.PRIMARY, True),
        opinion("2", Role.PRIMARY, None),
        opinion("2", Role.SECONDARY, True),
        opinion("3", Role.PRIMARY, False),
        opinion("4", Role.PRIMARY, False),
        opinion("4", Role.SECONDARY, True),
        opinion("4", Role.SECONDARY, False, annotator="y"),
    ]
    found = label_agreements(annotations)[0]
    assert (found.label, found.n, found.unsure, found.raw) == ("success", 2, 1, 0.5)


def test_who_corrects_a_label_does_not_disagree_with_it() -> None:
    first = opinion("1", Role.PRIMARY, True)
    by_another = first.model_copy(update={"annotator": "y", "success": False})
    corrected = [first, by_another, first.model_copy(update={"success": False})]
    found = label_agreements(corrected)[0]
    assert (found.n, found.raw) == (1, 1.0)


def test_of_one_benchmark_there_is_one_row_a_label_and_of_several_one_more() -> None:
    annotations = [opinion("1", role, True) for role in Role]
    assert [a.benchmark for a in label_agreements(annotations)] == ["overall"] * 4
    annotations += [opinion("1", role, True, "a-benchmark") for role in Role]
    benchmarks = [a.benchmark for a in label_agreements(annotations) if a.label == "success"]
    assert benchmarks == ["webarena", "a-benchmark", "overall"]


def pairs(annotations: list[Label], label: AnnotatedLabel) -> tuple[list[int], list[int]]:
    """Both annotators' values, read independently of what is tested."""
    by_key: dict[TrajectoryKey, list[Label]] = defaultdict(list)
    for annotation in annotations:
        by_key[annotation.key].append(annotation)
    both = [[getattr(a, label) for a in found[:2]] for found in by_key.values() if len(found) > 1]
    known = [(int(first), int(second)) for first, second in both if None not in (first, second)]
    return [first for first, _ in known], [second for _, second in known]


@pytest.mark.real_data
@pytest.mark.parametrize("split", ["test", "all"])
def test_the_figures_are_those_of_other_implementations(real_data: Path, split: str) -> None:
    import krippendorff
    from sklearn.metrics import accuracy_score, cohen_kappa_score

    everything = open_annotations(f"agentrewardbench:{real_data / 'agentrewardbench'}")
    chosen = [a for a in everything if split in (a.split, "all")]
    overall = {a.label: a for a in label_agreements(chosen) if a.benchmark == "overall"}
    for label, scale in SCALES.items():
        first, second = pairs(chosen, label)
        found = overall[label]
        assert found.n == len(first)
        assert found.raw == pytest.approx(accuracy_score(first, second))
        assert found.kappa == pytest.approx(cohen_kappa_score(first, second))
        alpha = krippendorff.alpha(np.array([first, second]), level_of_measurement=scale)
        assert found.alpha == pytest.approx(alpha)


@pytest.mark.real_data
def test_the_figures_of_the_benchmarks_paper(
    real_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = f"agentrewardbench:{real_data / 'agentrewardbench'}"
    words = ["label", "estimate", "--annotations", source, "--split", "test", "--json"]
    assert main(words) == 0
    listed = json.loads(capsys.readouterr().out)["agreement"]
    found = {each["label"]: each for each in listed if each["benchmark"] == "overall"}
    assert round(found["success"]["raw"], 4) == 0.8929
    kappas = {label: round(a["kappa"], 3) for label, a in found.items()}
    assert kappas == {
        "success": 0.777,
        "side_effect": 0.708,
        "repetition": 0.713,
        "optimality": 0.484,
    }
    assert {a["n"] for a in found.values()} == {84}
    low, high = found["success"]["intervals"]["kappa"]
    assert low < 0.777 < high


def test_without_a_second_opinion_the_command_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = [opinion(task, Role.PRIMARY, True) for task in "123"]
    write(tmp_path / "labels.jsonl", labels)
    words = ["label", "estimate", "--annotations", f"trajudge:{tmp_path / 'labels.jsonl'}"]
    assert main(words) == 2
    refused = capsys.readouterr().err
    assert "no trajectory has labels of two annotators" in refused
    assert "fewer than two" not in refused  # there are three


def test_the_table_holds_every_label(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = [opinion(str(n), role, n % 3 == 0) for n in range(9) for role in Role]
    write(tmp_path / "labels.jsonl", labels)
    words = ["label", "estimate", "--annotations", f"trajudge:{tmp_path / 'labels.jsonl'}"]
    assert main(words) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line[:12].strip() for line in printed[2:]] == [
        "success",
        "side effect",
        "repetition",
        "optimality",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
@given(
    labels=hnp.arrays(
        float,
        st.tuples(st.integers(2, 4), st.integers(3, 10)),
        elements=st.sampled_from([1.0, 2.0, 3.0, float("nan")]),
    )
)
def test_alpha_is_the_krippendorff_packages(scale: Scale, labels: Floats) -> None:
    krippendorff = pytest.importorskip(
        "krippendorff", reason="krippendorff, the reference here, is not installed"
    )
    paired = labels[:, (~np.isnan(labels)).sum(axis=0) > 1]
    assume(len(np.unique(paired[~np.isnan(paired)])) > 1)
    ours = krippendorff_alpha(labels, scale=scale)
    theirs = krippendorff.alpha(paired, level_of_measurement=scale)
    assert ours.estimate[0] == pytest.approx(theirs, abs=1e-9)


def test_alpha_of_many_units_has_an_interval_around_it() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 100)
    labels = np.where(rng.random((3, 100)) < 0.9, truth, 1 - truth).astype(float)
    found = krippendorff_alpha(labels)
    assert found.low[0] < found.estimate[0] < found.high[0]
    assert 0.5 < found.estimate[0] < 0.8


def test_alpha_without_a_pair_is_undefined() -> None:
    labels = [[1, np.nan], [np.nan, 0]]
    found = krippendorff_alpha(labels)
    assert np.isnan(found.estimate).all()
    assert found.notes == (NOT_PAIRABLE,)


def drawn(rng: np.random.Generator, tasks: int, accuracy: float) -> tuple[Ints, Ints]:
    """Labels (2, N) of four values from annotators who see the truth with probability
    ``accuracy`` and else draw from the margin, so that kappa is ``accuracy`` squared; the tasks of
    N trajectories, one or two a task, half of which share their truth."""
    margin = [0.4, 0.3, 0.2, 0.1]
    task = np.repeat(np.arange(tasks), rng.integers(1, 3, tasks))
    n = len(task)
    shared = rng.choice(4, tasks, p=margin)[task]
    truth = np.where(rng.random(n) < 0.5, shared, rng.choice(4, n, p=margin))
    seen = rng.random((2, n)) < accuracy
    return np.where(seen, truth, rng.choice(4, (2, n), p=margin)), task


@pytest.mark.slow
def test_the_intervals_over_tasks_cover() -> None:
    rng, accuracy = np.random.default_rng(3), 0.75
    raw = accuracy**2 + (1 - accuracy**2) * 0.3
    covered = []
    for _ in range(400):
        found = annotator_agreement(*drawn(rng, 50, accuracy))
        truths = ((found.raw, raw), (found.kappa, accuracy**2), (found.alpha, accuracy**2))
        covered.append([bool(interval.covers(truth)[0]) for interval, truth in truths])
    # Three Monte Carlo errors below 95 %.
    assert (np.mean(covered, axis=0) > 0.95 - 3 * (0.95 * 0.05 / 400) ** 0.5).all()


def test_copies_of_a_trajectory_in_its_task_add_no_certainty() -> None:
    labels, _ = drawn(np.random.default_rng(0), 80, 0.75)
    units = np.arange(labels.shape[1])
    once = annotator_agreement(labels, units)
    copied = annotator_agreement(np.tile(labels, 3), np.tile(units, 3))
    assert copied.kappa.estimate == pytest.approx(once.kappa.estimate)
    for name, within in (("raw", 0.06), ("kappa", 0.02), ("alpha", 0.02)):
        # One label a task has the exact interval of a rate, which is wider.
        assert getattr(copied, name).width == pytest.approx(getattr(once, name).width, rel=within)


def test_of_two_values_the_interval_of_kappa_is_that_of_judges() -> None:
    rng = np.random.default_rng(1)
    truth = rng.random(120) < 0.3
    labels = np.stack([truth, np.where(rng.random(120) < 0.85, truth, ~truth)]).astype(float)
    task = np.arange(120) // 2
    cells = np.stack([labels[0] * labels[1], (1 - labels[0]) * labels[1]], axis=1)
    cells = np.column_stack([cells, labels[0] * (1 - labels[1]), (1 - labels[0]) * (1 - labels[1])])
    counts = cells.reshape(60, 2, 4).sum(axis=1)
    judges = clustered_agreement(counts, [60])[0]
    found = annotator_agreement(labels, task).kappa
    assert found.estimate[0] == pytest.approx(float(judges.estimate))
    assert [found.low[0], found.high[0]] == pytest.approx(
        [float(judges.low), float(judges.high)], abs=1e-6
    )


def test_one_task_and_one_value_have_no_interval() -> None:
    alone = annotator_agreement([[1, 0, 1], [1, 1, 0]], ["t", "t", "t"])
    assert np.isnan(alone.kappa.low[0])
    assert alone.kappa.notes == (TOO_FEW_TASKS,)
    alike = annotator_agreement([[1, 1], [1, 1]], ["t", "u"])
    assert alike.kappa.notes == (BY_CHANCE,)
    assert annotator_agreement([[1.0], [np.nan]], ["t"]).n == 0
