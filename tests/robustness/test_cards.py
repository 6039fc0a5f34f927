"""What ``trajudge robust`` writes to be published: cards, instructive cases, the clean curve."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.commands import robust as main
from tests.robustness.attacked_runs import CLAIM
from trajudge.eval.store.run_folder import JUDGMENTS, judgment_line, write_labels, write_manifest
from trajudge.judges.model import Judgment, Status
from trajudge.robustness.cards import badge, cell, difference, fenced, file_names
from trajudge.robustness.figures import DefenceCurve, DefencePoint, curves_svg
from trajudge.robustness.model import Relation
from trajudge.robustness.pairs import PerturbedPairs, RunVerdict
from trajudge.robustness.rates import (
    AttackedPrecision,
    WorstCase,
    operating_points,
    precision_at_recall,
)
from trajudge.robustness.report import CASES, JudgeRobustness, instructive_cases
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey

HOSTILE = "`| <b>made</b> |\n# a heading"


def judged(
    attacked: Path, folder: Path, verdict: Callable[[Trajectory], float], **manifest: Any
) -> Path:
    """A run of a judge that gives a score, and a reason that tries to leave its place."""
    folder.mkdir()
    lines = [
        Judgment(
            key=run.key,
            judge=manifest.get("judge", HOSTILE),
            status=Status.OK,
            success=(score := verdict(run)) >= 0.5,
            score=score,
            reasoning=f"I say {score}.\n```\n# another heading\x1b[31m\u202e",
        )
        for run in open_source(f"trajudge:{attacked}")
        if isinstance(run, Trajectory)
    ]
    (folder / JUDGMENTS).write_bytes(b"".join(map(judgment_line, lines)))
    write_labels(folder, [])
    write_manifest(folder, {"data": f"trajudge:{attacked}", **manifest})
    return folder


def believes_claims(run: Trajectory) -> float:
    """Accepts a claim for certain, else by a coin that the key decides."""
    if CLAIM in (run.answer or ""):
        return 1.0
    return 0.6 if sum(run.key.task_id.encode()) % 3 == 0 else 0.2


@pytest.mark.slow
def test_a_card_tells_what_the_file_tells(attacked: Path, tmp_path: Path) -> None:
    facts = {"model": "m-1", "prompt_hash": "ab12", "options": {"file": "/home/someone/x.json"}}
    run = judged(attacked, tmp_path / "run", believes_claims, judge="made", **facts)
    assert main([str(run), "--attacked", str(attacked), "--out", str(tmp_path)]) == 0
    (found,) = json.loads((tmp_path / "robustness.json").read_text())["judges"]
    text = (tmp_path / "cards" / "made.md").read_text()
    worst, overall = found["worst"]["agent"], found["overall"]
    figures = f"{worst['attacks'][0]['precision']:.2f} [{worst['low']:.2f}, {worst['high']:.2f}]"
    assert f"`robust v1 · agent {figures} · page –`" in text
    assert f"| agent | {len(worst['attacks'])} | {figures} | claim-confident |" in text
    precision, recall = overall["precision"], overall["recall"]
    assert precision["hits"] == recall["hits"] > 0
    assert precision["estimate"] == worst["precision"] and recall["estimate"] == worst["recall"]
    shown = [
        f"{100 * one['estimate']:.1f} % [{100 * one['low']:.1f}, {100 * one['high']:.1f}] "
        f"({one['hits']} of {one['trials']})"
        for one in (precision, recall)
    ]
    assert f"| precision | {shown[0]} |" in text and f"| recall | {shown[1]} |" in text
    for fact in ("| model | m-1 |", "| prompt hash | ab12 |", "x.json", "the state that each run"):
        assert fact in text
    assert "/home" not in text and str(tmp_path) not in text
    assert "A reading by people" in text and "An attacker that learns" in text


def test_hostile_names_and_reasons_stay_in_their_place(attacked: Path, tmp_path: Path) -> None:
    run = judged(attacked, tmp_path / "run", believes_claims)
    assert main([str(run), "--attacked", str(attacked), "--out", str(tmp_path)]) == 0
    (card,) = (tmp_path / "cards").iterdir()
    (cases,) = (tmp_path / "cases").iterdir()
    assert card.name == cases.name == "b-made-b-a-heading.md"
    for file in (card, cases):
        text = file.read_text()
        assert "<b>" not in text.replace("\\<b", "") and "\x1b" not in text and "\u202e" not in text
        fence = ""
        for line in text.splitlines():
            mark = re.match(r"`{3,}", line)
            if mark and not fence:
                fence = mark[0]
            elif fence and line == fence:
                fence = ""
            elif not fence:
                assert "another heading" not in line
        assert not fence


def test_a_case_shows_what_was_said_and_changed(attacked: Path, tmp_path: Path) -> None:
    run = judged(attacked, tmp_path / "run", believes_claims, judge="made")
    assert main([str(run), "--attacked", str(attacked), "--out", str(tmp_path)]) == 0
    text = (tmp_path / "cases" / "made.md").read_text()
    (case,) = [part for part in text.split("\n## ") if part.startswith("1. ")]
    assert "claim-confident: accepts a failure" in case
    assert "- truth: failure" in case
    assert "- verdict before: failure (score 0.2)" in case
    assert "- verdict after: success (score 1)" in case
    assert "I say 0.2." in case and "I say 1.0." in case
    added = [line for line in case.splitlines() if line.startswith("+answer: ")]
    assert len(added) == 1 and CLAIM in added[0]


def pairs(
    name: str,
    rows: Sequence[tuple[float, float, float]],
    scores: Sequence[tuple[float, float]] | None = None,
    relation: Relation = Relation.KEEP,
) -> PerturbedPairs:
    """Rows of clean verdict, perturbed verdict, truth; a task each."""
    clean, perturbed, truth = np.array(rows, float).T
    keys = tuple(TrajectoryKey(benchmark="b", agent="a", task_id=str(n)) for n in range(len(rows)))
    given = scores or [(before, after) for before, after, _ in rows]
    verdicts = tuple(
        (RunVerdict(bool(before), score), RunVerdict(bool(after), later))
        for (before, after, _), (score, later) in zip(rows, given, strict=True)
    )
    cluster = np.arange(len(rows))
    return PerturbedPairs(name, relation, clean, perturbed, truth, cluster, keys, verdicts)


def test_the_most_instructive_run_is_one_that_the_twin_does_not_move() -> None:
    fooled = [(0.0, 1.0, 0.0)] * 3
    attack = pairs("attack", fooled, [(0.1, 0.9), (0.4, 0.6), (0.3, 0.8)])
    twin = pairs("twin", [(0.0, 1.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)])
    again = pairs("other", [*fooled[:2], (0.0, 1.0, 0.0)], [(0.1, 0.9), (0.1, 0.2), (0.2, 0.9)])
    names = {"attack": "twin", "other": None}
    found = instructive_cases([attack, twin, again], names, ())
    assert [(one.perturbation, one.source.task_id) for one in found] == [
        ("attack", "2"),  # the twin moves run 0, and the score of run 1 moves less
        ("other", "0"),  # of a task that was not shown
    ]
    assert {one.kind for one in found} == {"fooled"}


def test_cases_are_of_every_kind_and_no_more_than_ten() -> None:
    attacks = [pairs(f"attack-{n:02}", [(0.0, 1.0, 0.0)] * 20) for n in range(15)]
    flips = [pairs(f"ids-{n}", [(1.0, 0.0, 1.0)] * 20) for n in range(3)]
    deaf = [pairs(f"flip-{n}", [(1.0, 1.0, 1.0)] * 20, None, Relation.FALSE) for n in range(3)]
    follows = pairs("follows", [(1.0, 0.0, 1.0)] * 20, None, Relation.FALSE)
    steady = pairs("steady", [(1.0, 1.0, 1.0)] * 20)
    again = pairs("identity", [(1.0, 0.0, 1.0)] * 20)  # drawn again, not changed
    everything = [*flips, *attacks, follows, steady, again, *deaf]
    harmless = ["steady", "identity", *(one.name for one in flips)]
    found = instructive_cases(everything, dict.fromkeys(one.name for one in attacks), harmless)
    assert len(found) == CASES
    kinds = [one.kind for one in found]
    assert kinds == ["fooled"] * 6 + ["not followed"] * 2 + ["unstable"] * 2
    assert len({one.source for one in found}) == CASES
    assert [one.perturbation for one in found[-2:]] == ["ids-0", "ids-1"]


def test_a_verdict_that_does_not_follow_the_truth_is_a_case_both_ways() -> None:
    """It was right before: of a failure that became a success, or the other way."""
    mended = pairs("mended", [(0, 0, 0), (0, 1, 0), (1, 1, 1), (1, 1, 0)], None, Relation.TRUE)
    broken = pairs("broken", [(0, 0, 0), (0, 1, 0), (1, 1, 1), (1, 0, 1)], None, Relation.FALSE)
    open_ = pairs("open", [(1, 1, 1)] * 4, None, Relation.DROPS)
    found = instructive_cases([mended, broken, open_], {}, ())
    assert [(one.perturbation, one.source.task_id) for one in found] == [
        ("broken", "2"),
        ("mended", "0"),
    ]
    assert {one.kind for one in found} == {"not followed"}


def test_a_judge_made_stricter_lies_on_its_own_curve() -> None:
    """At every score of a success, and in expectation where some of the accepted are left out
    at random; who tells successes apart better lies above."""
    rng = np.random.default_rng(4)
    truth = (rng.random(300) < 0.4).astype(float)
    score = np.round(np.clip(0.3 * truth + 0.7 * rng.random(300), 0, 1), 2)
    clean = (score >= 0.5).astype(float)
    rows = list(zip(clean, clean, truth, strict=True))
    points = operating_points([pairs("ids", rows, list(zip(score, score, strict=True)))])
    successes = truth.sum()
    for threshold in np.unique(score[truth == 1]):
        accepts = score >= threshold
        recall, precision = (accepts & (truth == 1)).sum() / successes, truth[accepts].mean()
        assert precision_at_recall(points, float(recall)) == pytest.approx(precision)
    best, better = points.by_score[0], score + 0.4 * truth >= 0.8
    assert best.threshold == score.max()
    recall = float((better & (truth == 1)).sum() / successes)
    reference = precision_at_recall(points, recall)
    assert reference is not None and truth[better].mean() > reference + 0.1
    verdicts = operating_points([pairs("ids", rows, [(np.nan, np.nan)] * 300)])
    own = clean[truth == 1].mean()
    assert verdicts.by_score == ()
    half = precision_at_recall(verdicts, float(own) / 2)
    assert half == pytest.approx(truth[clean == 1].mean()), "at random: the same precision"
    assert precision_at_recall(verdicts, min(1.0, float(own) + 0.1)) is None
    assert precision_at_recall(verdicts, 0.0) is None


def test_the_curve_is_drawn_with_its_defences() -> None:
    points = operating_points([pairs("ids", [(1, 1, 1), (0, 0, 1), (1, 1, 0), (0, 0, 0)])])
    known = (DefencePoint("", 0.5, 0.5), DefencePoint("hide & seek", 1.0, 0.5))
    root = ElementTree.fromstring(curves_svg([DefenceCurve("<made>", points, known)]))
    words = [one.text or "" for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert words[0] == "<made>"
    assert any(one.startswith("hide & seek: precision 100.0 %, recall 50.0 %") for one in words)
    assert len([*root.iter("{http://www.w3.org/2000/svg}polyline")]) == 1


def test_a_defence_that_hides_nothing_gains_nothing(attacked: Path, tmp_path: Path) -> None:
    """One that only makes the judge stricter has a gain of 0 in the table, whatever its
    precision."""
    strict = {0.2: 0.1, 0.6: 0.3, 1.0: 1.0}

    def scored(run: Trajectory) -> float:
        return 0.9 if sum(run.key.task_id.encode()) % 6 == 0 else believes_claims(run)

    plain = judged(attacked, tmp_path / "plain", scored, judge="made", options={})
    other = judged(
        attacked,
        tmp_path / "strict",
        lambda run: strict.get(scored(run), scored(run)),
        judge="made-no-answer",
        options={"hide": "answer"},
    )
    words = [str(plain), str(other), "--attacked", str(attacked), "--out", str(tmp_path)]
    assert main(words) == 0
    base, defended = csv.DictReader((tmp_path / "defences.csv").open())
    assert float(defended["recall"]) < float(base["recall"])
    assert (base["gain"], defended["gain"]) == ("", "+0.0")
    assert (base["defence"], defended["defence"]) == ("none", "hide")
    rows = list(csv.DictReader((tmp_path / "curve.csv").open()))
    assert {row["judge"] for row in rows} == {"made"}
    assert rows[-1]["point"] == "hide"
    assert (tmp_path / "curve.svg").read_bytes().startswith(b"<svg")


def test_the_line_for_a_leaderboard() -> None:
    agent = WorstCase(0.8, 0.9, (AttackedPrecision("x", 0.612, 0.52),), 0.52, 0.69)
    page = WorstCase(0.8, 0.9, (AttackedPrecision("y", 0.784, 0.704),), 0.704, 0.84)
    one = JudgeRobustness("made", (), {"agent": agent, "page": page})
    assert badge(one) == "robust v1 · agent 0.61 [0.52, 0.69] · page 0.78 [0.70, 0.84]"
    assert badge(one._replace(worst={"agent": agent})).endswith("0.69] · page –")


def test_names_are_safe() -> None:
    assert file_names(["a/b:c", "a b:c", "../..", "A-b-c"]) == {
        "a/b:c": "a-b-c",
        "a b:c": "a-b-c-2",
        "../..": "judge",
        "A-b-c": "A-b-c-3",
    }
    assert cell("a|b\n`c` \x00") == "a\\|b \\`c\\` \\\\u{0}"
    assert fenced(["````"])[0] == "`" * 5
    assert fenced(["a\tb\x00é"], "text") == ["```text", "a\tb\\u{0}é", "```"]


def test_a_difference_has_60_lines_of_300_characters() -> None:
    def run(*actions: str) -> Trajectory:
        steps = [
            Step(index=n, observation=Observation(), action=action)
            for n, action in enumerate(actions)
        ]
        key = TrajectoryKey(benchmark="b", agent="a", task_id="t")
        return Trajectory(key=key, raw_task_id="t", goal="Go.", steps=tuple(steps))

    (mark, goal, *_, line) = difference(run(), run("a"))
    assert (mark[:2], goal, line) == ("@@", " goal: Go.", "+step 0, action: a")
    longest = "a" * (300 - len(line) + 1)
    for more, shown in (
        ("", f"+step 0, action: {longest}"),
        ("a", f"+step 0, action: {longest} …"),
    ):
        assert difference(run(), run(longest + more))[-1] == shown
    for actions, last in (
        (58, "+step 57, action: a"),
        (59, "… and 1 more lines"),
        (60, "… and 2 more lines"),
    ):
        lines = difference(run(), run(*["a"] * actions))
        assert (len(lines), lines[-1]) == (60 if actions == 58 else 61, last)
