"""Reading BrowserGym actions: text such as ``send_msg_to_user("Done.")``, never run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

_MESSAGE = re.compile(r"send_msg_to_user\(\s*(?:text\s*=\s*)?(.*?),?\s*\)", re.DOTALL)


def message_to_user(action: str | None) -> str | None:
    """The text that an action sends to the user; None for any other action.

    A message that is no Python literal (agents forget to escape quotes) is given as it stands.
    """
    match = _MESSAGE.fullmatch(action.strip()) if action else None
    if match is None:
        return None
    try:
        value = ast.literal_eval(match[1])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return match[1].strip("\"'")
    return value if isinstance(value, str) else match[1]


def last_message_to_user(actions: Iterable[str | None]) -> str | None:
    """The answer of a run: what its last ``send_msg_to_user`` says; None if it sent nothing."""
    answer = None
    for action in actions:
        message = message_to_user(action)
        answer = answer if message is None else message
    return answer
