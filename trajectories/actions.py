"""Reading BrowserGym actions: text such as ``send_msg_to_user("Done.")``, never run."""

from __future__ import annotations

import ast
from collections.abc import Iterable

_HEAD = "send_msg_to_user("


def message_to_user(action: str | None) -> str | None:
    """The text that an action sends to the user; None for any other action.

    A message that is no Python literal (agents forget to escape quotes) is given as it stands.
    """
    call = action.strip() if action else ""
    if not (call.startswith(_HEAD) and call.endswith(")")):
        return None
    argument = call[len(_HEAD) : -1].strip().removesuffix(",").removeprefix("text=")
    try:
        value = ast.literal_eval(argument)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return argument.strip("\"'")
    return value if isinstance(value, str) else argument


def last_message_to_user(actions: Iterable[str | None]) -> str | None:
    """The answer of a run: what its last ``send_msg_to_user`` says; None if it sent nothing."""
    answer = None
    for action in actions:
        message = message_to_user(action)
        answer = answer if message is None else message
    return answer
