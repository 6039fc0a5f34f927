"""Annotator agreement, against scikit-learn, the krippendorff package and the paper's figures."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from trajudge.annotations import Label, Role, open_annotations
from trajudge.annotations.store import write
from trajudge.eval.cli import main
from trajudge.eval.labelling.agreement import SCALES, AnnotatedLabel, label_agreements
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
