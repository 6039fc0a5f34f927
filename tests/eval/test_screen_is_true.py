"""First screens against the files that are written beside them, figure by figure."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from random import Random

import pytest

from tests.commands import score as score_main
from tests.eval.cases import failed, key, label, said
from tests.eval.judge_command import run
from tests.screens import on_one_line
from trajudge.eval.cli import main
from trajudge.eval.reporting.results import results_csv
from trajudge.eval.reporting.summary import summary
from trajudge.eval.reporting.tables import plain
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.estimates import with_estimated_rates
from trajudge.eval.scoring.records import ScoreReport
from trajudge.judges.model import Judgment, Status

RATE = r"(?P<{0}>[\d.]+) % \((?P<{0}_hits>[\d,]+) of (?P<{0}_trials>[\d,]+)"
SENTENCE = re.compile(
    r"[Oo]f the runs that it accepts "
    + RATE.format("precision")
    + r"(?:; 95 % interval (?P<low>[\d.]+) to (?P<high>[\d.]+)|; no interval: [^)]*)\) are right; "
    + "of the right ones it accepts "
    + RATE.format("recall")
    + r"\)"
)
BASE = re.compile(r"Always yes: " + RATE.format("base") + r"\) are right, the base rate")
RULE = re.compile(r"rule-based: (?P<precision>[\d.]+) (?:\[\S+ \S+\] )?% are right, ")
JUDGES = ("careful", "eager", "idle", "broken")


def world(seed: int) -> ScoreReport:
    """Judges of several kinds on benchmarks of several sizes, drawn anew for each seed."""
    random = Random(seed)
    labels, judgments = {}, list[Judgment]()
    for benchmark in ("webarena", "workarena", "assistantbench"):
        for task in range(random.choice((4, 25, 70))):
            right = random.random() < 0.4
            labels[key(task, benchmark)] = label(task, right, benchmark=benchmark)
            for judge in random.sample(JUDGES, 2) if seed % 2 else JUDGES[:1]:
                accepts = random.random() < {"careful": 0.3 + 0.5 * right, "eager": 0.9}.get(
                    judge, 0
                )
                if judge == "broken" or random.random() < 0.05:
                    judgments.append(failed(task, Status.REFUSED, judge=judge, benchmark=benchmark))
                else:
                    judgments.append(said(task, accepts, judge=judge, benchmark=benchmark))
    rewards = {place: float(random.random() < 0.5) for place in labels}
    return score(judgments, labels, rewards=rewards)


def rows_of(text: str) -> list[dict[str, str]]:
    return [row for row in csv.DictReader(text.splitlines()) if row["label"] == "success"]


def in_percent(value: str) -> str:
    return f"{100 * float(value):.1f}" if value else "–"


def check(screen: str, rows: list[dict[str, str]]) -> None:
    """Compare the sentences and the table of the screen with the rows of results.csv."""
    text = on_one_line(screen)
    whole = {
        (row["judge"], row["evaluator"]): row
        for row in rows
        if (row["benchmark"], row["agent"]) == ("overall", "all")
    }
    judges = [judge for judge, evaluator in whole if evaluator == "judge"]
    named = re.search(r"First of \d+ by precision is (\S+): ", text)
    mine = whole[named[1] if named else judges[0], "judge"]
    found = SENTENCE.search(text)
    assert found, text
    tp, fp, fn, tn = (int(mine[name]) for name in ("tp", "fp", "fn", "tn"))
    assert (found["precision_hits"], found["precision_trials"]) == (str(tp), str(tp + fp))
    assert (found["recall_hits"], found["recall_trials"]) == (str(tp), str(tp + fn))
    assert found["precision"] == f"{100 * tp / (tp + fp):.1f}" == in_percent(mine["precision"])
    assert found["recall"] == f"{100 * tp / (tp + fn):.1f}" == in_percent(mine["recall"])
    if mine["precision_low"]:
        ends = in_percent(mine["precision_low"]), in_percent(mine["precision_high"])
        assert (found["low"], found["high"]) == ends
    base = BASE.search(text)
    assert base and (base["base_hits"], base["base_trials"]) == (str(tp + fn), mine["n"])
    assert base["base"] == f"{100 * (tp + fn) / (tp + fp + fn + tn):.1f}"
    if rule := RULE.search(text):
        assert rule["precision"] == in_percent(whole[mine["judge"], "rule-based"]["precision"])
    best = [row for row in whole.values() if row["evaluator"] == "judge" and row["precision"]]
    assert float(mine["precision"]) == max(float(row["precision"]) for row in best)
    for judge in judges:
        if int(whole[judge, "judge"]["missing"]) == int(whole[judge, "judge"]["n"]):
            assert re.search(rf"Every judgment of [^:]*\b{judge}\b[^:]* failed", text)
            assert not any(whole[judge, "judge"][name] for name in ("recall", "f1", "accuracy"))


def check_table(screen: str, rows: list[dict[str, str]]) -> int:
    """Find each row of the table of a screen in results.csv; return how many there are."""
    pattern = re.compile(
        r"^(?:\S+)? +(?P<judge>\S+)(?: beside \S+)? +(?P<precision>[\d.]+|–)"
        r"(?: \[(?P<low>[\d.]+), (?P<high>[\d.]+)\])?"
        r" +(?P<recall>[\d.–]+) +(?P<f1>[\d.–]+) +(?P<n>\d+)$"
    )
    cells = {
        (
            row["judge"] if row["evaluator"] != "rule-based" else "rule-based",
            in_percent(row["precision"]),
            in_percent(row["recall"]),
            in_percent(row["f1"]),
            row["n"],
            in_percent(row["precision_low"]) if row["precision_low"] else None,
        )
        for row in rows
    }
    head = screen.index("precision [95 %]")
    shown = [found for line in screen[head:].splitlines() if (found := pattern.match(line))]
    for found in shown:
        names = ("judge", "precision", "recall", "f1", "n", "low")
        assert tuple(found[name] for name in names) in cells, found[0]
    return len(shown)


@pytest.mark.parametrize("seed", range(24))
def test_every_figure_is_that_of_the_file(seed: int) -> None:
    scored = world(seed)
    rows, screen = rows_of(results_csv(scored)), summary(scored, width=100)
    check(screen, rows)
    assert 2 <= check_table(screen, rows) <= 10


@pytest.mark.usefixtures("own_folder")
def test_the_sentence_of_the_sample_is_what_its_files_hold(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("--judge", "heuristic") == 0
    screen = capsys.readouterr().out
    check(screen, rows_of(Path("run/results.csv").read_text()))
    found = SENTENCE.search(on_one_line(screen))
    assert found
    name = ("benchmark", "agent", "task_id", "attempt")
    labels = {
        tuple(one["key"].get(part) for part in name): one["success"]
        for one in map(json.loads, Path("run/labels.jsonl").read_text().splitlines()[1:])
    }
    accepted = [
        tuple(one["key"].get(part) for part in name)
        for one in map(json.loads, Path("run/judgments.jsonl").read_text().splitlines())
        if one["success"]
    ]
    right = sum(bool(labels[place]) for place in accepted)
    assert (found["precision_hits"], found["precision_trials"]) == (str(right), str(len(accepted)))
    assert found["recall_trials"] == str(sum(map(bool, labels.values())))


@pytest.mark.usefixtures("own_folder")
def test_the_screen_in_the_docs_is_what_score_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert run("--judge", "heuristic") == 0
    capsys.readouterr()
    assert score_main(["run"]) == 0
    page = (Path(__file__).parents[2] / "docs" / "statistics.md").read_text()
    (shown,) = re.findall(r"```text\n(heuristic on .*?)```", page, re.DOTALL)
    assert capsys.readouterr().out == shown


def test_where_every_judgment_failed_no_rate_is_printed() -> None:
    labels = {key(n): label(n, n % 2 == 0) for n in range(40)}
    judgments = [failed(n, Status.REFUSED) for n in range(40)]
    scored = score(judgments, labels, rewards=dict.fromkeys(labels, 1.0))
    screen = summary(scored, width=100)
    assert "Every judgment of judge failed: no rate is known" in screen
    assert not re.search(r"\d\.\d", screen)
    tables = plain(scored).partition("Usage and cost")[0]
    for text in (tables, results_csv(scored)):
        for line in text.splitlines():
            if re.match(r"judge,judge,|\S+ +judge ", line) and "refused" not in line:
                assert not re.search(r"\d\.\d", line), line
    assert scored.success_rates[0].judge_rate is None
    assert scored.against_baseline == ()
    judgments = [*judgments, *(said(n, n < 20, judge="other") for n in range(40))]
    both = with_estimated_rates(score(judgments, labels, rewards={}), judgments, labels, {})
    assert all(one.difference is None for one in both.comparison.differences)
    assert [one.judge for one in both.estimated_rates if one.judge == "judge"] == []


PAGE = Path(__file__).parents[2] / "docs" / "guides" / "deciding.md"
SCREENS = re.findall(
    r"^```console\n\$ trajudge ([^\n]*)\n(.*?)^```$", PAGE.read_text(), re.M | re.S
)


def test_the_screens_are_true_to_the_commands_and_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    assert [command.split()[0] for command, _ in SCREENS] == ["judge", "select", "accept", "audit"]
    for command, screen in SCREENS:
        main(command.split())
        shown = capsys.readouterr().out
        assert not screen or shown == screen
    select, accept, audit = (" ".join(screen.split()) for _, screen in SCREENS[1:])
    decision = json.loads(Path("selection/decision.json").read_text())
    nearest = decision["findings"][decision["nearest"]]
    precision, (low, high) = nearest["precision"], nearest["interval"]
    assert (
        f"{precision['hits']} of the {precision['trials']} runs that it accepts are true successes "
        f"({100 * precision['estimate']:.1f} %; 95 % interval {100 * low:.1f} to {100 * high:.1f})"
        in select
    )
    assert f"too few tasks ({nearest['tasks']})" in select
    scored = json.loads(Path("heuristic/results.json").read_text())["scores"]
    [overall] = [
        score
        for score in scored
        if (score["benchmark"], score["agent"], score["label"]) == ("overall", "all", "success")
        and not score["baseline"]
    ]
    assert overall["intervals"]["precision"] == pytest.approx([low, high])  # as score shows it
    counts = json.loads(Path("training/acceptance.json").read_text())["counts"]
    total = sum(counts.values())
    assert (
        f"Accepted {counts['accepted']} of {total} trajectories "
        f"({100 * counts['accepted'] / total:.1f} %)" in accept
    )
    errors = json.loads(Path("audited/audit.json").read_text())["errors"][0]
    right, denied = errors["precision"], errors["missed"]
    assert (
        f"passes {right['trials']} of {errors['n']} runs, of which {right['hits']} are true "
        f"successes ({100 * right['rate']:.1f} %" in audit
    )
    assert (
        f"denies {denied['hits']} of the {denied['trials']} true successes "
        f"({100 * denied['rate']:.1f} %, {100 * denied['low']:.1f} to {100 * denied['high']:.1f} "
        in audit
    )
