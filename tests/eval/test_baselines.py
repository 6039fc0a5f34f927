"""Trivial baselines: what each says, beside judges, carried over, at equal recall."""

from __future__ import annotations

import csv
import json
import os
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.commands import score
from tests.eval.cases import key, label, observe, said
from tests.eval.runs_to_score import make_run
from tests.screens import on_one_line, one_screen
from trajudge.annotations import Label, Labels
from trajudge.eval import baselines as models
from trajudge.eval.baselines import (
    BASELINES,
    BEST,
    BaselineJudgments,
    Examples,
    accepted_shares,
    at_equal_recall,
    baselines_of,
    claims_success,
    transfer_screen,
    transfer_table,
    transferred,
    trivial_baselines,
)
from trajudge.eval.cli import main
from trajudge.eval.judge import main as judge
from trajudge.eval.reporting.sentences import NO_BETTER
from trajudge.eval.scoring.compute import score as compute
from trajudge.eval.scoring.records import EqualRecall, ScoreReport
from trajudge.eval.store.table import KeyColumns
from trajudge.judges.model import Judgment, Status
from trajudge.stats.intervals import Floats
from trajudge.trajectories.model import Step, Trajectory, TrajectoryKey
from trajudge.trajectories.store import write
from trajudge.util.errors import UserError

LAST = {True: "send_msg_to_user('Done.')", False: "report_infeasible('no')"}


def run(
    task: int, answer: str | None, *, agent: str = "agent", benchmark: str = "webarena"
) -> Trajectory:
    """A run of two steps, whose last says something where there is an answer."""
    key = TrajectoryKey(benchmark=benchmark, agent=agent, task_id=f"{benchmark}.{task}")
    steps = (Step(index=0, action="click('1')"), Step(index=1, action=LAST[answer is not None]))
    return Trajectory(key=key, raw_task_id=key.task_id, goal="Find it.", steps=steps, answer=answer)


def labelled(one: Trajectory, success: bool | None) -> Label:
    return Label(key=one.key, raw_task_id=one.raw_task_id, annotator="A", success=success)


RUNS = [
    run(task, f"I found the {'cheapest' if task % 3 else 'wrong'} lamp {task}.", agent=agent)
    for task in range(12)
    for agent in ("a", "b")
]
LABELS = {one.key: labelled(one, bool(int(one.raw_task_id.split(".")[1]) % 3)) for one in RUNS}


def test_every_labelled_run_gets_one_judgment_a_baseline() -> None:
    unlabelled = run(99, "Done.")
    unsure = run(98, "Done.")
    labels = {**LABELS, unsure.key: labelled(unsure, None)}
    found = trivial_baselines([*RUNS, unlabelled, unsure], labels)
    assert found.notes == ()
    keys: dict[str, list[TrajectoryKey]] = defaultdict(list)
    for each in found.judgments:
        assert each.status is Status.OK
        keys[each.judge].append(each.key)
    assert list(keys) == [*BASELINES]
    for judged in keys.values():
        assert judged == sorted(LABELS, key=lambda key: key.order)
    assert not any(j.success for j in found.judgments if j.judge == "always-fail")


def test_words_of_the_answer_are_learnt_from_other_tasks() -> None:
    judgments = trivial_baselines(RUNS, LABELS, names=["tfidf-answer"]).judgments
    assert all(each.success is LABELS[each.key].success for each in judgments)
    assert all(each.score is not None and 0 < each.score < 1 for each in judgments)


