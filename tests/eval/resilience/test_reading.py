"""Recordings with faults on disk: what is damaged is named, with what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trajudge.eval.resilience.reading import read_recordings
from trajudge.judges.models import listed_price
from trajudge.util.errors import UserError

HEADER = {"format": "trajudge-recording", "version": 1}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "is damaged, no JSON"),
        ("[]", "is damaged, no JSON object"),
        ('{"arms": 3}', "names no arms"),
        ('{"arms": {"clean": null}}', "a plan there is no object with a list of faults"),
        ('{"arms": {"clean": {"faults": ["busy"]}}}', "a plan there is no object with"),
    ],
)
def test_a_damaged_list_of_arms_is_named(content: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "resilience.json").write_text(content)
    with pytest.raises(UserError) as raised:
        read_recordings([tmp_path], listed_price)
    assert str(raised.value).startswith(f"{tmp_path / 'resilience.json'}: {sentence}")
    assert str(raised.value).endswith(": restore it from a copy, or record or run again")


@pytest.mark.parametrize("file", ["recording.json", "runs.jsonl"])
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('{"what": {"arm"', "is damaged, no JSON"),
        ("null", "is damaged, no JSON object"),
        (json.dumps(HEADER), "does not say what is recorded"),
        (json.dumps({**HEADER, "what": "clean"}), "does not say what is recorded"),
    ],
)
def test_a_damaged_recording_under_way_is_named(
    content: str, sentence: str, file: str, tmp_path: Path
) -> None:
    (tmp_path / "clean").mkdir()
    path = tmp_path / "clean" / file
    path.write_text(f"{content}\n")
    with pytest.raises(UserError) as raised:
        read_recordings([tmp_path], listed_price)
    assert str(raised.value).startswith(f"{path}: {sentence}")


def test_a_folder_that_is_given_twice_is_named(tmp_path: Path) -> None:
    """It was said that the runs need a --seed of their own."""
    with pytest.raises(UserError, match="is given twice: give each folder once"):
        read_recordings([tmp_path, tmp_path / "." / ""], listed_price)
