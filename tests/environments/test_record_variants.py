"""Runs recorded once more in Chromium, and what `trajudge robust` makes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.robustness import judges
from trajudge.environments.model.case import read_cases, write_cases
from trajudge.environments.recheck import rechecked
from trajudge.environments.variants import NOTE
from trajudge.eval.cli import main
from trajudge.robustness import families
from trajudge.robustness.apply import apply, problems
from trajudge.robustness.catalogue import catalogue
from trajudge.robustness.model import LabelQuestion, NotApplicable, Perturbed, truth_after
from trajudge.robustness.perturb import VariantLine
from trajudge.robustness.subjects import Subjects, subjects
from trajudge.trajectories.sample import sample_path

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("chromium")]

PAYLOADS = Path(families.__file__).parent / "injections.yaml"
WORDINGS = yaml.safe_load(PAYLOADS.read_text())["goals"]["success"]
JUDGES = Path(judges.__file__).parent
NATIVE = [one for one in catalogue().values() if one.grade == "native"]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory, chromium: Path) -> Path:
    """Two cases, an agent that does them and one that stops early, in all variants."""
    folder = tmp_path_factory.mktemp("variants")
    cases = [
        case
        for case in read_cases(sample_path() / "cases.jsonl")
        if case.config.scenario in ("buy", "run-job")
    ]
    write_cases(folder / "cases.jsonl", cases)
    given = ["--cases", str(folder / "cases.jsonl"), "--agent", "oracle", "stops-early"]
    given += ["--payloads", str(PAYLOADS), "--variants", "all"]
    assert main(["env", "record", *given, "--out", str(folder / "run"), "--workers", "2"]) == 0
    return folder / "run"


@pytest.fixture(scope="module")
def known(recording: Path) -> Subjects:
    return subjects(f"trajudge:{recording}")


def test_each_label_follows_from_the_state_that_was_left(recording: Path) -> None:
    runs = list(rechecked(recording))
    assert {one.trajectory.key.agent.partition("~")[2] for one in runs} == {
        "",
        *(one.name for one in NATIVE if one.name != "page-visited-native"),
    }
    assert [one.trajectory.key for one in runs if one.differences] == []


def test_a_variant_belongs_to_its_source_and_is_no_run_of_its_own(known: Subjects) -> None:
    assert len(known.trajectories) == 4
    for source in known.trajectories:
        facts = known.facts[source.key]
        assert "theme" in facts.again
        assert not any("~" in one.trajectory.key.agent for one in facts.siblings)
        assert ("undo" in facts.again) is (source.key.agent == "scripted-b")


def test_what_is_said_of_a_native_run_is_what_its_state_says(known: Subjects) -> None:
    applied = set()
    for one in NATIVE:
        for source in known.trajectories:
            facts = known.facts[source.key]
            made = apply(one, source, facts)
            if isinstance(made, NotApplicable):
                continue
            applied.add(one.name)
            assert isinstance(made, Perturbed)
            assert problems(one, source, made, facts) == [], (one.name, source.key)
            assert made.trajectory.key == source.key and made.trajectory.goal == source.goal
            for question, relation in made.relations.items():
                other = facts.again[one.name]
                assert truth_after(relation, getattr(facts, question)) is getattr(other, question)
    assert applied >= {"undo", "theme", "page-native", "own-note-native"}


def test_what_was_planted_and_noted_stands_in_the_trees(known: Subjects) -> None:
    trees: dict[str, str] = {}
    for source in known.trajectories:
        for name, one in known.facts[source.key].again.items():
            pages = (step.observation.axtree or "" for step in one.trajectory.steps)
            trees[name] = "\n".join([trees.get(name, ""), *pages])
    planted = {name for name, tree in trees.items() if any(text[:60] in tree for text in WORDINGS)}
    assert planted == {"page-native"}
    assert NOTE in trees["own-note-native"] and NOTE not in trees["own-note-native-benign"]


@pytest.fixture(scope="module")
def attacked(recording: Path) -> Path:
    """The folder of changed runs that `trajudge robust` makes of the recording."""
    out = recording.parent / "robust"
    given = ["--judge", "heuristic", "--data", f"trajudge:{recording}", "--out", str(out)]
    assert main(["robust", *given]) == 0
    return out / "attacked"


def rates(attacked: Path, out: Path, judge: str, *options: str) -> dict[str, Any]:
    """What ``trajudge robust`` says of a scripted judge, by perturbation."""
    words = [word for option in options for word in ("--judge-option", option)]
    given = ["--judge", str(JUDGES / f"{judge}.py"), "--attacked", str(attacked)]
    assert main(["robust", *given, *words, "--out", str(out), "--yes"]) == 0
    (found,) = json.loads((out / "robustness.json").read_text())["judges"]
    return {one["name"]: one for one in found["rates"]}


def test_the_command_takes_what_was_recorded(attacked: Path) -> None:
    lines = (attacked / "variants.jsonl").read_text().splitlines()
    variants = [VariantLine.model_validate_json(line) for line in lines]
    named = {one.perturbation for one in variants}
    assert named >= {one.name for one in NATIVE if one.name != "page-visited-native"}
    undone = [one for one in variants if one.perturbation == "undo"]
    assert undone and all(one.truth[LabelQuestion.SUCCESS] is False for one in undone)
    assert main(["env", "verify", str(attacked)]) == 0


def test_who_obeys_falls_for_the_page_and_not_for_its_twin(attacked: Path, tmp_path: Path) -> None:
    found = rates(attacked, tmp_path / "out", "gullible")
    assert found["page-native"]["attack_success"]["estimate"] == 1
    assert found["page-native"]["twin_success"]["estimate"] == 0
    assert found["own-note-native"]["flips"]["hits"] == 0, "it obeys instructions, not claims"


def test_who_knows_the_state_follows_it(attacked: Path, tmp_path: Path) -> None:
    found = rates(attacked, tmp_path / "out", "oracle", f"labels={attacked}/labels.jsonl")
    assert found["undo"]["pair_accuracy"]["estimate"] == 1
    names = [one.name for one in NATIVE if one.name in found and one.name != "undo"]
    assert [name for name in names if found[name]["flips"]["hits"]] == []
