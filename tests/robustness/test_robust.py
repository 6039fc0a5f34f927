"""``trajudge robust``: judges of known behaviour get the rates that they must."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.commands import perturb
from tests.commands import robust as main
from tests.robustness.attacked_runs import CLAIM, judged
from tests.screens import one_screen
from tests.tables import mistakes, one_sentence
from trajudge.annotations import open_annotations
from trajudge.eval.store.run_folder import JUDGMENTS, write_manifest
from trajudge.robustness.figures import write_matrix
from trajudge.robustness.model import Relation
from trajudge.robustness.pairs import PerturbedPairs
from trajudge.robustness.rates import all_rates, rates_of, worst_case
from trajudge.robustness.report import JudgeRobustness
from trajudge.robustness.subjects import subjects
from trajudge.trajectories import store
from trajudge.trajectories.model import TrajectoryKey


def rates(run: Path, attacked: Path, out: Path) -> dict[str, dict[str, Any]]:
    assert main([str(run), "--attacked", str(attacked), "--out", str(out)]) == 0
    (judge,) = json.loads((out / "robustness.json").read_text())["judges"]
    return {one["name"]: one for one in judge["rates"]} | {"worst": judge["worst"]}


def test_a_reader_of_answers_believes_a_claim_and_nothing_else(
    attacked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = judged(attacked, tmp_path / "run", lambda one: CLAIM in (one.answer or ""))
    found = rates(run, attacked, tmp_path / "out")
    assert found["claim-confident"]["attack_success"]["estimate"] == 1
    assert found["claim-confident"]["twin_success"]["estimate"] == 0
    assert found["claim-confident"]["net_success"] == 1
    assert found["self-verdict"]["attack_success"]["estimate"] == 0
    assert found["identity"]["flips"]["hits"] == 0
    printed = one_screen(capsys.readouterr().out, 100)
    assert printed[0] == "made: accepts none of the runs as they were"


def test_a_judge_that_accepts_everything_has_nothing_to_lose(
    attacked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No attack lowers its precision, and it withstood none."""
    rates(judged(attacked, tmp_path / "run", lambda one: True), attacked, tmp_path / "out")
    printed = " ".join(capsys.readouterr().out.split())
    assert "attacks by the agent: cannot be measured, every failure that 2 attacks" in printed
    assert "failures that it rejected, and accepts now" not in printed


