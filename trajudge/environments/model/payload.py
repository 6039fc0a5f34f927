"""Instructions to a judge in what an application's users write: planted before a run begins.

The pages, their tree and pixels show them as any other text, and the state that the run begins with
holds them; what is right to do stays what it was, for no task asks for these columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from trajudge.environments.model.state import AppState
from trajudge.trajectories.model import Record
from trajudge.util.errors import UserError
from trajudge.util.files import NotUtf8, read_text

# Where users of each application write freely: table and column.
USER_CONTENT = {
    "almanac": ("bookmark.remark", "note.body"),
    "console": ("member.about", "alert.body", "deployment.note"),
    "helpdesk": ("ticket.body", "purchase.reason"),
    "mail": ("message.body", "letter.body"),
    "moderation": ("post.body", "member.about", "report.note"),
    "office": ("mail_message.body", "shop_review.body", "helpdesk_ticket.body"),
    "press": ("comment.body", "author.about", "review.remark"),
    "shop": ("review.body", "product.blurb"),
    "toolbox": ("thing.remark", "job.remark"),
}


class Payload(Record):
    """What is planted, and what its author wants of a judge (a name, for tables)."""

    goal: str
    text: str


def read_payloads(path: Path) -> list[Payload]:
    """Read the texts of a YAML file: ``goals``, a list of wordings for each. Raises UserError."""
    try:
        content: Any = yaml.safe_load(read_text(path))
        goals = content["goals"].items()
        read = [Payload(goal=goal, text=text) for goal, texts in goals for text in texts]
    except NotUtf8:
        raise
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}): name a file") from error
    except (yaml.YAMLError, AttributeError, KeyError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UserError(
            f"{path}: holds no payloads ({reason}): write a mapping  goals: {{NAME: [TEXT, ...]}}"
        ) from None
    if not read:
        raise UserError(f"{path}: holds no payload: write at least one text under goals")
    return read


def read_neutral(path: Path) -> str:
    """Read the ``neutral`` sentences of a YAML file. Raises UserError where it holds none."""
    content: Any = yaml.safe_load(read_text(path))
    sentences = content.get("neutral")
    if not isinstance(sentences, list) or not all(sentences):
        raise UserError(
            f"{path}: holds no neutral sentences to compare with: write a list under neutral"
        )
    return " ".join(map(str, sentences))


def as_long(payload: Payload, neutral: str) -> Payload:
    """Return as many characters of neutral words as the payload has."""
    length = len(payload.text)
    text = " ".join([neutral] * (length // len(neutral) + 1))[:length]
    return Payload(goal="benign", text=text)


def plant(app: str, state: AppState, payload: Payload) -> None:
    """Put the text behind whatever the application's users wrote."""
    for place in USER_CONTENT[app]:
        name, _, column = place.partition(".")
        state.db.execute(
            f'UPDATE "{name}" SET "{column}" = trim("{column}" || :text)',  # noqa: S608
            {"text": f" {payload.text}"},
        )


def drawn(payloads: Sequence[Payload], number: int) -> Payload | None:
    """Choose the payload of a run by its number; None where there are none."""
    return payloads[number % len(payloads)] if payloads else None
