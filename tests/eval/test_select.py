"""``trajudge select``: the plan comes before the labels, the decision after, also under attack."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.eval.cases import key, label
from tests.eval.runs_to_select import make_run, select
from tests.tables import mistakes, one_sentence
from trajudge.annotations import store
from trajudge.eval.select.decision import read_decision
from trajudge.eval.store.run_folder import JUDGMENTS, LABELS, write_labels, write_manifest


def test_a_good_judge_is_chosen_and_everything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = make_run(tmp_path / "good")
    poor = make_run(tmp_path / "poor", "poor", wrong=40)
    out = tmp_path / "out"
    assert select(good, poor, "--target-precision", 0.8, "--out", out) == 0
    printed = capsys.readouterr().out
    assert "Filter with good at threshold 1: 60 of the 62 runs" in printed
    assert f"written to {out}" in " ".join(printed.split())
    assert select(good, poor, "--target-precision", 0.8, "--out", out, "--full") == 0
    shown, written = capsys.readouterr().out, (out / "decision.txt").read_text()
    assert not set(written.split()) - set(shown.split())
    found = read_decision(out)
    assert found.chosen == 0
    assert [f.family for f in found.findings] == ["good", "poor"]
    assert json.loads((out / "candidates.json").read_text())["target"]["rate"] == 0.8


def test_nothing_in_a_judges_name_is_obeyed_by_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run", "good\x1b[31m")
    out = tmp_path / "out"
    assert select(run, "--target-precision", 0.8, "--out", out, "--full") == 0
    for shown in (capsys.readouterr().out, (out / "decision.txt").read_text()):
        assert "good\\x1b[31m" in shown
        assert "\x1b" not in shown


def test_json_is_what_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, out = make_run(tmp_path / "good"), tmp_path / "out"
    assert select(good, "--target-precision", 0.8, "--out", out, "--json") == 0
    assert capsys.readouterr().out == (out / "decision.json").read_text()


def write_goals(run: Path, *, each: int) -> None:
    """Give every ``each`` tasks of a run in a row one goal."""
    lines = [
        {"benchmark": "webarena", "task_id": key(n).task_id, "goal": 1 + n // each}
        for n in range(120)
    ]
    (run / "goals.jsonl").write_text("\n".join(map(json.dumps, lines)))


def test_goals_under_several_task_ids_are_named_with_both_limits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run")
    write_goals(run, each=10)
    words = [run, "--target-precision", 0.8]
    assert select(*words, "--out", tmp_path / "ids") == 0
    assert "120 task ids share 12 goals" in capsys.readouterr().out
    by_ids = read_decision(tmp_path / "ids")
    select(*words, "--out", tmp_path / "goals", "--task-id", "goal")
    by_goals = read_decision(tmp_path / "goals")
    low, lower = (made.findings[0].precision.low for made in (by_ids, by_goals))
    assert low is not None and lower is not None and lower < low
    (note,) = (note for note in by_ids.notes if "share" in note)
    assert f"at least {100 * low:.1f} % by task ids, at least {100 * lower:.1f} % by goals" in note
    assert not any("share" in note for note in by_goals.notes)


def test_freezing_reads_no_label(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, out = make_run(tmp_path / "good"), tmp_path / "out"
    kept = (good / LABELS).read_bytes()
    (good / LABELS).write_bytes(b"not to be read\n")
    assert select(good, "--target-precision", 0.8, "--out", out, "--freeze") == 0
    assert "frozen, 1 candidate in 1 family" in capsys.readouterr().out
    assert not (out / "decision.json").exists()
    (good / LABELS).write_bytes(kept)
    assert select(good, "--candidates", out / "candidates.json", "--out", out) == 0
    assert read_decision(out).chosen == 0


def test_a_folder_keeps_its_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, out = make_run(tmp_path / "good"), tmp_path / "out"
    assert select(good, "--target-precision", 0.8, "--out", out) == 0
    assert select(good, "--target-precision", 0.8, "--out", out) == 0
    assert select(good, "--target-precision", 0.7, "--out", out) == 2
    assert "holds another plan" in capsys.readouterr().err


def test_nobody_qualifies_gives_exit_code_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    poor = make_run(tmp_path / "poor", "poor", wrong=40)
    assert select(poor, "--target-precision", 0.9, "--out", tmp_path / "out") == 1
    assert "No judge is shown to meet the target: at least 90.0 %" in capsys.readouterr().out


def test_panels_cascades_thresholds_and_prices_reach_the_plan(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, name, wrong=2) for name in ("a", "b")]
    out = tmp_path / "out"
    options = ["--panel", "a,b", "--cascade", "b,a", "--thresholds", "a + b=0.5,1", "--judge", "a"]
    prices = ["--rollout-price", 0.1, "--judgment-price", "b=0.02", "--training-price", 0.5]
    code = select(*runs, "--target-precision", 0.8, "--out", out, *options, *prices)
    assert code == 0
    made = read_decision(out)
    assert [(f.family, f.threshold) for f in made.findings] == [
        ("a", 1.0),
        ("a + b", 1.0),
        ("a + b", 0.5),
        ("b then a", 1.0),
    ]
    assert made.plan.prices.judgments == {"a": 0.0, "b": 0.02}
    assert made.findings[3].price == pytest.approx(0.02)
    assert made.compared == "clean trajectories per dollar"


def test_one_panel_named_beforehand_may_be_the_only_candidate(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, name) for name in ("a", "b")]
    out = tmp_path / "out"
    options = ["--panel", "a,b", "--ensembles-only", "--out", out]
    assert select(*runs, "--target-precision", 0.8, *options) == 0
    assert [f.family for f in read_decision(out).findings] == ["a + b"]


def test_other_judgments_than_the_plans_are_pointed_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, out = make_run(tmp_path / "first"), tmp_path / "out"
    assert select(first, "--target-precision", 0.8, "--out", out, "--freeze") == 0
    assert capsys.readouterr().err == ""
    second = make_run(tmp_path / "second", wrong=3)
    assert select(second, "--candidates", out / "candidates.json", "--out", out) == 0
    assert "not those that the plan was made from" in capsys.readouterr().err


@pytest.mark.slow
def test_a_plot_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    good = make_run(tmp_path / "good")
    for suffix, magic in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")):
        files = [tmp_path / f"{n}{suffix}" for n in (1, 2)]
        for file in files:
            options = ["--target-precision", 0.8, "--out", tmp_path / "out", "--plot", file]
            assert select(good, *options) == 0
        assert files[0].read_bytes().startswith(magic)
        assert files[0].read_bytes() == files[1].read_bytes()


def test_a_plot_without_its_library_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None; "
        "from trajudge.eval.cli import main; "
        f"sys.exit(main(['select', {str(make_run(tmp_path / 'good'))!r}, "
        "'--target-precision', '0.8', "
        f"'--out', {str(tmp_path / 'out')!r}, '--plot', 'a.png']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "trajudge[plots]" in done.stderr
    assert not (tmp_path / "out").exists()


@mistakes(
    """
    => no target
    --target-precision 1.2 => --target-precision 1.2
    --target-precision 0.8 --confidence 0.2 => --confidence 0.2
    --max-false-positives 0 => --max-false-positives 0
    --target-precision 0.8 --judge x => --judge x
    --target-precision 0.8 --panel good => two judges or more
    --target-precision 0.8 --cascade good,x => --cascade x
    --target-precision 0.8 --thresholds good=2 => --thresholds good=2
    --target-precision 0.8 --thresholds x=0.5 => no candidate 'x'
    --target-precision 0.8 --thresholds good=a => 'a' is not a number
    --target-precision 0.8 --rollout-price -1 => --rollout-price -1
    --target-precision 0.8 --judgment-price x=1 => --judgment-price x
    --target-precision 0.8 --ensembles-only => no candidate
    --candidates none.json => cannot be read
    --candidates none.json --seed 3 => --seed belongs to the plan
    --target-precision 0.8 --plot a.gif => .png
    --target-precision 0.8 --split dev => no
    """
)
def test_a_mistake_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    good = make_run(tmp_path / "good")
    assert select(good, "--out", tmp_path / "out", *words) == 2
    assert one_sentence(capsys, sentence) == ""


def test_no_run_and_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert select("--target-precision", 0.8) == 2
    assert "no judgments to select from" in capsys.readouterr().err
    assert select(tmp_path / "none", "--target-precision", 0.8) == 2
    assert "is not the folder of a run: there is no such folder" in capsys.readouterr().err


def test_a_file_in_the_place_of_the_folder_is_named_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file := tmp_path / "out").write_text("mine")
    assert select("none", "--target-precision", 0.8, "--out", file) == 2
    assert one_sentence(capsys, f"--out {file}: {file} is a file: name a folder") == ""


def test_a_run_without_a_judgment_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Alone it is refused, of several it is left out: its server died before the first answer."""
    good, begun = make_run(tmp_path / "good"), make_run(tmp_path / "begun")
    (begun / JUDGMENTS).write_bytes(b"")
    assert select(begun, "--target-precision", 0.8, "--out", tmp_path / "out") == 2
    one_sentence(capsys, f"{begun}: no judgment was made yet: judge first")
    decisions = []
    for number, runs in enumerate(([good], [begun, good])):
        out = tmp_path / f"out{number}"
        assert select(*runs, "--target-precision", 0.8, "--out", out) in (0, 1)
        warned = f"warning: {begun}: left out, for no judgment was made yet\n"
        assert (warned in capsys.readouterr().err) == bool(number)
        decisions.append(read_decision(out).findings)
    assert decisions[0] == decisions[1]


