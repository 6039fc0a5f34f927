"""``trajudge check``: figures counted again, targets at their boundaries, tables of people."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

import trajudge as tj
from trajudge.eval.check import TableCheck, check
from trajudge.eval.cli import main

Rows = list[dict[str, Any]]


def world(
    rng: np.random.Generator, tasks: int, runs: int, correlation: float = 0.5
) -> tuple[Rows, float]:
    """Draw runs of tasks whose success (.4), recognised successes (.85) and false alarms (.15) each
    vary between tasks by beta distributions with this correlation; and the true precision."""
    rows: Rows = []
    size = 1 / correlation - 1
    for task in range(tasks):
        success, seen, alarm = (rng.beta(p * size, (1 - p) * size) for p in (0.4, 0.85, 0.15))
        for run in range(runs):
            right = rng.random() < success
            says = rng.random() < (seen if right else alarm)
            rows.append(
                {
                    "task": f"q{task}",
                    "run": run,
                    "judge": "yes" if says else "no",
                    "human": "pass" if right else "fail",
                }
            )
    return rows, 0.4 * 0.85 / (0.4 * 0.85 + 0.6 * 0.15)


def singles(right: int, wrong: int, missed: int = 3, denied: int = 10) -> Rows:
    """Rows of one run a task: accepted and right, accepted and wrong, rejected and right, rejected
    and wrong."""
    cells = [(1, 1)] * right + [(1, 0)] * wrong + [(0, 1)] * missed + [(0, 0)] * denied
    return [{"task_id": n, "verdict": v, "label": h} for n, (v, h) in enumerate(cells)]


def saved(path: Path, rows: Sequence[Mapping[str, Any]], delimiter: str = ",") -> Path:
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, [*rows[0]], delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


def screen(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_every_figure_is_that_of_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, _ = world(np.random.default_rng(1), 40, 6)
    path = saved(tmp_path / "table.csv", rows, ";")
    assert main(["check", str(path)]) == 0
    read = list(csv.DictReader(path.open(encoding="utf-8-sig"), delimiter=";"))
    accepted = [row for row in read if row["judge"] == "yes"]
    right = [row for row in read if row["human"] == "pass"]
    both = [row for row in accepted if row["human"] == "pass"]
    agree = sum((row["judge"] == "yes") == (row["human"] == "pass") for row in read)
    shown = screen(capsys)
    assert (
        f"Of the {len(accepted)} runs that judge accepts {len(both)} are right: "
        f"{100 * len(both) / len(accepted):.1f} % [" in shown
    )
    assert f"Of the {len(right)} right runs it accepts {len(both)}: " in shown
    assert f"accepting every run is right in {100 * len(right) / 240:.1f} % [" in shown
    assert "240 rows of 40 tasks" in shown
    judge = tj.check(path).judges[0]
    assert (judge.agreement.hits, judge.agreement.trials) == (agree, 240)
    assert judge.accepts == len(accepted) / 240


def test_limits_of_independent_runs_are_exact() -> None:
    """Against scipy's exact binomial interval and test."""
    judge = tj.check(singles(45, 9)).judges[0]
    exact = scipy.stats.binomtest(45, 54).proportion_ci(method="exact")
    assert judge.precision.low == pytest.approx(exact.low)
    assert judge.precision.high == pytest.approx(exact.high)
    shown = [
        percent
        for percent in range(1, 100)
        if scipy.stats.binomtest(45, 54, percent / 100, alternative="greater").pvalue <= 0.05
    ]
    assert judge.precision.holds == max(shown) / 100