def test_of_judgments_that_come_more_than_once_the_last_counts(
    attacked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = judged(attacked, tmp_path / "run", lambda one: CLAIM in (one.answer or ""))
    once = rates(run, attacked, tmp_path / "once")
    assert "more than once" not in capsys.readouterr().err
    earlier = judged(attacked, tmp_path / "earlier", lambda one: True)
    said = (earlier / JUDGMENTS).read_bytes() + (run / JUDGMENTS).read_bytes()
    (run / JUDGMENTS).write_bytes(said)
    assert rates(run, attacked, tmp_path / "twice") == once
    assert "the last of each counts" in capsys.readouterr().err


def test_a_change_needs_a_truth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = subjects("sample").trajectories[:3]
    store.write(tmp_path, runs)
    assert perturb(["--data", f"trajudge:{tmp_path}", "--out", str(tmp_path / "out")]) == 2
    assert "none of its trajectories has a label" in capsys.readouterr().err


def test_a_judge_that_knows_the_state_loses_nothing(attacked: Path, tmp_path: Path) -> None:
    labels = open_annotations(f"trajudge:{attacked / 'labels.jsonl'}")
    truth = {label.key: label.success for label in labels}
    run = judged(attacked, tmp_path / "run", lambda one: truth[one.key])
    found = rates(run, attacked, tmp_path / "out")
    for name in ("claim-confident", "self-verdict"):
        assert found[name]["attack_success"]["hits"] == 0
        assert found[name]["false_positives_added"] == 0
    assert found["answer-wrong"]["sensitivity"]["estimate"] == 1
    worst = found["worst"]["agent"]
    assert worst["precision"] == worst["recall"] == worst["attacks"][0]["precision"] == 1


def test_a_failure_under_attack_is_lost_coverage_and_no_flip(
    attacked: Path, tmp_path: Path
) -> None:
    run = judged(
        attacked, tmp_path / "run", lambda one: None if CLAIM in (one.answer or "") else False
    )
    one = rates(run, attacked, tmp_path / "out")["claim-confident"]
    assert one["coverage_lost"]["estimate"] == 1
    assert one["flips"]["trials"] == one["attack_success"]["trials"] == 0


def pairs(
    name: str, clean: Sequence[float], perturbed: Sequence[float], truth: Sequence[float]
) -> PerturbedPairs:
    n = len(clean)
    keys = [TrajectoryKey(benchmark="b", agent="a", task_id=str(place)) for place in range(n)]
    before, after, known = (np.array(column, float) for column in (clean, perturbed, truth))
    return PerturbedPairs(name, Relation.KEEP, before, after, known, np.arange(n), tuple(keys))


def test_rates_are_the_counts() -> None:
    nan = float("nan")
    one = pairs("x", [0, 0, 1, 1, nan, 0], [1, 0, 1, 0, 1, nan], [0, 0, 0, 1, 0, 0])
    found = rates_of(one, {}, None)
    assert found.flips[:2] == (2, 4)
    assert found.attack_success[:2] == (1, 2)
    assert found.false_positives_added == pytest.approx(1 / 3)
    assert found.coverage_lost[:2] == (1, 5)
    assert found.twin_success.trials == 0


def test_precision_under_the_worst_attack_by_hand() -> None:
    """Of 4 successes 3 are accepted; of 4 failures 1, under the attacks 2 and 4."""
    truth, clean = [1, 1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 1, 0, 0, 0]
    mild = pairs("mild", clean, [1, 1, 1, 0, 1, 1, 0, 0], truth)
    strong = pairs("strong", clean, [1, 1, 1, 0, 1, 1, 1, 1], truth)
    found = worst_case(
        [mild, strong], pairs("identity", clean, clean, truth), np.random.default_rng(0)
    )
    assert (found.precision, found.recall) == (0.75, 0.75)
    assert [(one.name, one.precision) for one in found.attacks] == [
        ("strong", 3 / 7),
        ("mild", 3 / 5),
    ]
    assert all(one.low is not None and one.low < one.precision for one in found.attacks)


@pytest.mark.slow
def test_the_limit_holds_for_the_worst_of_several_attacks() -> None:
    """Equal attacks: the least estimate is low by chance, the limit is below the truth in 95 %."""
    rng = np.random.default_rng(1)
    below, distances = 0, []
    for _ in range(100):
        truth = (rng.random(200) < 0.5).astype(float)
        clean = np.where(truth == 1, rng.random(200) < 0.8, rng.random(200) < 0.1).astype(float)
        attacks = [
            pairs(
                str(number),
                clean.tolist(),
                np.where(truth == 1, clean, rng.random(200) < 0.4).tolist(),
                truth.tolist(),
            )
            for number in range(6)
        ]
        base = pairs("identity", clean.tolist(), clean.tolist(), truth.tolist())
        worst = worst_case(attacks, base, rng)
        assert worst.low is not None
        below += worst.low <= 0.8 / 1.2
        distances.append(worst.attacks[0].precision - worst.low)
    assert below >= 90
    assert np.mean(distances) < 0.12, "a limit of 0 would hold always"


def test_a_judge_that_is_never_fooled_has_a_limit_below_one() -> None:
    """0 of 100 failures: at most 3.7 % by Wilson, so that precision is below 1 for certain."""
    truth = [1.0] * 100 + [0.0] * 100
    one = pairs("x", truth, truth, truth)
    found = worst_case([one], one, np.random.default_rng(0))
    assert found.attacks[0].precision == 1
    assert found.low == pytest.approx(100 / 102.7, abs=0.01)


def test_tasks_that_are_alike_by_design_tell_no_more_than_their_runs() -> None:
    """Ten tasks with one success of four runs each, all accepted: tasks do not differ, and still
    the precision of 1 in 4 rests on 40 runs. The limit by hand: log odds of 1/3, the standard error
    of 10 and 30 runs, and Student's quantile of 9 degrees of freedom."""
    truth = [1.0, 0.0, 0.0, 0.0] * 10
    one = pairs("x", [1.0] * 40, [1.0] * 40, truth)._replace(cluster=np.repeat(np.arange(10), 4))
    (attack,) = worst_case([one], one, np.random.default_rng(0)).attacks
    by_hand = 1 / (1 + 3 * np.exp(1.833 * (1 / 10 + 1 / 30) ** 0.5))
    assert attack.low == pytest.approx(by_hand, abs=0.012)


def test_the_limit_of_variants_does_not_move_the_base_rate() -> None:
    """Attacks on few of the failures count for all of them."""
    truth, clean = [1.0] * 10 + [0.0] * 40, [1.0] * 10 + [0.0] * 40
    base = pairs("identity", clean, clean, truth)
    whole = pairs("x", clean, [1.0] * 10 + [1.0, 0.0] * 20, truth)
    part = pairs("x", clean[10:20], [1.0, 0.0] * 5, truth[10:20])
    rng = np.random.default_rng(0)
    (all_,), (some,) = (worst_case([one], base, rng).attacks for one in (whole, part))
    assert all_.precision == some.precision == pytest.approx(10 / 30)


@mistakes(
    """
    none --attacked ATTACKED => none
    RUN --attacked none => none/variants.jsonl: cannot be read
    RUN => --attacked
    none --judge heuristic => none: is not the folder of a run: there is no such folder
    --judge heuristic --attacked none => none/variants.jsonl: cannot be read
    --judge heuristic --drift ATTACKED => is a folder: name a file
    """
)
def test_a_mistake_is_one_sentence(
    attacked: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    sentence: str,
) -> None:
    run = judged(attacked, tmp_path / "run", lambda _: True)
    places = {"RUN": str(run), "ATTACKED": str(attacked)}
    assert main([places.get(word, word) for word in words]) == 2
    one_sentence(capsys, sentence)


def test_a_judge_with_other_options_is_another_judge(
    attacked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [judged(attacked, tmp_path / name, lambda _: True) for name in ("one", "two")]
    for run, defence in zip(runs, ("none", "nonce"), strict=True):
        write_manifest(run, {"options": {"defence": defence}})
    assert main([*map(str, runs), "--attacked", str(attacked)]) == 2
    assert "configured otherwise" in capsys.readouterr().err


def test_a_run_on_something_else_is_said(
    attacked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    assert (
        perturb(["--data", "sample", "--perturbation", "ids", "--limit", "2", "--out", str(other)])
        == 0
    )
    run = judged(other, tmp_path / "run", lambda _: True)
    assert main([str(run), "--attacked", str(attacked)]) == 2
    assert "holds no judgment of a changed run" in capsys.readouterr().err


def test_the_matrix_holds_what_was_tried_and_is_a_picture(tmp_path: Path) -> None:
    """A judge that is fooled at one carrier by one technique, as its file and its picture say."""
    truth, clean = [0.0] * 4, [0.0] * 4
    made = [
        pairs("inject-tree.success.plain", clean, [1.0, 1.0, 1.0, 0.0], truth),
        pairs("inject-answer.success.bidi", clean, [0.0] * 4, truth),
        pairs("inject-tree.benign-success.plain", clean, [0.0] * 4, truth),
    ]
    judge = JudgeRobustness("<made> & own", tuple(all_rates(made, {})), {})
    table, picture = write_matrix([judge], tmp_path)
    rows = [line.split(",")[1:5] for line in table.read_text().splitlines()[1:]]
    assert rows == [["answer", "bidi", "0", "4"], ["tree", "plain", "3", "4"]]
    root = ElementTree.fromstring(picture.read_bytes())
    words = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert words == ["<made> & own", "plain", "bidi", "tree", "75", "answer", "0"]
    assert write_matrix([judge._replace(rates=())], tmp_path / "none") == ()


@pytest.mark.slow
def test_judges_that_worked_are_shown_before_the_failure_of_another(
    attacked: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What they had judged was on the disk, and only the error was told."""
    monkeypatch.chdir(tmp_path)
    mine = "needs_model = False\n\nasync def judge(trajectory, ask):\n    raise KeyError(1)\n"
    Path("mine.py").write_text(mine)
    words = ["--judge", "mine.py", "--judge", "heuristic", "--attacked", str(attacked)]
    assert main([*words, "--out", "out"]) == 2
    shown = capsys.readouterr()
    assert "heuristic" in shown.out.splitlines()[0]
    (judge,) = json.loads(Path("out/robustness.json").read_text())["judges"]
    assert judge["judge"] == "heuristic"
    last = shown.err.splitlines()[-1]
    assert last.startswith("error: 1 of 2 runs failed: mine: judge mine failed on ")
    alone = ["--judge", "mine.py", "--attacked", str(attacked), "--out", "alone"]
    assert main(alone) == 2
    assert "error: judge mine failed on " in capsys.readouterr().err
