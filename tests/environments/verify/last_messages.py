"""Last messages with the verdict that a person gives.

``messages/written.toml`` was written before the reader and without knowledge of it.
``messages/real.jsonl`` names messages of real runs by file and run; their text is read through
``TRAJUDGE_REAL_DATA``. The answers beside a real message are those of the task or, to see what the
reader does where the message gives another value, those of a task with another truth.
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from trajudge.environments.chromium.action_syntax import BadAction, parse, spoken
from trajudge.environments.verify.answers import answered
from trajudge.environments.verify.truth import ResolvedAnswer
from trajudge.environments.verify.verifying import NOT_POSSIBLE

MESSAGES = Path(__file__).parent / "messages"
VERDICTS: Mapping[str, bool | None] = {"right": True, "wrong": False, "open": None}
_SENT = re.compile(
    r"""send_msg_to_user\((?:text=)?("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\)""", re.DOTALL
)


class LastMessage(NamedTuple):
    """A message, what was asked, and a person's verdict: None where a person would ask again."""

    text: str
    asked: tuple[ResolvedAnswer, ...]
    verdict: bool | None

    @property
    def read(self) -> bool | None:
        """What the reader makes of it."""
        facts = [fact.right for fact in answered(self.asked, self.text)]
        return False if False in facts else None if None in facts else True


def written_messages() -> Iterator[LastMessage]:
    """Yield the messages that were written for this test; actions that are none are left out."""
    for question in tomllib.loads((MESSAGES / "written.toml").read_text())["question"]:
        for word, verdict in VERDICTS.items():
            for text in question[word]:
                yield LastMessage(_last(text), _asked(question), verdict)


def real_messages(folder: Path) -> Iterator[LastMessage]:
    """Yield the messages of real runs below the folder of real files."""
    for line in (MESSAGES / "real.jsonl").read_text().splitlines():
        record = json.loads(line)
        text = _real(folder / record["file"], record.get("run", ""))
        yield LastMessage(text, _asked(record), VERDICTS[record["label"]])


def _last(text: str) -> str:
    """Return the last message of an action, as a run records it."""
    if text.startswith("report_infeasible("):
        return NOT_POSSIBLE
    return spoken(text) or "" if text.startswith("answer(") and _is_action(text) else text


def _is_action(text: str) -> bool:
    try:
        return bool(parse(text))
    except BadAction:
        return False


def _asked(record: Mapping[str, Any]) -> tuple[ResolvedAnswer, ...]:
    return tuple(
        ResolvedAnswer(
            one["kind"], tuple(one["values"]), tuple(one.get("among", ())), one.get("unit", "")
        )
        for one in record["asked"]
    )


def _real(file: Path, run: str) -> str:
    """Return the last message of a run."""
    if file.suffix == ".jsonl":
        record = _by_run(file)[run]
        return str(record.get("final_result_response") or record["final_answer"])
    (*_, last) = _SENT.finditer(json.loads(file.read_text())["input_text"])
    return str(ast.literal_eval(last[1].replace("\n", "\\n")))


@lru_cache(maxsize=4)
def _by_run(file: Path) -> dict[str, dict[str, Any]]:
    lines = map(json.loads, file.read_text().splitlines())
    return {line.get("task_id") or line["trajectory_id"]: line for line in lines}
