"""Judges on changed runs, arm by arm: what is said of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import robust as main


def test_what_is_true_of_every_arm_is_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The unknown window of the one model was a warning of every arm."""
    replies = tmp_path / "replies.jsonl"
    replies.write_text(json.dumps({"text": "<success>Unsuccessful</success>"}) + "\n")
    words = ["--judge", "simplified", "--model", "any", "--adapter", "scripted"]
    words += ["--script", str(replies), "--yes", "--limit", "2", "--perturbation", "identity"]
    main([*words, "--defence", "nonce", "--out", str(tmp_path / "out")])
    assert capsys.readouterr().err.count("the window of any is not known") == 1
