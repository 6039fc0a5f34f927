"""Reads the verdict in a published judge's reply: tags, or a ``Status:`` line."""

from __future__ import annotations

import re

from judges.model import Verdict

_YES = {"successful", "success", "yes"}
_NO = {"unsuccessful", "unsuccesful", "failure", "no"}
_OPEN, _CLOSE = "<reasoning>", "</reasoning>"
_TAG = re.compile(r"<(success|side|loop|optimal)>([^<]{0,200})</\1>")
# At the end of its line: a page's words quoted amid the reasoning are not the verdict.
_STATUS = re.compile(r"""\bstatus\W{0,4}[:=][ \t"'*]*([a-z]+)["'*.]*\s*$""", re.I | re.M)
_THOUGHTS = re.compile(r"^Thoughts:(.*?)(?=^Status:|\Z)", re.DOTALL | re.MULTILINE)


def read_verdict(text: str) -> Verdict | None:
    """The verdict in a reply, None if it holds none.

    Tags outside the reasoning win over a status line; of several the last counts, because judges
    reason first. A tag with another value than the format's is not an answer.
    """
    reasoning, answer = _split(text)
    tags = {name: value.strip().strip("\"'").strip() for name, value in _TAG.findall(answer)}
    success = _flag(tags["success"]) if "success" in tags else _status(answer)
    verdict = Verdict(
        success=success,
        side_effect=_flag(tags.get("side", "")),
        repetition=_flag(tags.get("loop", "")),
        optimality=_grade(tags.get("optimal", "")),
    )
    if verdict == Verdict():
        return None
    if not reasoning and (thoughts := _THOUGHTS.search(answer)):
        reasoning = thoughts[1]
    return verdict.model_copy(update={"reasoning": reasoning.strip()})


def _split(text: str) -> tuple[str, str]:
    """(what stands between the outermost reasoning tags, the rest)."""
    start, end = text.find(_OPEN), text.rfind(_CLOSE)
    if start < 0 or end < start:
        return "", text
    return text[start + len(_OPEN) : end], text[:start] + text[end + len(_CLOSE) :]


def _status(text: str) -> bool | None:
    for word in reversed(_STATUS.findall(text)):
        if (flag := _flag(word)) is not None:
            return flag
    return None


def _flag(text: str) -> bool | None:
    word = text.lower().rstrip(".")
    return True if word in _YES else False if word in _NO else None


def _grade(text: str) -> int | None:
    """``3. Somewhat Optimal`` -> 3."""
    return int(text[0]) if re.match(r"[1-4](\D|$)", text) else None
