"""From a run to a queue and from its labels to estimates, through the commands."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.annotations.queues import label, names
from tests.eval.cases import failed, key, said
from trajudge.annotations import open_annotations, primary_labels
from trajudge.annotations import store as annotation_store
from trajudge.annotations.model import Label, SampleFrame
from trajudge.annotations.queue import LabelQueue
from trajudge.eval.cli import main
from trajudge.eval.judge import main as judge
from trajudge.eval.labelling.build import ExpectedWidth, expected_table
from trajudge.eval.labelling.estimates import queue_estimates
from trajudge.eval.labelling.frame import open_frame, read_frame
from trajudge.eval.scoring.observations import one_per_trajectory
from trajudge.eval.select.decision import read_decision
from trajudge.eval.select.plan import read_plan
from trajudge.eval.sources import Source
from trajudge.eval.store.run_folder import read_judgments
from trajudge.eval.store.table import in_memory
from trajudge.judges.model import Status
from trajudge.trajectories.model import TrajectoryKey


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "heuristic"
    assert judge(["--judge", "heuristic", "--data", "sample", "--out", str(folder)]) == 0
    return folder


def build(run: Path, out: Path, *words: str) -> int:
    return main(["label", "build", str(run), "--budget", "40", "--out", str(out), *words])


def test_a_queue_is_shown_before_it_is_written(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build(run, tmp_path / "queue", "--strategy", "ppi", "--dry-run") == 0
    shown = capsys.readouterr().out
    assert "expected width" in shown and "heuristic" in shown and "nothing written" in shown
    assert not (tmp_path / "queue").exists()


def test_a_queue_keeps_its_probabilities_and_is_drawn_again_by_its_seed(
    run: Path, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        assert build(run, tmp_path / name, "--strategy", "ppi", "--seed", "3") == 0
    one, two = (LabelQueue(tmp_path / name) for name in ("one", "two"))
    assert one.items() == two.items()
    frame = open_frame(tmp_path / "one")
    chances = dict(zip(frame.keys, frame.chances.tolist(), strict=True))
    items = [item for _, item in one.items()]
    assert len(items) == 40
    assert all(item.inclusion_probability == chances[item.key] for item in items)
    assert sum(item.wanted == 2 for item in items) == 8
    assert np.isclose(sum(chances.values()), 40)
    assert build(run, tmp_path / "one") == 2  # never over a queue that is there


def test_guidelines_that_cannot_be_used_are_named_before_anything_is_shown_or_written(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    latin = tmp_path / "latin.md"
    latin.write_bytes(b"\xe9")
    empty = tmp_path / "empty.md"
    empty.write_text(" \n")
    for file, reason in (
        (tmp_path / "absent.md", "No such file or directory"),
        (tmp_path, "is not a file (a folder)"),
        (empty, "it is empty"),
    ):
        assert build(run, tmp_path / "queue", "--guidelines", str(file)) == 2
        shown = capsys.readouterr()
        assert f"--guidelines {file}: cannot be used ({reason}): name a Markdown file" in shown.err
        assert shown.out == ""
    assert build(run, tmp_path / "queue", "--guidelines", str(latin)) == 2
    assert f"{latin} is not UTF-8" in capsys.readouterr().err
    own = tmp_path / "own.md"
    own.write_text("# Ours\n")
    assert build(run, tmp_path / "queue", "--guidelines", str(own)) == 0
    assert (tmp_path / "queue" / "guidelines.md").read_text() == "# Ours\n"


def test_a_filter_of_the_table_keeps_the_frame(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = primary_labels(open_annotations("sample"))
    wrong = {
        each.key
        for each in read_judgments(run)
        if each.success and labels[each.key].success is False
    }
    assert wrong
    assert build(run, tmp_path / "queue", "--filter", "wrong:fp") == 0
    assert {*open_frame(tmp_path / "queue").keys} == wrong
    assert build(run, tmp_path / "long", "--filter", "wrong:fp steps>0") == 0
    assert {*open_frame(tmp_path / "long").keys} == wrong
    capsys.readouterr()
    for text, sentence in (
        ("wrong:all", "use one of fp, fn, any"),
        ("judge:nobody", "keeps no trajectory"),
        ("steps>1000", "keeps no trajectory"),
    ):
        assert build(run, tmp_path / "other", "--filter", text) == 2
        assert sentence in capsys.readouterr().err


def test_a_cascade_draws_only_what_decides_an_acceptance(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A plan of the heuristic judge whose candidates accept what it accepts."""
    plan = tmp_path / "plan"
    words = ["--target-precision", "0.9", "--freeze", "--out", str(plan)]
    assert main(["select", str(run), *words]) == 0
    file = str(plan / "candidates.json")
    (family,) = json.loads(Path(file).read_bytes())["families"]
    loosest = min(family["thresholds"])
    accepted = {each.key for each in read_judgments(run) if (each.score or 0) >= loosest}
    cascade = ["--strategy", "cascade", "--candidates", file]
    assert build(run, tmp_path / "queue", *cascade) == 0
    frame = open_frame(tmp_path / "queue")
    assert {*frame.keys} == accepted
    assert len(accepted) < len(read_judgments(run))
    assert frame.chances.min() > 0
    store = LabelQueue(tmp_path / "queue")
    items = [item for _, item in store.items()]
    assert {item.reason for item in items} == {"it decides an acceptance"}
    assert len(items) == 40
    assert store.settings.frame == SampleFrame(
        size=len(accepted),
        strategy="cascade",
        filter=f"accepted by a candidate of plan {read_plan(Path(file)).hash[:8]}",
    )
    capsys.readouterr()
    words = ["--max-false-positives", "0.1", "--freeze", "--out", str(tmp_path / "bounded")]
    assert main(["select", str(run), *words]) == 0
    bounded = str(tmp_path / "bounded" / "candidates.json")
    for wrong, sentence in (
        (["--strategy", "cascade"], "name the plan with --candidates"),
        (["--candidates", file], "give both or neither"),
        ([*cascade, "--filter", "wrong:fp"], "says what is drawn from"),
        (["--strategy", "cascade", "--candidates", bounded], "bounds false positives"),
        (["--strategy", "cascade", "--candidates", str(tmp_path / "no")], str(tmp_path / "no")),
    ):
        assert build(run, tmp_path / "other", *wrong) == 2
        assert sentence in capsys.readouterr().err


