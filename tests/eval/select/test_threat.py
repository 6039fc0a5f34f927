"""A judge is chosen by what attacks leave of its precision, where a threat is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.eval.select.runs_to_select import make_run, select
from trajudge.eval.select.decision import read_decision
from trajudge.eval.store.run_folder import write_manifest


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
