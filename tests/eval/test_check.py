"""``trajudge check`` against counts over the raw files, an own arithmetic, and known worlds."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import trajudge as tj
from trajudge.eval.check import CheckedRate, CheckResult, check, page
from trajudge.eval.cli import main
from trajudge.stats.intervals import rates_by_cluster
from trajudge.util.errors import UserError

TABLES = Path(__file__).parent / "check_tables"
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "check.md"
GERMAN: dict[str, Any] = {"columns": "judge=Urteil,label=Mensch,task=Aufgabe"}
YES = {"yes", "pass", "1", "success", "correct", "successful", "true", "ja"}
NO = {"no", "fail", "0", "failure", "incorrect", "unsuccessful", "false", "nein"}

Row = dict[str, Any]


def file_of(number: str) -> Path:
    [file] = TABLES.glob(f"{number}-*")
    return file


def raw(number: str) -> list[dict[str, str]]:
    """The rows as the csv module reads them."""
    text = file_of(number).read_text(encoding="utf-8-sig")
    return list(csv.DictReader(io.StringIO(text), delimiter=";" if number == "05" else ","))


def rows_of(accepted: Any, right: Any, **columns: Sequence[Any]) -> list[Row]:
    return [
        {"verdict": "yes" if a else "no", "label": "yes" if r else "no"}
        | {name: values[i] for name, values in columns.items()}
        for i, (a, r) in enumerate(zip(accepted, right, strict=True))
    ]


def counts(result: CheckResult) -> tuple[int, ...]:
    [judge] = result.judges
    rates = judge.precision, judge.recall, judge.agreement, judge.always_yes
    return tuple(n for rate in rates for n in (rate.hits, rate.trials))


def counted(pairs: Sequence[tuple[bool, bool]]) -> tuple[int, ...]:
    """The same numbers, counted here from pairs of verdict and label."""
    cells = Counter(pairs)
    yes, right, n = cells[True, True] + cells[True, False], sum(r for _, r in pairs), len(pairs)
    both = cells[True, True]
    return both, yes, both, right, both + cells[False, False], n, right, n


@pytest.mark.parametrize(
    ("number", "verdict", "label", "options"),
    [
        ("02", "judge", "human", {}),
        ("03", "prediction", "gold", {}),
        ("04", "verdict", "label", {}),
        ("05", "Urteil", "Mensch", GERMAN),
        ("05", "Urteil", "Mensch", {**GERMAN, "words": "ja=yes,nein=no"}),
        ("06", "verdict", "label", {}),
        ("09", "verdict", "label", {}),
    ],
)
def test_every_count_is_that_of_the_raw_file(
    number: str, verdict: str, label: str, options: dict[str, Any]
) -> None:
    cells = [(row[verdict].lower(), row[label].lower()) for row in raw(number)]
    read = [(v in YES, r in YES) for v, r in cells if v in YES | NO and r in YES | NO]
    assert counts(check(file_of(number), **options)) == counted(read)


def test_nested_records_are_read_by_their_dotted_names() -> None:
    records = [json.loads(line) for line in file_of("10").read_text().splitlines()]
    read = [(r["judge"]["verdict"] == "Successful", r["human"]["success"]) for r in records]
    result = check(file_of("10"))
    assert counts(result) == counted(read)
    assert result.columns["task"] == ("example.task",)
    assert result.judges[0].tasks == len({r["example"]["task"] for r in records}) == 60


def test_two_judges_with_the_same_names_below_each_other_are_not_mixed_up() -> None:
    rows = [
        {"human": {"verdict": r}, "judge": {"verdict": v}}
        for v, r in [("yes", "no"), ("yes", "yes"), ("no", "no")]
    ]
    result = check(rows)
    assert (result.columns["judge"], result.columns["label"]) == (
        ("judge.verdict",),
        ("human.verdict",),
    )
    assert counts(result)[:2] == (1, 2)


def test_what_cannot_be_read_is_counted_with_an_example_and_is_no_no() -> None:
    texts = Counter(row["verdict"] for row in raw("06"))
    unread = {text: n for text, n in texts.items() if text.lower() not in YES | NO}
    [note] = [note for note in check(file_of("06")).notes if "left out" in note]
    assert note.startswith(f"{sum(unread.values())} verdicts in 'verdict' are neither yes nor no")
    for text, n in unread.items():
        line = [row["verdict"] for row in raw("06")].index(text) + 2
        shown = f"{n} × {text!r}" if text else f"{n} empty"
        assert f"{shown} (line {line})" in note


def test_limits_take_tasks_for_the_units_without_being_told() -> None:
    rows = raw("02")
    accepted = np.array([row["judge"] == "yes" for row in rows])
    right = np.array([row["human"] == "pass" for row in rows])
    hits = np.stack([accepted & right] * 2, axis=1)
    trials = np.stack([accepted, right], axis=1)
    expected = rates_by_cluster(hits, trials, [row["task"] for row in rows]).interval
    [judge] = check(file_of("02")).judges
    for at, rate in enumerate((judge.precision, judge.recall)):
        assert (rate.low, rate.high) == pytest.approx((expected.low[at], expected.high[at]))
    assert (judge.runs, judge.tasks) == (480, 60)
    apart = check([{k: row[k] for k in ("judge", "human")} for row in rows])
    [alone] = apart.judges
    assert alone.precision.rate == judge.precision.rate
    assert width(judge.precision) > 1.5 * width(alone.precision)
    assert any("taken as independent" in note for note in apart.notes)


def width(rate: Any) -> float:
    return float(rate.high - rate.low)


def test_runs_of_different_tasks_have_the_exact_interval() -> None:
    [judge] = check(file_of("03")).judges
    for rate in (judge.precision, judge.recall, judge.agreement):
        low = stats.beta.ppf(0.025, rate.hits, rate.trials - rate.hits + 1)
        high = stats.beta.ppf(0.975, rate.hits + 1, rate.trials - rate.hits)
        assert (rate.low, rate.high) == pytest.approx((low, high))


def test_ids_that_repeat_are_tasks() -> None:
    rows = rows_of([True] * 8, [True] * 8, id=[0, 0, 1, 1, 2, 2, 3, 3])
    assert check(rows).judges[0].tasks == 4


def test_benchmarks_part_tasks_of_one_name() -> None:
    rows = rows_of([True, False] * 4, [True] * 8, task=[0, 1] * 4, benchmark=["a"] * 4 + ["b"] * 4)
    strata = rates_by_cluster([1, 0] * 4, [1] * 8, [0, 1] * 4, ["a"] * 4 + ["b"] * 4).interval
    [judge] = check(rows).judges
    assert judge.recall.low == pytest.approx(float(strata.low[0]))
    assert judge.tasks == 4


@pytest.mark.parametrize(
    ("share", "answer", "code"),
    [(0.54, "holds", 0), (0.55, "cannot be told yet", 3), (0.99, "cannot be told yet", 3)],
)
def test_a_target_holds_from_five_percent_on(
    share: float, answer: str, code: int, tmp_path: Path
) -> None:
    """Five of five: 0.54 ** 5 is 0.046, 0.55 ** 5 is 0.0503."""
    file = tmp_path / "five.csv"
    file.write_text("verdict,label\n" + "yes,yes\n" * 5)
    [judge] = check(file, target={"precision": share}).judges
    assert judge.targets[0].answer == answer
    assert main(["check", str(file), "--target", f"precision={share}"]) == code


def test_a_target_does_not_hold_from_five_percent_on() -> None:
    """None of five right: 0.45 ** 5 is 0.018, 0.55 ** 5 is 0.0503."""
    rows = rows_of([True] * 5 + [False] * 5, [False] * 5 + [True] * 5)
    assert check(rows, target="precision=0.45").answer == "cannot be told yet"
    assert check(rows, target="precision=0.46").answer == "does not hold"
    assert check(rows, target="precision=0.46").exit_code == 1


def test_two_targets_hold_together_or_not_at_all() -> None:
    def answers(target: str) -> tuple[str | None, int]:
        result = check(file_of("03"), target=target)
        return result.answer, result.exit_code

    assert answers("precision=0.7,recall=0.7") == ("holds", 0)
    assert answers("precision=0.7,recall=0.85") == ("cannot be told yet", 3)
    assert answers("precision=0.95,recall=0.7") == ("does not hold", 1)
    levels = [
        t.below_level
        for t in check(file_of("03"), target="precision=.9,recall=.7").judges[0].targets
    ]
    assert levels == [0.025, 0.025]


@pytest.mark.parametrize("number", ["02", "03", "06"])
def test_the_highest_target_holds_and_the_next_does_not(number: str) -> None:
    [judge] = check(file_of(number)).judges
    assert set(judge.highest) == {"precision", "recall", "agreement"}
    for rate, share in judge.highest.items():
        assert check(file_of(number), target={rate: share}).answer == "holds"
        assert check(file_of(number), target={rate: share + 0.01}).answer != "holds"


def test_a_task_with_most_of_what_is_accepted_shows_too_little() -> None:
    """At exactly half it may hold, above half it may not, however many are right."""
    half = [0] * 4 + [1, 1, 2, 2]
    for task, answer in ((half, "holds"), ([0, *half], "cannot be told yet")):
        n = len(task)
        rows = rows_of([True] * n, [True] * n, task=task)
        assert check(rows, target="precision=0.01").answer == answer


def test_several_judges_share_the_chance_of_error() -> None:
    result = check(file_of("07"), threshold=0.5, target="precision=0.6")
    assert [judge.name for judge in result.judges] == ["score_a", "score_b"]
    assert [judge.targets[0].level for judge in result.judges] == [0.025, 0.025]
    rows = raw("07")
    for judge in result.judges:
        read = [(float(row[judge.name]) >= 0.5, row["human_label"] == "True") for row in rows]
        assert (judge.precision.hits, judge.precision.trials) == counted(read)[:2]
    assert result.answer == "does not hold"
    assert "2.5 %, 5 % over all 2 judges" in str(result).replace("\n ", "")


def test_a_score_at_the_threshold_accepts() -> None:
    rows = [{"score": s, "label": "yes"} for s in (0.3, 0.5, 0.7)]
    assert [check(rows, threshold=t).judges[0].precision.trials for t in (0.5, 0.51)] == [2, 1]
    with pytest.raises(UserError, match=r"scores from 0.3 to 0.7: .* --threshold T"):
        check(rows)


def test_judges_named_in_a_column_are_told_apart() -> None:
    rows = [
        {"judge": name, "verdict": v, "label": "yes", "task": t}
        for name, verdicts in (("gpt", "yyn"), ("glm", "ynn"))
        for t, v in enumerate(verdicts)
    ]
    judges = check(rows).judges
    assert [(j.name, j.runs, j.recall.hits) for j in judges] == [("gpt", 3, 2), ("glm", 3, 1)]


@pytest.mark.parametrize("policy", ["majority", "all", "any"])
def test_annotators_count_as_is_said(policy: str) -> None:
    def label(row: dict[str, str]) -> bool | None:
        said = [row[name] == "yes" for name in ("ann1", "ann2", "ann3") if row[name]]
        if not said:
            return None
        if policy == "majority":
            return None if 2 * sum(said) == len(said) else 2 * sum(said) > len(said)
        return all(said) if policy == "all" else any(said)

    read = [(row["judge"] == "yes", label(row)) for row in raw("08")]
    known = [(v, r) for v, r in read if r is not None]
    assert counts(check(file_of("08"), annotators=policy)) == counted(known)  # type: ignore[arg-type]


def test_annotators_in_rows_count_as_those_in_columns() -> None:
    wide = raw("08")
    rows = [
        {"task": row["task_id"], "run": i, "judge": row["judge"], "rater": name, "label": row[name]}
        for i, row in enumerate(wide)
        for name in ("ann1", "ann2", "ann3")
        if row[name]
    ]
    with pytest.raises(UserError, match=r"several annotators .* --annotators majority, all or any"):
        check(rows)
    assert counts(check(rows, annotators="any")) == counts(check(file_of("08"), annotators="any"))


def test_several_annotators_are_refused_until_it_is_said_how_they_count() -> None:
    with pytest.raises(UserError, match=r"'ann1', 'ann2', 'ann3'.* --annotators majority"):
        check(file_of("08"))
    assert check(file_of("08"), columns="label=ann2").columns["label"] == ("ann2",)


def test_a_judge_that_never_says_no_is_named() -> None:
    [judge] = check(file_of("04")).judges
    assert judge.warnings[0].startswith("it never says no")
    assert judge.precision == judge.always_yes
    assert "never says no" in str(check(file_of("04")))


def test_eight_rows_cannot_tell() -> None:
    shown = str(check(file_of("09")))
    assert shown.startswith("8 labelled runs of 8 tasks cannot tell whether verdict can be trusted")
    assert not str(check(file_of("03"))).startswith("150 labelled runs")


def test_verdicts_that_follow_the_length_of_the_answer_are_named() -> None:
    rng = np.random.default_rng(0)
    lengths, right = rng.integers(1, 200, 100), rng.random(100) < 0.5
    long, short = (lengths >= 80), (lengths < 80)
    answers = ["x" * int(n) for n in lengths]
    for accepted, rule in ((long, "at least"), (short, "less than")):
        [judge] = check(rows_of(accepted, right, answer=answers)).judges
        [line] = [line for line in judge.warnings if "same as the answer's length" in line]
        assert rule in line
        assert "100.0 %" in line
    mixed = np.where(rng.random(100) < 0.3, ~long, long)
    [judge] = check(rows_of(mixed, right, answer=answers)).judges
    assert not [line for line in judge.warnings if "length" in line]


def test_lengths_are_compared_from_twenty_runs_on() -> None:
    for n, named in ((20, 1), (19, 0)):
        accepted = [i >= n // 2 for i in range(n)]
        rows = rows_of(accepted, [i % 2 == 0 for i in range(n)], answer_length=list(range(n)))
        warnings = check(rows).judges[0].warnings
        assert len([line for line in warnings if "answer's length" in line]) == named


def test_limits_wider_than_sixty_points_tell_nothing() -> None:
    assert [CheckedRate(1, 2, 0.3, 0.0, high).is_wide for high in (0.6, 0.61)] == [False, True]
    assert CheckedRate(1, 1, 1.0, None, None).is_wide


def test_the_rules_and_the_base_rate_stand_beside_the_judge() -> None:
    rng = np.random.default_rng(1)
    right, reward = rng.random(90) < 0.5, rng.random(90) < 0.4
    rows = rows_of(right, right, reward=[float(r) for r in reward], task=list(range(90)))
    result = check(rows)
    rule = result.judges[0].rule
    assert rule is not None
    both = counted(list(zip(reward.tolist(), right.tolist(), strict=True)))
    assert (rule.precision.hits, rule.precision.trials) == both[:2]
    assert f"Of the {both[1]} runs that the rule reward passes, {both[0]} are right" in str(result)
    assert f"{100 * right.mean():.1f} %" in str(result)


def test_more_labels_are_those_of_a_brute_force_search() -> None:
    """Nine of ten right, one run a task, a target of 0.8 at 5 % and 80 % power."""
    rows = rows_of([True] * 20 + [False] * 20, [True] * 18 + [False] * 2 + [False] * 20)
    [target] = check(rows, target="precision=0.8").judges[0].targets

    def power(n: int) -> float:
        critical = next(k for k in range(n + 2) if stats.binom.sf(k - 1, n, 0.8) <= 0.05)
        return float(stats.binom.sf(critical - 1, n, 0.9))

    needed = next(n for n in range(20, 500) if power(n) >= 0.8)
    assert target.more_labels == needed - 20
    # Which runs are right is known once they are labelled: 18 of these 40 are.
    [target] = (
        check([{"verdict": r["label"], "label": r["verdict"]} for r in rows], target="recall=0.8")
        .judges[0]
        .targets
    )
    assert target.more_labels == (needed - 20) * 2


def test_frames_lists_and_files_give_the_same_answer(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    rows = raw("02")
    expected = counts(check(file_of("02")))
    (tmp_path / "list.json").write_text(json.dumps(rows))
    (tmp_path / "lines.jsonl").write_text("\n".join(map(json.dumps, rows)))
    frame = pandas.DataFrame(rows)
    tables: list[Any] = [rows, frame, tmp_path / "list.json", str(tmp_path / "lines.jsonl")]
    for table in tables:
        assert counts(check(table)) == expected
    pytest.importorskip("pyarrow")
    frame.to_parquet(tmp_path / "table.parquet")
    assert counts(check(tmp_path / "table.parquet")) == expected


def test_mappings_say_the_same_as_texts() -> None:
    given = {"judge": "Urteil", "label": ["Mensch"], "task": "Aufgabe"}
    named = check(
        file_of("05"), columns=given, words={"ja": True, "nein": False}, target={"recall": 0.6}
    )
    assert str(named) == str(check(file_of("05"), **GERMAN, target="recall=0.6"))
    swapped = check(file_of("05"), **GERMAN, words="ja=no,nein=yes")
    assert swapped.judges[0].precision.trials == sum(row["Urteil"] == "nein" for row in raw("05"))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, r"no column for judge .*'Urteil': yes or no .*'Mensch': yes or no"),
        ({"columns": "judge=Urteil"}, r"no column for label .* --columns label=COLUMN"),
        ({"columns": "judge=Urteli,label=Mensch"}, r"no such column, did you mean 'Urteil'"),
        ({"columns": "juge=Urteil"}, r"no role 'juge', did you mean 'judge'"),
        ({"columns": {"juge": "Urteil"}}, r"no role 'juge'"),
        ({**GERMAN, "target": "precison=0.8"}, r"no such rate, did you mean 'precision'"),
        ({**GERMAN, "target": "precision=80"}, r"a share between 0 and 1"),
        ({**GERMAN, "target": "precision=1"}, r"a share between 0 and 1"),
        ({**GERMAN, "target": "precision"}, r"a share between 0 and 1"),
        ({**GERMAN, "target": "recall=.5,recall=.6"}, r"given twice"),
        ({**GERMAN, "words": "ja=perhaps"}, r"ja=yes or ja=no"),
        ({"columns": "judge=Urteil,label=Aufgabe"}, r"holds numbers from 0 to 49"),
        ({"columns": "judge=Urteil,label=Mensch,task=Urteil,task=Mensch"}, r"takes one column"),
        ({"columns": "judge=Urteil,label=Urteil"}, r"'Urteil' is named twice"),
        ({**GERMAN, "threshold": float("nan")}, r"--threshold nan: must be a finite number"),
        ({**GERMAN, "annotators": "most"}, r"--annotators most: use majority, all, any"),
    ],
)
def test_a_mistake_is_one_sentence(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        check(file_of("05"), **options)


def test_words_that_nobody_knows_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "words.csv"
    file.write_text("verdict,label\nbueno,yes\nmalo,no\nbueno,no\n")
    assert main(["check", str(file)]) == 2
    assert "--words bueno=yes,malo=no" in capsys.readouterr().err
    assert main(["check", str(file), "--words", "bueno=yes,malo=no"]) == 0
    file.write_text("verdict,label\n")
    assert main(["check", str(file)]) == 2
    assert "holds no rows" in capsys.readouterr().err
    assert main(["check", str(tmp_path / "missing.csv")]) == 2


def test_the_page_holds_the_answer_and_obeys_no_name(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    arguments = ["--target", "recall=0.6", "--report", str(file)]
    assert main(["check", str(file_of("02")), *arguments]) == 0
    text = file.read_text()
    assert "The target holds." in text
    assert "129/182" in text
    assert not re.search(r"(src|href)=", text)
    rows = [{"<b>x</b>": "yes", "label": "yes"}]
    shown = page(check(rows, columns="judge=<b>x</b>"))
    assert "<b>x" not in shown
    assert "&lt;b&gt;x" in shown


@pytest.mark.browser
def test_the_page_does_not_scroll_sideways(tmp_path: Path, chromium: Path) -> None:
    from playwright.sync_api import sync_playwright

    file = tmp_path / "page.html"
    file.write_text(page(check(file_of("07"), threshold=0.5, target="precision=0.6")))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page()
        tab.goto(file.as_uri())
        for columns in (390, 1280):
            tab.set_viewport_size({"width": columns, "height": 900})
            assert tab.evaluate("document.documentElement.scrollWidth") <= columns
        browser.close()


def test_the_guide_is_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its screen is what the command prints, and its test of six lines passes."""
    text = GUIDE.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    Path("judgments.csv").write_bytes(file_of("02").read_bytes())
    screen = next(b for b in re.findall(r"```text\n(.*?)```", text, re.S) if b.startswith("Of the"))
    assert main(["check", "judgments.csv", "--target", "recall=0.7"]) == 0
    assert capsys.readouterr().out == screen
    [code] = re.findall(r"```python\n(.*?)```", text, re.S)
    assert len([line for line in code.splitlines() if line]) <= 6
    names: dict[str, Any] = {}
    exec(compile(code, "check.md", "exec"), names)
    [test] = [value for name, value in names.items() if name.startswith("test_")]
    test()


