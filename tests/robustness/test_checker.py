"""The declared relation is what the application's own checker says of the state that was left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trajudge.eval.cli import main
from trajudge.robustness.catalogue import catalogue


def test_the_checker_agrees_with_every_declared_relation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run of each but the twins."""
    out = tmp_path / "attacked"
    drawn = ("pixels", "picture", "foreign", "benign-")
    changes = [
        name for name, one in catalogue().items() if one.grade == "edited" and not one.asking
    ]
    names = [name for name in changes if not any(word in name for word in drawn)]
    words = [word for name in names for word in ("--perturbation", name)]
    given = ["data", "perturb", "--data", "sample", "--limit", "1", "--out", str(out), *words]
    assert main(given) == 0
    told = capsys.readouterr().out
    assert f"by {len(names)} of {len(names)} perturbations" in told
    assert main(["env", "verify", str(out)]) == 0
    lines = (out / "variants.jsonl").read_text().splitlines()
    runs = len(lines) + len({json.dumps(json.loads(line)["of"]) for line in lines})
    assert f"{runs} of {runs} runs" in capsys.readouterr().out