def test_words_count_as_scikit_learn_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 300 terms and more the 40 most frequent are kept, by both."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(2)
    words = [*(f"word{n}" for n in range(30)), "É_x", "a", "7", "No!", "isn't"]
    answers = [" ".join(rng.choice(words, size=rng.integers(1, 25))) for _ in range(120)]
    runs = [run(task, answer) for task, answer in enumerate(answers)]
    truth = {one.key: "word3" in str(one.answer) or bool(rng.random() < 0.2) for one in runs}
    examples = Examples.of(runs, truth)
    train, test = np.arange(80), np.arange(80, 120)
    monkeypatch.setattr(models, "_MOST_TERMS", 40)
    ours = models.fit_tfidf(examples.at(train), examples.at(test))
    by_key = {one.key: str(one.answer) for one in runs}
    texts = [by_key[key] for key in examples.keys]
    terms = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, max_features=40)
    model = LogisticRegression(max_iter=1000)
    model.fit(terms.fit_transform([texts[at] for at in train]), examples.labels[train])
    theirs = model.predict_proba(terms.transform([texts[at] for at in test]))[:, 1]
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["tfidf-answer", "telemetry"])
def test_no_verdict_rests_on_a_label_of_its_own_task(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted: list[tuple[set[str], set[str]]] = []
    original = models.TRAINED[name]

    def fit(train: Examples, test: Examples) -> Floats:
        fitted.append((set(train.groups.tolist()), set(test.groups.tolist())))
        return original(train, test)

    monkeypatch.setitem(models.TRAINED, name, fit)
    trivial_baselines(RUNS, LABELS, names=[name])
    assert all(not train & test for train, test in fitted)
    judged = [task for _, test in fitted for task in test]
    assert sorted(judged) == sorted({f"webarena/webarena.{task}" for task in range(12)})


def test_the_same_runs_in_any_order_give_the_same_bytes() -> None:
    order = np.random.default_rng(1).permutation(len(RUNS))
    first = trivial_baselines(RUNS, LABELS, seed=3).judgments
    again = trivial_baselines([RUNS[place] for place in order], LABELS, seed=3).judgments
    assert [j.model_dump_json() for j in first] == [j.model_dump_json() for j in again]


def test_what_cannot_be_fitted_is_left_out_with_its_reason() -> None:
    silent = [run(task, None) for task in range(4)]
    labels: dict[TrajectoryKey, Label] = {
        one.key: labelled(one, task == 0) for task, one in enumerate(silent)
    }
    found = trivial_baselines(silent, labels)
    assert {j.judge for j in found.judgments} == {"always-fail"}
    assert [note.split(":")[0] for note in found.notes] == [*BASELINES[1:]]
    assert "no run recorded an answer" in found.notes[0]
    assert "fewer than two tasks" in found.notes[2]
    assert trivial_baselines(silent, {}).judgments == ()


# Last words of agents in AgentRewardBench and Online-Mind2Web, shortened.
def test_they_are_kept_until_a_label_a_seed_or_a_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    judged = Counter[str]()

    def counted(*given: Any, **options: Any) -> BaselineJudgments:
        judged["times"] += 1
        return trivial_baselines(*given, **options)

    monkeypatch.setattr(models, "trivial_baselines", counted)
    file = write(tmp_path / "runs", RUNS)
    changed = {**LABELS, RUNS[0].key: labelled(RUNS[0], not LABELS[RUNS[0].key].success)}

    def found(labels: Labels = LABELS, seed: int = 0) -> BaselineJudgments:
        options: Any = {"question": "success", "seed": seed, "is_asked_for": False}
        return baselines_of([f"trajudge:{file}"], labels, {*labels}, **options)

    first = found()
    assert first.judgments
    assert first == trivial_baselines(RUNS, LABELS)
    assert [found(), judged["times"]] == [first, 1]
    assert [found(changed) == first, judged["times"]] == [False, 2]
    assert [found(seed=1).judgments != (), judged["times"]] == [True, 3]
    was = file.stat()
    content = file.read_bytes()
    other = content.replace(b"found the wrong lamp", b"unable to find lamps")  # of the same size
    file.write_bytes(other)
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert file.stat().st_size == was.st_size
    assert [found() == first, judged["times"]] == [False, 4]


def test_notes_are_kept_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = write(tmp_path / "runs", [one.model_copy(update={"answer": None}) for one in RUNS])
    options: Any = {"question": "success", "seed": 0, "is_asked_for": False}
    first, again = (
        baselines_of([f"trajudge:{file}"], LABELS, {*LABELS}, **options) for _ in range(2)
    )
    assert (
        first.notes
        == again.notes
        == (
            "claim-of-success: left out, because no run recorded an answer",
            "tfidf-answer: left out, because no run recorded an answer",
        )
    )


@pytest.mark.parametrize(
    ("answer", "claim"),
    [
        ("The cheapest is the Fortis at $28.45.", True),
        ("I have successfully added the comment to the post.", True),
        ("Unfortunately the page keeps asking for a log-in.", False),
        ("The Fidelity website is not loading due to a network error.", False),
        ("I couldn't find a rental that matches.", False),
        ("I was unable to complete the booking.", False),
        ("", False),
        ("  \n", False),
        (None, False),
    ],
)
def test_a_claim_is_an_answer_that_does_not_give_up(answer: str | None, claim: bool) -> None:
    steps = (Step(index=0, action="send_msg_to_user('…')"),)
    assert claims_success(run(1, answer).model_copy(update={"steps": steps})) is claim


def test_to_declare_a_task_infeasible_claims_no_success() -> None:
    last: Trajectory = run(1, "The product is sold out.").model_copy(
        update={"steps": (Step(index=0, action="report_infeasible('sold out')"),)}
    )
    assert not claims_success(last)


SPOKEN = re.compile(r"^\d+\. send_msg_to_user\((.*?)\)\. Reasoning: ", re.DOTALL | re.MULTILINE)
DENIALS = ("not", "n't", "n’t", "unable", "impossible", "unfortunately", "sorry", "no ", "error")
NAMES = ["always-fail", "claim-of-success", "tfidf-answer", "telemetry"]


@pytest.fixture(scope="module")
def sample_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "heuristic"
    assert judge(["--judge", "heuristic", "--data", "sample", "--out", str(folder)]) == 0
    return folder


@pytest.mark.slow
def test_baselines_stand_beside_the_judge_on_one_screen(
    sample_run: Path, width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert score([str(sample_run)]) == 0
    text = capsys.readouterr().out
    lines = one_screen(text, width)
    for name in NAMES[1:]:  # there is no room for the one that accepts nothing
        assert any(f"  {name}  " in line for line in lines), name
    assert NO_BETTER in on_one_line(text)


@pytest.mark.slow
def test_results_hold_the_baselines_and_the_comparison(
    sample_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert score([str(sample_run), "--json"]) == 0
    first = capsys.readouterr().out
    report = json.loads(first)
    whole = {s["judge"]: s for s in report["baselines"] if s["benchmark"] == "overall"}
    assert list(whole) == NAMES
    assert whole["always-fail"]["accuracy"] == pytest.approx(
        1 - whole["always-fail"]["positives"] / whole["always-fail"]["n"]
    )
    assert [found["baseline"] for found in report["equal_recall"]] == NAMES[1:]
    assert score([str(sample_run), "--json"]) == 0
    assert capsys.readouterr().out == first
    assert score([str(sample_run), "--csv"]) == 0
    assert ",baseline,overall," in capsys.readouterr().out


def test_baselines_can_be_left_out(sample_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score([str(sample_run), "--baselines", "off", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["baselines"] == []


def test_without_trajectories_a_note_says_so_and_an_explicit_wish_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run")
    assert score([str(run)]) == 0
    assert "note: no trivial baselines: the trajectories are not named" in capsys.readouterr().err
    assert score([str(run), "--baselines", "on"]) == 2
    assert "--data KIND:PATH" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.real_data
def test_published_judgments_hold_the_runs_that_the_baselines_judge(
    arb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Claims lie between what a second reading of the files says at least and at most."""
    arguments = ["--judgments", str(arb), "--annotations", f"agentrewardbench:{arb}"]
    assert score([*arguments, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    place = ("claim-of-success", "overall")
    claim = next(s for s in report["baselines"] if (s["judge"], s["benchmark"]) == place)
    assert set(claim["intervals"]) >= {"precision", "recall", "f1"}
    least, most = _claims(arb)
    assert 0 < least <= claim["counts"]["tp"] + claim["counts"]["fp"] <= most < claim["n"]


def _claims(folder: Path) -> tuple[int, int]:
    """Count the labelled runs whose last message holds no word of denial, and those that sent
    one."""
    with (folder / "annotations.csv").open(newline="") as table:
        labelled = {
            (row["benchmark"], row["model_name"], _plain(row["task_id"]))
            for row in csv.DictReader(table)
        }
    last = {}
    for file in (folder / "judgments").glob("*/*/*/*.json"):
        key = (file.parts[-4], file.parts[-3], _plain(file.stem))
        spoken = SPOKEN.findall(json.loads(file.read_text()).get("input_text") or "")
        if key in labelled and spoken:
            last[key] = spoken[-1].lower()
    sure = [words for words in last.values() if not any(word in words for word in DENIALS)]
    return len(sure), len(last)


def _plain(task: str) -> str:
    return task.replace(".resized", "").replace(".improved", "")


BENCHMARKS = ("almanac", "console", "press")
OF_BENCHMARKS = [
    run(task, f"Found the {'cheap' if task % 2 else 'wrong'} lamp.", benchmark=benchmark)
    for benchmark in BENCHMARKS
    for task in range(8)
]


def truth(one: Trajectory) -> bool:
    return bool(int(one.raw_task_id.split(".")[1]) % 2)


THEIR_LABELS = {one.key: labelled(one, truth(one)) for one in OF_BENCHMARKS}


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
        for one in OF_BENCHMARKS
    ]


def without_labels_of(benchmark: str) -> dict[TrajectoryKey, Label]:
    """The labels with those of one benchmark turned round."""
    return {
        key: each.model_copy(update={"success": not each.success})
        if key.benchmark == benchmark
        else each
        for key, each in THEIR_LABELS.items()
    }


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_labels_of_the_benchmark_left_out_change_no_verdict_on_it(benchmark: str) -> None:
    judgments = [*judged("a", ("almanac", "press")), *judged("b", ("console",), press=0.3)]
    before = transferred(OF_BENCHMARKS, judgments, THEIR_LABELS).judgments
    after = transferred(OF_BENCHMARKS, judgments, without_labels_of(benchmark)).judgments
    here = [j for j in before if j.key.benchmark == benchmark]
    assert {j.judge for j in here} == {"telemetry", "tfidf-answer", BEST, "b at its threshold"}
    assert here == [j for j in after if j.key.benchmark == benchmark]


def test_the_judge_that_is_best_elsewhere_is_scored_here() -> None:
    judgments = [*judged("a", ("almanac",)), *judged("b", ("console", "press"))]
    found = transferred(OF_BENCHMARKS, judgments, THEIR_LABELS)
    assert "almanac: b is the best of 2 on the others (F1 100.0)" in found.notes
    best = {j.key: j.success for j in found.judgments if j.judge == BEST}
    assert all(
        best[one.key] is not truth(one) for one in OF_BENCHMARKS if one.key.benchmark == "almanac"
    )


def test_the_table_of_a_transfer_ends_with_all_benchmarks() -> None:
    found = transferred(OF_BENCHMARKS, judged("a", BENCHMARKS), THEIR_LABELS)
    report = compute(found.judgments, THEIR_LABELS, rewards={}, compared=None)
    rows = transfer_table(report, "success").rows
    methods = [BEST, "telemetry", "tfidf-answer"]
    places = [*BENCHMARKS, "Overall"]
    assert [row[:2] for row in rows] == [(place, name) for place in places for name in methods]
    shown = transfer_screen(report, "success").splitlines()[1:13]
    assert [line.split()[0] for line in shown[::3]] == places
    assert [line[:9].strip() for line in shown if line.split()[0] not in places] == [""] * 8


def test_two_benchmarks_are_enough() -> None:
    found = transferred(OF_BENCHMARKS[:16], judged("a", BENCHMARKS)[:16], THEIR_LABELS)
    assert {one.key.benchmark for one in found.judgments} == {"almanac", "console"}


def test_a_threshold_is_carried_over() -> None:
    """Elsewhere successes score 0.7 and failures 0.5, here 0.5 and 0.3: nothing is accepted."""
    judgments = judged("s", BENCHMARKS, almanac=0.3)
    found = transferred(OF_BENCHMARKS, judgments, THEIR_LABELS).judgments
    mine = [j for j in found if j.judge == "s at its threshold" and j.key.benchmark == "almanac"]
    assert len(mine) == 8
    assert not any(j.success for j in mine)


def test_one_benchmark_is_too_few() -> None:
    with pytest.raises(UserError, match="labels of 1"):
        transferred(OF_BENCHMARKS[:8], [], THEIR_LABELS)


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


def accepted_by_hand(
    scores: list[float], labels: list[bool], hits: int, rng: np.random.Generator
) -> int:
    """How many are accepted, the highest score first and equal ones in a random order, until
    ``hits`` successes are."""
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], rng.random()))
    seen = 0
    for count, place in enumerate(order, start=1):
        seen += labels[place]
        if seen == hits:
            return count
    raise AssertionError


@pytest.mark.parametrize("seed", range(5))
def test_without_equal_scores_the_baseline_accepts_down_to_the_same_recall(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, labels = rng.random(60), rng.random(60) < 0.4
    for hits in (1, 5, int(labels.sum())):
        shares = accepted_shares(scores, labels, hits)
        assert (shares * labels).sum() == pytest.approx(hits)
        assert shares.sum() == accepted_by_hand(scores.tolist(), labels.tolist(), hits, rng)


def test_a_share_of_equal_scores_keeps_their_share_of_successes() -> None:
    scores = np.array([1.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    labels = np.array([True, True, False, False, True, False])
    assert accepted_shares(scores, labels, 1).tolist() == [0.5, 0.5, 0.5, 0.5, 0, 0]
    assert accepted_shares(scores, labels, 3).tolist() == [1, 1, 1, 1, 1, 1]


def compared(verdicts: list[bool], truth: list[bool], scores: list[float]) -> EqualRecall | None:
    labels = {key(i): label(i, good) for i, good in enumerate(truth)}
    judgments = [said(i, verdict) for i, verdict in enumerate(verdicts)]
    observed = observe(judgments, labels, "negative")
    ranks = np.full(len(truth), np.nan)
    ranks[observed.reference.places(KeyColumns.of(map(key, range(len(truth)))))] = scores
    return at_equal_recall("judge", observed, "tfidf-answer", ranks)


def test_the_difference_is_of_precisions_at_the_judges_recall() -> None:
    rng = np.random.default_rng(0)
    truth = (rng.random(80) < 0.5).tolist()
    verdicts = [good if rng.random() < 0.9 else not good for good in truth]
    scores = rng.random(80).tolist()
    found = compared(verdicts, truth, scores)
    assert found is not None
    hits = sum(v and t for v, t in zip(verdicts, truth, strict=True))
    accepted = accepted_by_hand(scores, truth, hits, rng)
    assert found.recall == pytest.approx(hits / sum(truth))
    assert found.precision == pytest.approx(hits / sum(verdicts))
    assert found.baseline_precision == pytest.approx(hits / accepted)
    assert found.difference == pytest.approx(hits / sum(verdicts) - hits / accepted)
    assert found.low is not None
    assert found.high is not None
    assert 0 < found.low < found.difference < found.high


def test_a_judge_that_accepts_no_success_is_not_compared() -> None:
    assert compared([False, True], [True, False], [0.2, 0.4]) is None
