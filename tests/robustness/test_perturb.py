"""`trajudge data perturb` writes data that judges run on, the same bytes for the same seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from trajudge.annotations import open_annotations, primary_labels
from trajudge.annotations import store as label_store
from trajudge.annotations.model import Label
from trajudge.eval.cli import main
from trajudge.robustness.catalogue import catalogue
from trajudge.robustness.model import Facts
from trajudge.robustness.perturb import limited
from trajudge.robustness.subjects import Subjects, subjects, with_siblings
from trajudge.trajectories import store
from trajudge.trajectories.model import Trajectory, TrajectoryKey

OTHER = ("--perturbation", "own-note-native")  # only of runs that were recorded with it
NAMES = ("--perturbation", "identity", "--limit", "3")


def test_the_labels_are_those_after_the_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "attacked"
    assert main(["data", "perturb", "--data", "sample", "--out", str(out), *NAMES, *OTHER]) == 0
    assert "3 trajectories by 1 of 2 perturbations" in capsys.readouterr().out
    written = subjects(f"trajudge:{out}")
    source = primary_labels(open_annotations("sample"))
    of = {key.model_copy(update={"agent": f"{key.agent}~identity"}): key for key in source}
    variants = [one for one in written.trajectories if one.key in of]
    sources = [one for one in written.trajectories if one.key in source]
    assert len(written.trajectories) == len(variants) + len(sources) == 6
    assert len({one.key.task_id for one in variants}) == 3
    assert [one.key for one in sources] == [of[one.key] for one in variants]
    for one in sources:
        assert written.facts[one.key].success is source[one.key].success
    for one in variants:
        assert one.metadata["repeat"] == 1
        assert written.facts[one.key].success is source[of[one.key]].success


@pytest.mark.parametrize(
    ("failures", "successes", "kept"),
    [(10, 10, (4, 2)), (3, 10, (3, 3)), (10, 1, (5, 1)), (1, 1, (1, 1))],
)
def test_of_six_runs_four_failed_if_there_are_enough(
    failures: int, successes: int, kept: tuple[int, int]
) -> None:
    (one, *_) = subjects("sample").trajectories
    runs, facts = [], {}
    for number in range(failures + successes + 1):
        key = one.key.model_copy(update={"task_id": str(number)})
        runs.append(one.model_copy(update={"key": key}))
        facts[key] = Facts(success=None if number == failures + successes else number >= failures)
    left = limited(Subjects(tuple(runs), facts), 6).trajectories
    found = [facts[run.key].success for run in left]
    assert (found.count(False), found.count(True), found.count(None)) == (*kept, 0)


def test_the_runs_of_a_case_are_known_to_each_other_by_their_state() -> None:
    (one, *_) = subjects("sample").trajectories
    keys = {
        agent: TrajectoryKey(benchmark="b", agent=agent, task_id="t")
        for agent in ("a", "b", "a~dark", "z~dark", "labelled", "open", "unknown")
    }
    runs = {agent: one.model_copy(update={"key": key}) for agent, key in keys.items()}
    state = dict.fromkeys(("a", "b", "a~dark", "z~dark"), Facts(source="state", success=True))
    known = {**state, "labelled": Facts(success=True), "open": Facts(source="state")}
    facts = {keys[agent]: fact for agent, fact in known.items()}
    found = with_siblings(runs.values(), facts, {"dark"})
    siblings = {
        agent: [other.trajectory.key.agent for other in found[keys[agent]].siblings]
        for agent in known
    }
    assert siblings == {
        **{"a": ["b", "z~dark"], "b": ["a", "z~dark"], "z~dark": ["a", "b"]},
        **{"a~dark": [], "labelled": [], "open": []},
    }
    again = {agent: [*found[keys[agent]].again] for agent in known}
    assert again == {agent: ["dark"] if agent == "a" else [] for agent in known}


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for out in folders:
        assert main(["data", "perturb", "--data", "sample", "--out", str(out), *NAMES]) == 0
    names = sorted(path.name for path in folders[0].iterdir() if path.is_file())
    assert "variants.jsonl" in names
    for name in names:
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes()


def test_an_unknown_perturbation_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "perturb", "--data", "sample", "--perturbation", "identitty"]) == 2
    said = capsys.readouterr().err
    assert "--perturbation identitty: is unknown, did you mean 'identity'? " in said
    assert len(said) < 200
    assert main(["data", "perturb", "--data", "sample", "--perturbation", "xyz"]) == 2
    assert (
        "--perturbation xyz: is unknown: trajudge data perturb --list " in capsys.readouterr().err
    )


def test_the_catalogue_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["data", "perturb", "--list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in catalogue())
    assert "The last reasoning fills in a review." in shown
    assert not list(tmp_path.iterdir())


def test_texts_may_hold_what_unicode_calls_the_end_of_a_line(tmp_path: Path) -> None:
    """In names, goals and answers, from the data to the canaries: only a line feed ends a line."""
    ends = "a\u2028b\u2029c\x85d"
    data, out, canaries = tmp_path / "data", tmp_path / "out", tmp_path / "canaries.jsonl"
    keys = [TrajectoryKey(benchmark="b", agent=ends, task_id=f"{ends}{n}") for n in range(4)]
    sample = subjects("sample").trajectories
    runs = [
        Trajectory(key=key, raw_task_id=key.task_id, goal=ends, answer=ends, steps=one.steps)
        for key, one in zip(keys, sample, strict=False)
    ]
    store.write(data, runs)
    labels = [
        Label(key=key, raw_task_id=key.task_id, annotator="p", success=n % 2 == 0)
        for n, key in enumerate(keys)
    ]
    label_store.write(data / "labels.jsonl", labels)
    words = ["robust", "--judge", "heuristic", "--data", f"trajudge:{data}", "--out", str(out)]
    words += ["--perturbation", "claim-confident", "--drift", str(canaries)]
    assert main(words) == 0
    for file in (canaries, out / "attacked" / "variants.jsonl"):
        content = file.read_bytes()
        assert all(letter.encode() in content for letter in "\u2028\u2029\x85"), "not escaped"
    assert main(words) == 0, "the canaries are asked again"
    (run,) = (out / "runs").iterdir()
    given = ["robust", str(run), "--attacked", str(out / "attacked"), "--out", str(tmp_path / "o")]
    assert main(given) == 0