def test_a_target_at_its_boundary(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """59 of 59 show 95 % at a chance of error of 5 %, 58 of 58 do not: .95 ** 59 < .05 < .95 ** 58;
    and 13 of 40 deny the first target that their chance of at most 13 hits does."""
    codes = [
        main(["check", str(saved(tmp_path / f"{n}.csv", singles(n, 0))), "--target=precision=0.95"])
        for n in (58, 59)
    ]
    assert codes == [3, 0]
    shown = screen(capsys)
    assert "precision of at least 95 % cannot be told yet (100.0 % [93.8, 100.0] seen" in shown
    assert "precision of at least 95 % holds (100.0 % [93.9, 100.0] seen" in shown
    denied = [p for p in range(33, 99) if scipy.stats.binom.cdf(13, 40, p / 100) <= 0.05]
    for percent, status, code in (
        (min(denied) - 1, "cannot be told yet", 3),
        (min(denied), "does not hold", 1),
    ):
        few = tj.check(singles(13, 27), target={"precision": percent / 100})
        assert (few.judges[0].targets[0].status, few.exit_code) == (status, code)


def test_how_many_more_labels() -> None:
    """Against the power of scipy's binomial: with them the target is shown 8 times in 10."""
    [target] = tj.check(singles(36, 4), target="precision=0.8").judges[0].targets
    assert target.status == "cannot be told yet"
    assert target.more_labels is not None
    sizes = range(1, 40 + target.more_labels + 1)
    enough = [
        scipy.stats.binom.sf(scipy.stats.binom.isf(0.05, m, 0.8), m, 0.9) >= 0.8 for m in sizes
    ]
    assert any(enough)
    assert enough.index(True) + 1 == pytest.approx(max(sizes), rel=0.05)
    [near] = tj.check(singles(40, 10), target="precision=0.8").judges[0].targets
    assert (near.status, near.more_labels) == ("cannot be told yet", None)


def test_two_targets_and_two_judges() -> None:
    rows = [row | {"verdict_b": 1} for row in singles(59, 0, missed=0)]
    renamed = [{("verdict_a" if k == "verdict" else k): v for k, v in row.items()} for row in rows]
    checked = tj.check(renamed, target="precision=0.95")
    assert [judge.name for judge in checked.judges] == ["verdict_a", "verdict_b"]
    # Each of two judges is tested at half of the chance of error: .95 ** 59 = .0485 > .025.
    assert checked.judges[0].targets[0].status == "cannot be told yet"
    alone = tj.check(renamed, columns={"judge": "verdict_a"}, target="precision=0.95,recall=0.95")
    assert [target.status for target in alone.judges[0].targets] == ["holds", "holds"]
    assert alone.exit_code == 0


def test_repeated_runs_are_no_new_tasks() -> None:
    rows, _ = world(np.random.default_rng(2), 30, 1)
    once = tj.check(rows).judges[0].precision
    eight = tj.check([row for row in rows for _ in range(8)]).judges[0].precision
    assert eight.trials == 8 * once.trials
    assert eight.low is not None and once.low is not None
    assert eight.low == pytest.approx(once.low, abs=0.06)
    loose = tj.check([{**row, "task": n} for n, row in enumerate(rows * 8)]).judges[0].precision
    assert loose.low is not None and loose.low > once.low + 0.08


@pytest.mark.slow
def test_coverage_in_a_known_world() -> None:
    """60 tasks of 8 runs: limits cover the true precision, and a false target rarely holds."""
    rng = np.random.default_rng(20261129)
    draws, covered, wrong = 300, 0, 0
    for _ in range(draws):
        rows, truth = world(rng, 60, 8)
        precision = tj.check(rows).judges[0].precision
        assert precision.low is not None and precision.high is not None
        covered += precision.low <= truth <= precision.high
        wrong += precision.holds > truth
    assert covered / draws >= 0.92  # 95 % less two standard errors
    assert wrong / draws <= 0.075


@pytest.mark.parametrize(
    ("yes", "no"),
    [("PASS", "Fail"), ("Successful", "Unsuccessful"), ("true", "FALSE"), ("correct", "incorrect")],
)
def test_words_of_verdicts(yes: str, no: str) -> None:
    rows = [
        {**row, "verdict": yes if row["verdict"] else no, "label": yes if row["label"] else no}
        for row in singles(8, 2)
    ]
    judge = tj.check(rows).judges[0]
    assert (judge.precision.hits, judge.precision.trials, judge.recall.trials) == (8, 10, 11)


def test_words_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{**row, "verdict": "gut" if row["verdict"] else "mies"} for row in singles(8, 2)]
    path = str(saved(tmp_path / "table.csv", rows))
    assert main(["check", path]) == 2
    assert "no cell of 'verdict' says yes or no ('gut', 'mies')" in capsys.readouterr().err
    assert main(["check", path, "--words", "gut=yes,mies=no"]) == 0
    assert "Of the 10 runs that verdict accepts 8 are right" in screen(capsys)


