"""Last messages whose label was set before the reader of messages was written.

``messages/development.toml``, ``held_out.toml`` and ``fresh.toml`` were written for this test, in
the manner of people and of several models. ``messages/real.jsonl`` names messages of real runs by
file and run; their text is read through ``TRAJUDGE_REAL_DATA``. The answers beside a real message
are those of the task or, to see what the reader does where the message gives another value, those
of a task with another truth.

The development part was looked at while the reader was written. The held-out, the fresh and the
final part were each labelled in advance, evaluated once and looked at only then. ``others_1`` and
``others_2`` are by a writer who never saw the reader or another part: the first was looked at after
the reader was evaluated on it, the second (in ``UNSEEN``) never, it is only counted. ``others_3``
has further styles; it was labelled before its writer read the reader. ``others_4`` (looked at) and
``others_5`` (never listed, but remembered by who mended the reader, who had written both after
reading it) hold wrong messages that name the right value in passing and right ones that name
others. ``others_6`` was written by one who had read how the reader decides; nothing was mended on
it.
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from trajudge.environments.verify.answers import answered
from trajudge.environments.verify.truth import ResolvedAnswer

MESSAGES = Path(__file__).parent / "messages"
Part = Literal[
    "development", "held_out", "fresh", "final", "others_1", "others_2", "others_3", "others_4",
    "others_5", "others_6",
]  # fmt: skip
PARTS: tuple[Part, ...] = get_args(Part)
# The reader was not mended on their messages; only those of others_2 were never seen by who did.
UNSEEN: frozenset[Part] = frozenset({"others_2", "others_5", "others_6"})
LABELS: Mapping[str, bool | None] = {"right": True, "wrong": False, "open": None}
RATES = ("false rejects", "false accepts", "open")
_SENT = re.compile(
    r"""send_msg_to_user\((?:text=)?("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\)""", re.DOTALL
)


class LastMessage(NamedTuple):
    """A message, what was asked, and the label: True right, False wrong, None open to argument."""

    name: str
    part: Part
    goal: str
    asked: tuple[ResolvedAnswer, ...]
    text: str
    label: bool | None


def written_messages() -> Iterator[LastMessage]:
    """Yield the messages that were written for this test."""
    for part in PARTS:
        for task in tomllib.loads((MESSAGES / f"{part}.toml").read_text())["task"]:
            for label, value in LABELS.items():
                for number, text in enumerate(task[label]):
                    name = f"{task['name']}.{label}.{number}"
                    yield LastMessage(name, part, task["goal"], _asked(task), text, value)


def real_messages(folder: Path) -> Iterator[LastMessage]:
    """Yield the messages of real runs below the folder of real files."""
    for number, line in enumerate((MESSAGES / "real.jsonl").read_text().splitlines()):
        label = json.loads(line)
        goal, text = _real(folder / label["file"], label.get("run", ""))
        name = f"real.{number}"
        yield LastMessage(name, label["part"], goal, _asked(label), text, LABELS[label["label"]])


def _asked(record: Mapping[str, Any]) -> tuple[ResolvedAnswer, ...]:
    return tuple(
        ResolvedAnswer(one["kind"], tuple(one["values"]), tuple(one.get("among", ())))
        for one in record["asked"]
    )


def _real(file: Path, run: str) -> tuple[str, str]:
    """Return goal and last message of a run."""
    if file.suffix == ".jsonl":
        record = _by_run(file)[run]
        goal = record.get("task") or record["goal"]
        return goal, record.get("final_result_response") or record["final_answer"]
    record = json.loads(file.read_text())
    (*_, last) = _SENT.finditer(record["input_text"])
    return record["goal"], ast.literal_eval(last[1].replace("\n", "\\n"))


@lru_cache(maxsize=4)
def _by_run(file: Path) -> dict[str, dict[str, Any]]:
    lines = map(json.loads, file.read_text().splitlines())
    return {line.get("task_id") or line["trajectory_id"]: line for line in lines}


def judged(message: LastMessage) -> bool | None:
    """Tell whether every answer is right; None if one is open to argument and none is wrong."""
    verdicts = [fact.right for fact in answered(message.asked, message.text, message.goal)]
    if False in verdicts:
        return False
    return None if None in verdicts else True


def rates(messages: Sequence[LastMessage]) -> dict[str, tuple[int, int]]:
    """Return count and trials of each of ``RATES``; messages labelled open have no part."""
    right = [judged(message) for message in messages if message.label is True]
    wrong = [judged(message) for message in messages if message.label is False]
    left = right.count(None) + wrong.count(None)
    counts = (right.count(False), wrong.count(True), left)
    return dict(
        zip(
            RATES,
            zip(counts, (len(right), len(wrong), len(right + wrong)), strict=True),
            strict=True,
        )
    )