def test_unsure_and_unlabelled_trajectories_are_left_out(tmp_path: Path) -> None:
    good, out = make_run(tmp_path / "good"), tmp_path / "out"
    labels = tmp_path / "labels.jsonl"
    store.write(labels, [label(n, None if n < 10 else n % 2 == 0) for n in range(100)])
    select(good, "--target-precision", 0.8, "--out", out, "--annotations", f"trajudge:{labels}")
    found = read_decision(out)
    assert found.trajectories == 90
    assert "10 trajectories left out" in found.notes[0]
    assert key(0) not in {label.key for label in store.load(labels) if label.success is not None}


def test_the_last_of_repeated_judgments_counts_as_when_the_run_is_scored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are no samples: the mean of two that contradict each other was taken."""
    words = ["--target-precision", 0.8, "--out"]
    good, twice = make_run(tmp_path / "good", wrong=2), make_run(tmp_path / "twice", wrong=30)
    with (twice / JUDGMENTS).open("ab") as file:
        file.write((good / JUDGMENTS).read_bytes())
    assert select(good, *words, tmp_path / "one") == 0
    assert select(twice, *words, tmp_path / "two") == 0
    assert "holds 120 judgments more than once, 28 of them with" in capsys.readouterr().err
    one, two = (read_decision(tmp_path / name) for name in ("one", "two"))
    assert (one.chosen, one.findings) == (two.chosen, two.findings)


@pytest.mark.real_data
def test_the_published_judges_of_the_benchmark(
    arb: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = arb, tmp_path / "out"
    options = ["--judgments", folder, "--split", "test", "--target-precision", 0.69, "--out", out]
    assert select(*options) == 0
    found = read_decision(out)
    judge = next(f for f in found.findings if f.family == "webjudge-7b")
    assert (judge.precision.hits, judge.precision.trials) == (125, 159)
    assert judge.verdict == "qualifies"
    assert judge.precision.low == pytest.approx(0.697, abs=5e-4)  # at 97.5 %: two families
    assert found.transport is not None
    assert not found.transport.allowed
    assert "Not transferable to another benchmark" in capsys.readouterr().out


def test_judged_runs_without_a_label_are_counted_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, out = make_run(tmp_path / "run"), tmp_path / "out"
    write_labels(run, [label(n, n % 2 == 0, split="test") for n in range(100)])
    assert select(run, "--target-precision", 0.8, "--out", out) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "20 judged trajectories without a label: only the share accepted counts them" in printed
    assert read_decision(out).unlabelled == 20
    assert read_decision(out).trajectories == 100


def measured(path: Path, **lows: float) -> Path:
    """A file as ``trajudge robust`` writes it, with the fields that are not read here too."""
    judges = [
        {
            "judge": name,
            "rates": [],
            "worst": {
                "agent": {
                    "precision": 0.95,
                    "recall": 0.9,
                    "attacks": [
                        {"name": "bandwagon", "precision": low + 0.1, "low": low + 0.02},
                        {"name": "claim-confident", "precision": low + 0.05, "low": low},
                        {"name": "not-tried", "precision": None, "low": None},
                    ],
                    "low": low,
                },
                "page": {"precision": 0.95, "recall": 0.9, "attacks": [], "low": None},
            },
            "configuration": {"judge": name, "facts": {"model": "m"}},
        }
        for name, low in lows.items()
    ]
    path.write_text(json.dumps({"catalogue": "v1-0", "judges": judges}))
    return path


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """A judge that accepts 2 failures, and a more careful one that accepts 5, of 60."""
    return [
        make_run(tmp_path / "gullible", "gullible", wrong=2),
        make_run(tmp_path / "steady", "steady", wrong=5),
    ]


def test_the_judge_that_withstands_is_chosen(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "clean"
    assert select(*runs, "--target-precision", 0.8, "--out", out) == 0
    clean = read_decision(out)
    assert clean.chosen is not None and clean.findings[clean.chosen].family == "gullible"
    capsys.readouterr()

    file = measured(tmp_path / "robustness.json", gullible=0.31, steady=0.84)
    words = ("--target-precision", 0.8, "--threat", "agent", "--robustness", file)
    assert select(*runs, *words, "--out", tmp_path / "attacked") == 0
    found = read_decision(tmp_path / "attacked")
    assert found.chosen is not None
    chosen = found.findings[found.chosen]
    assert (chosen.rule.judges, chosen.rule.use) == (("steady",), "verdict")
    assert chosen.under_attack is not None
    assert (chosen.under_attack.attack, chosen.under_attack.low) == ("claim-confident", 0.84)
    assert chosen.under_attack.catalogue == "v1-0"
    assert found.plan.threat == "agent" and found.compared == "precision under attack"
    shown = " ".join(capsys.readouterr().out.split())
    assert (
        "Under the worst of 2 attacks by the agent (claim-confident) its precision is 89.0 %, at "
        "least 84.0 %." in shown
    )
    assert "36.0 [31.0]" in shown, "the other one's column"
    (limits,) = (note for note in found.notes if note.startswith("limits under attack"))
    assert limits.endswith("they do not cover other attacks, or the best of several judges")
    assert limits.count("not") == 1
    assert "under attack" in (tmp_path / "attacked" / "decision.txt").read_text()
    assert "under attack" not in (out / "decision.txt").read_text()


def test_no_judge_qualifies_where_none_withstands(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = measured(tmp_path / "robustness.json", gullible=0.31, steady=0.79)
    words = ("--target-precision", 0.8, "--threat", "agent", "--robustness", file)
    assert select(*runs, *words, "--out", tmp_path / "out") == 1
    found = read_decision(tmp_path / "out")
    assert found.chosen is None and found.nearest is not None
    assert found.findings[found.nearest].rule.judges == ("steady",)
    assert all(one.verdict == "qualifies" for one in found.findings), "on runs as they were"
    assert "the target is not met there" in " ".join(capsys.readouterr().out.split())


def test_mistakes_are_one_sentence(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = measured(tmp_path / "robustness.json", gullible=0.31)
    both = measured(tmp_path / "both.json", gullible=0.31, steady=0.7)
    other = measured(tmp_path / "other.json", gullible=0.32, steady=0.7)
    target = ("--target-precision", 0.8)
    cases = {
        ("--threat", "agent"): "no --robustness FILE does not tell",
        ("--threat", "agent", "--robustness", file): "steady: ",
        ("--threat", "page", "--robustness", both): "attacks by the page",
        ("--robustness", both): "name who attacks with --threat",
        ("--threat", "agent", "--robustness", tmp_path / "none.json"): "cannot be read",
        ("--threat", "agent", "--robustness", both, "--panel", "gullible,steady"): "leave --panel",
        ("--threat", "agent", "--robustness", both, "--confidence", "0.99"): "at most that",
        ("--threat", "agent", "--robustness", both, "--robustness", other): "otherwise than a file",
    }
    for number, (words, sentence) in enumerate(cases.items()):
        assert select(*runs, *target, *words, "--out", tmp_path / str(number)) == 2, words
        said = capsys.readouterr().err
        assert sentence in said and said.count("\n") == 1, said
    assert select(*runs, "--max-false-positives", 0.1, "--threat", "agent") == 2
    assert "give --target-precision" in capsys.readouterr().err


def test_a_judge_that_was_measured_otherwise_is_refused(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_manifest(runs[0], {"protocol": "default", "model": "another"})
    file = measured(tmp_path / "robustness.json", gullible=0.9, steady=0.9)
    words = ("--target-precision", 0.8, "--threat", "agent", "--robustness", file)
    assert select(*runs, *words, "--out", tmp_path / "out") == 2
    assert "model 'another' instead of 'm'" in capsys.readouterr().err