def test_the_public_function_is_the_command_s() -> None:
    assert tj.check is check
    assert repr(check(file_of("09"))).startswith("<CheckResult of ")


def world(rng: np.random.Generator, tasks: int, runs: int) -> list[Row]:
    """Beta-binomial with a correlation of .5 within a task: success .4, sensitivity .85, false
    alarms .15."""
    success, sensitivity, alarms = (
        rng.beta(rate, 1 - rate, tasks)[:, None] for rate in (0.4, 0.85, 0.15)
    )
    right = rng.random((tasks, runs)) < success
    accepted = rng.random((tasks, runs)) < np.where(right, sensitivity, alarms)
    task = np.repeat(np.arange(tasks), runs).tolist()
    return rows_of(accepted.ravel().tolist(), right.ravel().tolist(), task=task)


def test_the_same_words_mean_the_same_in_every_spelling() -> None:
    words = [("PASS", "Fail"), ("True", "FALSE"), ("1.0", "0.0"), ("correct", "incorrect")]
    words += [("Successful", "Unsuccessful"), ("success", "failure"), ("Yes.", " no ")]
    rows = [{"verdict": yes, "label": no} for yes, no in words]
    assert counts(check(rows)) == counted([(True, False)] * len(words))


def test_runs_without_a_label_or_a_task_are_counted() -> None:
    rows = rows_of([True] * 5, [True] * 5, task=["a", "a", "", "", "b"])
    rows[0]["label"] = ""
    result = check(rows)
    assert (result.judges[0].runs, result.judges[0].tasks) == (4, 4)
    assert "1 label in 'label' is neither yes nor no and left out: 1 empty (row 1)" in result.notes
    assert any(note.startswith("2 rows without a task") for note in result.notes)


@pytest.mark.slow
def test_limits_cover_and_targets_err_as_they_say_where_tasks_repeat() -> None:
    """600 redraws: 95 % less three standard errors, and 5 % with three more."""
    truth = {"precision": 0.34 / 0.43, "recall": 0.85}
    rng = np.random.default_rng(7)
    covered, wrong = Counter[str](), Counter[str]()
    n = 600
    for _ in range(n):
        [judge] = check(world(rng, 60, 8), target=truth).judges
        for target in judge.targets:
            rate = getattr(judge, target.rate)
            covered[target.rate] += rate.low <= truth[target.rate] <= rate.high
            wrong[f"{target.rate} {target.answer}"] += 1
    for rate in truth:
        assert covered[rate] >= (0.95 - 3 * (0.95 * 0.05 / n) ** 0.5) * n
        assert wrong[f"{rate} holds"] <= (0.05 + 3 * (0.05 * 0.95 / n) ** 0.5) * n
        assert wrong[f"{rate} does not hold"] <= (0.05 + 3 * (0.05 * 0.95 / n) ** 0.5) * n