def test_what_cannot_be_read_is_counted_and_no_no(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = singles(40, 5, missed=30, denied=30)
    for place, word in ((50, "unparsable"), (51, ""), (52, "N/A"), (60, "error 500")):
        rows[place]["verdict"] = word
    assert main(["check", str(saved(tmp_path / "t.csv", rows))]) == 0
    shown = screen(capsys)
    assert "Of the 66 right runs it accepts 40" in shown  # the four were right
    assert "4 of 105 cells of 'verdict' are neither yes nor no and are not counted" in shown
    assert "(2 unreadable, 1 empty, 1 unsure), such as 'unparsable'" in shown
    assert "t.csv, line 52)" in shown


def test_scores_need_a_threshold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"task": n, "score_a": score, "score_b": 1 - score, "gold": gold}
        for n, (score, gold) in enumerate([(0.9, 1), (0.7, 1), (0.7, 0), (0.699, 1), (0.1, 0)])
    ]
    path = str(saved(tmp_path / "t.csv", rows))
    assert main(["check", path]) == 2
    assert "'score_a' holds scores from 0.1 to 0.9: name the least score" in capsys.readouterr().err
    first, second = tj.check(path, threshold=0.7).judges  # 0.7 is a yes
    assert (first.precision.hits, first.precision.trials) == (2, 3)
    assert (second.precision.hits, second.precision.trials) == (0, 1)


def test_annotators_who_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wide = [
        {"task": n, "judge": "yes", "ann1": a, "ann2": b, "ann3": c}
        for n, (a, b, c) in enumerate(
            [("yes", "yes", "no"), ("no", "no", "yes"), ("yes", "", ""), ("yes", "no", "")]
        )
    ]
    path = str(saved(tmp_path / "wide.csv", wide))
    assert main(["check", path]) == 2
    refused = capsys.readouterr().err
    assert "the labels ann1, ann2, ann3 differ in 3 of 4 rows" in refused
    assert "--labels-by primary|majority|unanimous|any" in refused
    long = [
        {"task": row["task"], "judge": "yes", "label": row[f"ann{n}"], "annotator": f"a{n}"}
        for row in wide
        for n in (1, 2, 3)
    ]
    counts = {"majority": (2, 3), "any": (4, 4), "primary": (3, 4), "unanimous": (0, 0)}
    for policy, (right, labelled) in counts.items():
        if policy == "unanimous":  # nobody agrees with two others
            with pytest.raises(tj.UserError, match="no row has both"):
                tj.check(wide, labels_by=policy)
            continue
        for table in (wide, long):
            base = tj.check(table, labels_by=policy).base_rate
            assert (base.hits, base.trials) == (right, labelled), policy


def test_judges_that_say_one_thing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    always = [{**row, "verdict": "yes"} for row in singles(30, 20)]
    never = [{**row, "verdict": "no"} for row in singles(30, 20)]
    assert main(["check", str(saved(tmp_path / "a.csv", always))]) == 0
    assert "verdict never says no: of the 63 runs, all accepted, 33 are right" in screen(capsys)
    assert main(["check", str(saved(tmp_path / "n.csv", never))]) == 0
    assert (
        "verdict never says yes in 63 rows, of which 33 are right: it has no precision"
        in screen(capsys)
    )
    longer = [{**row, "answer": "x" * (9 if row["verdict"] else 5)} for row in singles(30, 20)]
    assert main(["check", str(saved(tmp_path / "l.csv", longer))]) == 0
    assert "verdict says the same as the length of the answer: yes to long ones" in screen(capsys)


