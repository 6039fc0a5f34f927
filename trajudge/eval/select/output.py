"""The files of a decision: ``decision.json`` for programs, ``decision.txt`` for people."""

from __future__ import annotations

from pathlib import Path

import orjson

from trajudge.eval.select.decision import Decision
from trajudge.eval.select.plan import FILE
from trajudge.eval.select.screen import screen
from trajudge.eval.select.text import text
from trajudge.util.files import save_bytes
from trajudge.util.tables import all_folded, screen_width
from trajudge.util.validation import read_record

FILES = ("decision.json", "decision.txt")


def decision_json(decision: Decision) -> str:
    """Write indented JSON with a newline at the end; what is undefined is null."""
    return (
        orjson.dumps(decision.model_dump(mode="json"), option=orjson.OPT_INDENT_2).decode() + "\n"
    )


def write_decision(folder: Path, decision: Decision) -> None:
    """Write both files. Raises UserError if the folder cannot be written."""
    for name, content in zip(FILES, (decision_json(decision), text(decision)), strict=True):
        save_bytes(folder / name, content.encode())


def read_decision(path: Path) -> Decision:
    """Read ``decision.json``, or the folder that holds it. Raises UserError."""
    file = path / FILES[0] if path.is_dir() else path
    return read_record(file, Decision, "name the folder that trajudge select wrote")


def printed(decision: Decision, folder: Path, *, as_json: bool, full: bool) -> str:
    """Write what the command prints: one file of ``folder``, that for people folded to the screen,
    or the first screen."""
    if as_json:
        return decision_json(decision)
    written = f"written to {folder}: {FILE}, {', '.join(FILES)}"
    if full:
        return "\n".join([text(decision, screen_width()), *all_folded([written])]) + "\n"
    return screen(decision, rest=f"All candidates and how to read them: --full; {written}")
