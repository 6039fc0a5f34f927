"""Replies of one file are never taken for those of another of its name (case 16)."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from trajudge.eval.judge import main

pytestmark = pytest.mark.usefixtures("own_folder")

REPLY = "<reasoning>x</reasoning><success>{}</success><side>No</side><loop>No</loop>"
ADAPTER = """
from trajudge.judges.adapters.scripted import ScriptedAdapter

def adapter(model, *, base_url, timeout, max_connections, dry_run):
    return ScriptedAdapter(lambda request: {reply!r}, endpoint="mine")
"""


def verdict(folder: str, option: str, name: str, content: str) -> tuple[bool, bool]:
    """The verdict of a run whose adapter is a file of that name, and whether it was cached."""
    Path(folder).mkdir()
    file = Path(folder) / name
    file.write_text(content, encoding="utf-8")
    words = ["--data", "sample", "--limit", "1", "--judge", "simplified", "--model", "m", "--yes"]
    assert main([*words, option, str(file), "--cache", "one.sqlite", "--out", f"{folder}/run"]) == 0
    (line,) = Path(f"{folder}/run/judgments.jsonl").read_bytes().splitlines()
    (call,) = Path(f"{folder}/run/calls.jsonl").read_bytes().splitlines()
    return orjson.loads(line)["success"], orjson.loads(call)["cached"]


@pytest.mark.parametrize(
    ("option", "name", "form"),
    [
        ("--script", "script.jsonl", lambda text: orjson.dumps({"text": text}).decode()),
        ("--adapter", "adapter.py", lambda text: ADAPTER.format(reply=text)),
    ],
)
def test_files_of_one_name_have_caches_of_their_own(option: str, name: str, form: object) -> None:
    assert callable(form)
    yes, no = (form(REPLY.format(word)) for word in ("Successful", "Unsuccessful"))
    assert verdict("a", option, name, yes) == (True, False)
    assert verdict("b", option, name, no) == (False, False)
    assert verdict("c", option, name, yes) == (True, True), "the same content, in another place"