def test_the_rule_and_always_yes_stand_in_the_table(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rows = [{**row, "official_reward": 0.5 + 0.5 * row["label"]} for row in singles(30, 20)]
    assert main(["check", str(saved(tmp_path / "t.csv", rows))]) == 0
    shown = screen(capsys)
    # A reward of exactly 0.5 is no success.
    assert "rule-based column official_reward is right in 100.0 % [89.4, 100.0]" in shown
    assert re.search(r"always yes 52\.4 \[[\d., ]+\] 100\.0 52\.4", shown)


def test_records_and_frames(tmp_path: Path) -> None:
    rows, _ = world(np.random.default_rng(3), 20, 3)
    nested = [
        {
            "id": f"{row['task']}-{row['run']}",
            "example": {"task": row["task"]},
            "judge": {"verdict": row["judge"], "reason": "because"},
            "human": {"success": row["human"] == "pass"},
        }
        for row in rows
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in nested))
    pandas = pytest.importorskip("pandas")
    flat = tj.check(rows)
    for table in (path, nested, pandas.DataFrame(rows)):
        checked = tj.check(table)
        assert checked.judges[0].precision == flat.judges[0].precision
        assert checked.tasks == 20


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["missing.csv"], "missing.csv: cannot be read"),
        (["t.csv", "--columns", "judge=nope"], "nope"),
        (["t.csv", "--columns", "label=nope"], "it has 'task_id', 'verdict', 'label'"),
        (["t.csv", "--threshold", "0.5"], "verdict holds no scores"),
        (["t.csv", "--target", "precision=80"], "precision must lie between 0 and 1"),
        (["t.csv", "--target", "precision=1"], "precision must lie between 0 and 1"),
        (["t.csv", "--target", "accuracy=0.9"], "name precision, recall or agreement=RATE"),
        (["t.csv", "--words", "gut"], "--words gut: write it as WORD=yes"),
        (["other.csv"], "no column for label"),
    ],
)
def test_mistakes_are_one_sentence(
    words: list[str],
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    saved(tmp_path / "t.csv", singles(3, 1))
    saved(tmp_path / "other.csv", [{"a": 1, "b": "x"}])
    assert main(["check", *words]) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert told.count("\n") == 1


def test_the_page_escapes_and_loads_nothing(tmp_path: Path) -> None:
    rows = [
        {"task": r["task_id"], "<script>": r["verdict"], "label": r["label"]} for r in singles(9, 3)
    ]
    words = ["--columns", "judge=<script>", "--target", "recall=0.4"]
    page = tmp_path / "page.html"
    assert main(["check", str(saved(tmp_path / "t.csv", rows)), *words, "--report", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "<script" not in text and "&lt;script&gt;" in text
    assert "http:" not in text and "https:" not in text and "75.0 [42.8, 94.5] %" in text


def test_the_test_of_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (Path(__file__).parents[2] / "docs/guides/check.md").read_text(encoding="utf-8")
    [code] = re.findall(r"^```python\n(.*?)^```$", guide, flags=re.M | re.S)
    assert len([line for line in code.splitlines() if line]) <= 6
    names: dict[str, Any] = {}
    exec(compile(code, "check.md", "exec"), names)
    monkeypatch.chdir(tmp_path)
    saved(tmp_path / "verdicts.csv", singles(60, 2))
    names["test_the_judge_is_precise"]()
    saved(tmp_path / "verdicts.csv", singles(60, 20))
    with pytest.raises(AssertionError, match="precision of at least 80 % cannot be told yet"):
        names["test_the_judge_is_precise"]()


def test_a_column_has_one_role(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(saved(tmp_path / "t.csv", singles(9, 3)))
    assert main(["check", path, "--columns", "judge=verdict,label=verdict"]) == 2
    assert "'verdict' is named 2 times: give each column one role" in capsys.readouterr().err


def test_judges_named_in_a_column_are_apart() -> None:
    rows = [
        {"task": n, "judge": name, "verdict": verdict, "label": "yes"}
        for n in range(8)
        for name, verdict in (("first", "yes"), ("second", "yes" if n < 3 else "no"))
    ]
    first, second = tj.check(rows).judges
    assert (first.name, first.recall.hits, first.recall.trials) == ("first", 8, 8)
    assert (second.name, second.recall.hits, second.recall.trials) == ("second", 3, 8)


@pytest.mark.parametrize(("of_one", "status"), [(4, "holds"), (5, "cannot be told yet")])
def test_one_task_of_more_than_half_shows_nothing(of_one: int, status: str) -> None:
    tasks = [0] * of_one + [1, 1, 2, 2]
    rows = [{"task": task, "verdict": "yes", "label": "yes"} for task in tasks]
    [target] = tj.check(rows, target="precision=0.01").judges[0].targets
    assert target.status == status


def test_the_base_rate_is_of_the_rows_that_were_judged() -> None:
    rows = singles(6, 2, missed=1, denied=1)
    unread = [{"task_id": n, "verdict": "error", "label": 0} for n in range(100, 110)]
    [judge] = (checked := tj.check(rows + unread)).judges
    assert (judge.base_rate.hits, judge.base_rate.trials) == (7, 10)
    assert judge.gain is not None and judge.gain[0] == pytest.approx(6 / 8 - 7 / 10)
    assert "accepting every run is right in 70.0 %" in " ".join(str(checked).split())
    assert (checked.base_rate.hits, checked.base_rate.trials) == (7, 20)


def test_rewards_and_labels_that_decide_nothing_are_counted() -> None:
    rows = [{**row, "reward": row["label"]} for row in singles(6, 2)]
    rows[0]["reward"], rows[1]["reward"], rows[2]["reward"] = -1, "", "error"
    checked = tj.check(rows)
    assert checked.rule is not None and checked.rule.rows == len(rows) - 2
    assert "2 of 21 cells of 'reward'" in " ".join(checked.warnings)
    several = [{"task": n, "verdict": 1, "ann1": 1, "ann2": int(n < 3)} for n in range(5)]
    checked = tj.check(several, labels_by="majority")
    assert checked.base_rate.trials == 3
    assert "2 rows of 5 have labels that decide nothing by --labels-by majority" in str(checked)


def test_a_missing_length_is_no_length_of_0() -> None:
    rows: Rows = [{**row, "answer_length": 9 if row["verdict"] else 5} for row in singles(9, 3)]
    for row in rows[:6]:  # accepted, and of unknown length
        row["answer_length"] = ""
    assert "the length of the answer: yes to long ones" in " ".join(tj.check(rows).warnings)


def test_ids_that_number_the_rows_are_no_tasks() -> None:
    rows = [{"id": n, "verdict": n % 2, "label": 1} for n in range(8)]
    checked = tj.check(rows)
    assert checked.tasks is None and "no column names the tasks" in str(checked)
    assert tj.check(rows, columns="task=id").tasks == 8
    assert tj.check([{**row, "id": row["id"] // 2} for row in rows]).tasks == 4


def test_a_rate_without_trials_is_none_and_not_0() -> None:
    shown = " ".join(str(tj.check(singles(0, 30, missed=0))).split())
    assert "No run is right, so that it has no recall" in shown
    assert "recall none" in shown and "– %" not in shown and "recall 0 %" not in shown
    assert "of the 1 run, all accepted" in str(tj.check(singles(1, 0, missed=0, denied=0)))


def test_verdicts_of_no_judge_and_tables_without_rows_are_refused(tmp_path: Path) -> None:
    rows = [{"task": n, "judge": "ab"[n % 2], "verdict": 1, "label": 1} for n in range(8)]
    rows[3]["judge"] = ""
    with pytest.raises(tj.UserError, match="row 4: judge is empty in 1 row: name the judge"):
        tj.check(rows)
    with pytest.raises(tj.UserError, match="name=judge: goes with one column of verdicts"):
        tj.check(
            [{**row, "more": 1} for row in rows], columns="name=judge,judge=verdict,judge=more"
        )
    (tmp_path / "t.csv").write_text("task,verdict,label\n")
    with pytest.raises(tj.UserError, match=r"t\.csv: has column names and no rows"):
        tj.check(tmp_path / "t.csv")
    with pytest.raises(tj.UserError, match="--columns label=labl: the table has no such column"):
        tj.check(rows, columns="label=labl")


def test_what_holds_no_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "page.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    with pytest.raises(tj.UserError, match=r"page\.png is not UTF-8 .*: name a file of text$"):
        tj.check(tmp_path / "page.png")
    with pytest.raises(tj.UserError, match=f"^{tmp_path}: is not a file .a folder.: name a file"):
        tj.check(tmp_path)


@pytest.mark.parametrize("word", ["inf", "-inf", "nan", "1e999"])
def test_what_is_no_finite_number_makes_no_column_of_scores(word: str) -> None:
    rows = singles(6, 2)
    rows[0]["verdict"] = word
    checked = tj.check(rows)
    assert checked.judges[0].rows == len(rows) - 1
    assert "1 of 21 cells of 'verdict'" in " ".join(checked.warnings)


TABLES = Path(__file__).parent / "check_tables"
GERMAN = {"columns": "judge=Urteil,label=Mensch,task=Aufgabe"}
YES = {"yes", "pass", "1", "success", "correct", "successful", "true", "ja"}
NO = {"no", "fail", "0", "failure", "incorrect", "unsuccessful", "false", "nein"}


def file_of(number: str) -> Path:
    [file] = TABLES.glob(f"{number}-*")
    return file


def raw(number: str) -> list[dict[str, str]]:
    """The rows as the csv module reads them."""
    text = file_of(number).read_text(encoding="utf-8-sig")
    return list(csv.DictReader(io.StringIO(text), delimiter=";" if number == "05" else ","))


def counts(result: TableCheck, at: int = 0) -> tuple[int, ...]:
    judge = result.judges[at]
    rates = judge.precision, judge.recall, judge.agreement
    return tuple(n for rate in rates for n in (rate.hits, rate.trials))


def counted(pairs: Sequence[tuple[bool, bool]]) -> tuple[int, ...]:
    """The same numbers from pairs of verdict and label."""
    cells = Counter(pairs)
    accepted, right = sum(v for v, _ in pairs), sum(r for _, r in pairs)
    both = cells[True, True]
    return both, accepted, both, right, both + cells[False, False], len(pairs)


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
    records = [json.loads(line) for line in file_of("10").read_text("utf-8").splitlines()]
    read = [(r["judge"]["verdict"] == "Successful", r["human"]["success"]) for r in records]
    result = check(file_of("10"))
    assert counts(result) == counted(read)
    assert result.tasks == len({r["example"]["task"] for r in records})


def test_scores_of_two_judges_are_counted_from_the_threshold_on() -> None:
    result = check(file_of("07"), threshold=0.5)
    for at, name in enumerate(("score_a", "score_b")):
        read = [(float(row[name]) >= 0.5, row["human_label"] == "True") for row in raw("07")]
        assert counts(result, at) == counted(read)


@pytest.mark.parametrize("policy", ["majority", "any"])
def test_three_annotators_count_as_is_said(policy: str) -> None:
    def label(row: dict[str, str]) -> bool | None:
        answers = [row[name] == "yes" for name in ("ann1", "ann2", "ann3") if row[name]]
        if policy == "any":
            return any(answers)
        return None if 2 * sum(answers) == len(answers) else 2 * sum(answers) > len(answers)

    read = [(row["judge"] == "yes", label(row)) for row in raw("08")]
    known = [(verdict, right) for verdict, right in read if right is not None]
    assert counts(check(file_of("08"), labels_by=policy)) == counted(known)
