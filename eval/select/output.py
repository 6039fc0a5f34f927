"""The files of a decision: ``decision.json`` for programs, ``decision.txt`` for people."""

from __future__ import annotations

from pathlib import Path

import orjson
from pydantic import ValidationError

from eval.select.decision import Decision
from eval.select.text import text
from trajectories.errors import UserError

FILES = ("decision.json", "decision.txt")


def decision_json(decision: Decision) -> str:
    """Indented JSON with a newline at the end; what is undefined is null."""
    return (
        orjson.dumps(decision.model_dump(mode="json"), option=orjson.OPT_INDENT_2).decode() + "\n"
    )


def write_decision(folder: Path, decision: Decision) -> None:
    """Write both files. Raises UserError if the folder cannot be written."""
    for name, content in zip(FILES, (decision_json(decision), text(decision)), strict=True):
        part = folder / f"{name}.part"
        try:
            part.write_text(content, encoding="utf-8")
            part.replace(folder / name)
        except OSError as error:
            raise UserError(f"{folder / name}: cannot be written ({error.strerror})") from error


def read_decision(path: Path) -> Decision:
    """``decision.json``, or the folder that holds it. Raises UserError."""
    file = path / FILES[0] if path.is_dir() else path
    try:
        return Decision.model_validate_json(file.read_bytes())
    except OSError as error:
        raise UserError(
            f"{file}: cannot be read ({error.strerror}): name what eval.select wrote"
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise UserError(
            f"{file}: is no decision ({where}: {first['msg']}): name what eval.select wrote"
        ) from error