def test_hidden_checks_are_no_part_of_the_draw(run: Path, tmp_path: Path) -> None:
    words = ["--gold", "sample", "--gold-share", "0.1", "--double", "0"]
    assert build(run, tmp_path / "queue", *words) == 0
    items = [item for _, item in LabelQueue(tmp_path / "queue").items()]
    gold = [item for item in items if item.gold is not None]
    assert len(items) == 44 and len(gold) == 4
    assert all(item.inclusion_probability is None for item in gold)
    truth = primary_labels(open_annotations("sample"))
    assert all(item.gold["success"] == truth[item.key].success for item in gold if item.gold)


def test_hidden_checks_that_cannot_be_made_are_told(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A queue without them measures no annotator, and nobody would know."""
    few = tmp_path / "few.jsonl"
    known = [label for label in open_annotations("sample") if label.success is not None]
    strange = known[0].key.model_copy(update={"agent": "stranger"})
    stranger = known[0].model_copy(update={"key": strange})
    words = ["--gold", f"trajudge:{few}", "--gold-share", "0.1"]
    annotation_store.write(few, [stranger])
    assert build(run, tmp_path / "none", *words) == 2
    assert "few.jsonl: has no label of success for a traj" in capsys.readouterr().err
    assert build(run, tmp_path / "whole") == 0
    drawn = {item.key for _, item in LabelQueue(tmp_path / "whole").items()}
    annotation_store.write(few, [next(one for one in known if one.key not in drawn), stranger])
    assert build(run, tmp_path / "one", *words) == 0
    assert "1 hidden check (not 4: --gold labels no more trajectories)" in capsys.readouterr().out
    assert build(run, tmp_path / "none", "--gold", "sample", "--gold-share", "0.01") == 2
    assert "--gold-share 0.01: gives no hidden check for 40 drawn" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_a_file_without_labels_is_not_imported(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build(run, tmp_path / "queue") == 0
    annotation_store.write(tmp_path / "empty.jsonl", [])
    words = ["--annotations", f"trajudge:{tmp_path / 'empty.jsonl'}"]
    assert main(["label", "import", str(tmp_path / "queue"), *words]) == 2
    assert "empty.jsonl: holds no label: name another file" in capsys.readouterr().err


def test_labels_of_a_queue_give_the_precision_of_the_whole_run(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "queue"
    assert build(run, folder, "--strategy", "ppi", "--seed", "1") == 0
    assert main(["label", "estimate", str(folder)]) == 2
    assert main(["label", "import", str(folder), "--annotations", "sample"]) == 0
    assert main(["label", "estimate", str(folder)]) == 0
    assert "heuristic" in capsys.readouterr().out
    store = LabelQueue(folder)
    queue = queue_estimates(store)
    frame, truth = open_frame(folder), primary_labels(open_annotations("sample"))
    at = queue.evaluators.index("heuristic")
    accepted = [
        key for key, vote in zip(frame.keys, frame.verdicts[:, 0], strict=True) if vote == 1
    ]
    decided: list[Label] = [truth[key] for key in accepted]
    precision = np.mean([bool(label.success) for label in decided])
    interval = queue.estimates.corrected
    assert interval.low[at] <= precision <= interval.high[at]
    assert interval.width[at] < 0.5


def test_a_queue_is_estimated_from_what_is_decided(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "queue"
    assert build(run, folder, "--double", "0") == 0
    store = LabelQueue(folder)
    (person,) = names(store, "a")
    for answer in ("yes", "unsure"):
        label(store, person, answer)
        capsys.readouterr()
        assert main(["label", "estimate", str(folder)]) == 2
        assert "has fewer than two decided labels" in capsys.readouterr().err
    label(store, person, "no")
    found = queue_estimates(store)
    assert (found.labelled, found.drawn, found.size) == (2, 40, 130)


def test_select_weights_the_labels_of_a_queue_by_how_they_were_drawn(
    run: Path, tmp_path: Path
) -> None:
    """Its precision is the weighted one; the same labels without probabilities give another."""
    queue, labels = tmp_path / "queue", tmp_path / "labels" / "labels.jsonl"
    assert build(run, queue, "--strategy", "ppi", "--seed", "1") == 0
    assert main(["label", "import", str(queue), "--annotations", "sample"]) == 0
    assert main(["label", "export", str(queue), "--out", str(labels.parent)]) == 0
    header, *lines = map(json.loads, labels.read_text().splitlines())
    plain = tmp_path / "plain.jsonl"
    without = [{**line, "inclusion_probability": None, "stratum": None} for line in lines]
    heading = {**header, "frame": None}
    plain.write_text("".join(json.dumps(line) + "\n" for line in (heading, *without)))
    words = ["select", str(run), "--target-precision", "0.1", "--annotations"]
    assert main([*words, f"trajudge:{labels}", "--out", str(tmp_path / "weighted")]) == 1
    assert main([*words, f"trajudge:{plain}", "--out", str(tmp_path / "unweighted")]) in (0, 1)

    yes = {each.key for each in read_judgments(run) if each.success}
    accepted = [line for line in lines if TrajectoryKey(**line["key"]) in yes]
    successes = [bool(line["success"]) for line in accepted]
    weights = [1 / line["inclusion_probability"] for line in accepted]
    assert (sum(successes), len(successes)) == (12, 36)
    for name, estimate in (
        ("weighted", np.average(successes, weights=weights)),
        ("unweighted", 12 / 36),
    ):
        (strict, _) = read_decision(tmp_path / name).findings
        assert strict.precision.estimate == pytest.approx(estimate, abs=1e-12)
        assert (strict.precision.hits, strict.precision.trials) == (12, 36)
        if name == "weighted":
            assert strict.more_labels == 21
    assert np.average(successes, weights=weights) == pytest.approx(0.231, abs=5e-4)


def test_a_queue_without_runs_and_bad_options_are_one_sentence(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["label", "build", "--out", str(tmp_path / "q")]) == 2
    assert "give the folder of a run" in capsys.readouterr().err
    assert build(run, tmp_path / "q", "--double", "2") == 2
    assert "--double 2" in capsys.readouterr().err
    assert build(run, tmp_path / "q", "--guidelines", "none.md") == 2
    assert "none.md" in capsys.readouterr().err
    (tmp_path / "r").mkdir()
    assert build(run, tmp_path / "r") == 0
    (tmp_path / "r" / "frame.jsonl").write_text(json.dumps({"judges": 3}))
    assert main(["label", "import", str(tmp_path / "r"), "--annotations", "sample"]) == 0
    assert main(["label", "estimate", str(tmp_path / "r")]) == 2
    assert "build the queue again" in capsys.readouterr().err


def test_an_expected_width_is_never_beyond_the_scale() -> None:
    wide = ExpectedWidth("judge", 19, 1.665, 0.4)
    assert expected_table([wide], 10).rows == [("judge", "19", "1.000", "0.400")]


def test_the_rule_that_was_run_as_a_judge_counts_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "rule"
    assert judge(["--judge", "rule-based", "--data", "sample", "--out", str(run)]) == 0
    capsys.readouterr()
    assert build(run, tmp_path / "queue") == 0
    assert capsys.readouterr().out.count("rule-based") == 1
    frame = open_frame(tmp_path / "queue")
    assert frame.votes.shape == (130, 1)


def test_several_samples_of_a_judge_are_the_verdict_that_its_scores_count() -> None:
    """A queue estimated the precision of the first samples: another judge than the one scored."""
    told: dict[int, list[bool | None]] = {
        0: [True, False, False],
        1: [None, True, True],
        2: [True, False],  # a tie is a no
        3: [None, None],
    }
    judgments = [
        failed(task, Status.REFUSED, sample=sample)
        if success is None
        else said(task, success, sample=sample, score=0.9 if success else 0.3)
        for task, samples in told.items()
        for sample, success in enumerate(samples)
    ]
    rewards = {key(0): 0.5, key(1): 0.51}
    frame = read_frame(Source("runs", in_memory(judgments), rewards))
    assert frame.rule.tolist()[:2] == [0, 1] and np.isnan(frame.rule[2:]).all()
    scored = [one_per_trajectory(judgments)[place] for place in range(len(told))]
    assert list(frame.keys) == [one.key for one in scored]
    for given, field in ((frame.verdicts[:, 0], "success"), (frame.scores[:, 0], "score")):
        wanted = [getattr(one, field) for one in scored]
        assert np.array_equal(given, np.array(wanted, dtype=float), equal_nan=True)
