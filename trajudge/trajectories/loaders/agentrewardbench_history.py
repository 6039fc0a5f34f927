"""The history of a run out of the text that WebJudge was given.

The text lists ``N. <action>. Reasoning: <reasoning>`` after "Action History:", and may go on with
the judge's notes about snapshots. Actions and reasonings are free text of the agent's: they hold
newlines and numbered lists of their own. So an entry begins only where a line carries the very
next number and then the head of an action, ``name(``, or ``None`` (the agent gave no action).
"""

from __future__ import annotations

import re

_HEADING = "Action History:\n"
_SNAPSHOTS = "\n\nThe potentially important snapshots of the webpage"
_ENTRY = re.compile(r"^(\d+)\. (?=[a-z_]+\(|None\. Reasoning: )", re.MULTILINE)
_REASONING = ". Reasoning: "


def parse_history(text: str) -> list[tuple[str | None, str | None]]:
    """Parse (action, reasoning) of every step, in order; the word None is read as None.

    Raises ValueError if the text holds no history.
    """
    _, heading, history = text.partition(_HEADING)
    if not heading:
        raise ValueError("input_text holds no action history")
    notes = history.rfind(_SNAPSHOTS)
    history = history if notes < 0 else history[:notes]
    starts: list[re.Match[str]] = []
    for match in _ENTRY.finditer(history):
        if match[1] == str(len(starts) + 1):
            starts.append(match)
    if not starts:
        if history.strip():
            raise ValueError("the action history does not begin with a step 1")
        return []
    ends = [match.start() - 1 for match in starts[1:]] + [len(history)]
    return [_entry(history[match.end() : end]) for match, end in zip(starts, ends, strict=True)]


def _entry(entry: str) -> tuple[str | None, str | None]:
    # An action closes with a parenthesis; its own text may speak of reasoning, too.
    cut = entry.find(")" + _REASONING) + 1 or entry.find(_REASONING)
    if entry.startswith("None" + _REASONING):
        cut = len("None")
    if cut < 0:
        return _none(entry), None
    return _none(entry[:cut]), _none(entry[cut + len(_REASONING) :])


def _none(part: str) -> str | None:
    part = part.strip()
    return None if part in {"", "None"} else part
