"""Extract an agent's last message to the user from BrowserGym actions without executing them.

An action is Python-like text such as ``send_msg_to_user("Done.")``, sometimes several calls in a
row, and not always valid: agents forget to escape quotes.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterable, Sequence

_DECLARED = "answer"  # ``answer(value)``: an answer as a value, not as a sentence
_MESSAGES = ("send_msg_to_user", "report_infeasible", "report_infeasible_instructions")
_SPEAKING = (*_MESSAGES, _DECLARED)
_MAX_PARSED = 100_000
_NAMES_MESSAGE = re.compile(rf"{'|'.join(_MESSAGES)}|{_DECLARED}\(")
_CALL = re.compile(rf"^\s*(?:{'|'.join(_SPEAKING)})\s*\((.*)\)", re.DOTALL | re.MULTILINE)
_DISTINCT = 5  # letters and digits of an answer that an action does not hold by chance
_ENDING = re.compile(
    r"answer|stop|done|finish|submit|terminate|complete|exit|send|reply|respond|report|message",
    re.IGNORECASE,
)
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")
_QUOTED = re.compile(r"\\[nrt]|[\W_]")
_GIVES_UP = re.compile(
    r"\b(?:unable|cannot|can['’]t|could(?: not|n['’]t)|not able|impossible|not possible|"
    r"unfortunately|sorry|not available|no results|error|(?:did(?: not|n['’]t)|not) f(?:i|ou)nd)\b",
    re.IGNORECASE,
)
_NAMED = re.compile(r"\s*\w+\s*=\s*(?=['\"])")


def last_message_to_user(actions: Iterable[str | None]) -> str | None:
    """Return the answer of a run: the text of its last message; None without one."""
    for action in reversed([*actions]):
        if (message := message_to_user(action)) is not None:
            return message
    return None


def holds_answer(actions: Sequence[str | None], answer: str) -> bool:
    """Return True if the actions contain the answer: as a message, or in the last action in any
    form (``ANSWER; ...``, ``stop [...]``, ``done({"text": "..."})``)."""
    last = next((action for action in reversed(actions) if action), "")
    letters = _letters(answer)
    # Elements' ids contain numbers, too: ``click('142')`` is not the answer 42.
    is_told = len(letters) >= _DISTINCT or _ENDING.search(last) is not None
    return (is_told and letters in _letters(last)) or last_message_to_user(actions) == answer


def _letters(text: str) -> str:
    """Remove characters that quoting changes: escapes, blanks and punctuation."""
    text = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
    return _QUOTED.sub("", text).casefold()


def gives_up(answer: str) -> bool:
    """Return True if an answer says that something could not be done."""
    return _GIVES_UP.search(answer) is not None


def declares_infeasible(actions: Sequence[str | None]) -> bool:
    """Return True if the last action declares that the task cannot be done."""
    last = next(filter(None, reversed(actions)), "")
    return last.strip().startswith("report_infeasible(")


def message_to_user(action: str | None) -> str | None:
    """Return the text of a ``send_msg_to_user`` or ``report_infeasible`` (of several calls the
    last), of a declared ``answer(value)`` the JSON object ``{"answer": ...}``, as trajudge's own
    agents record it; None for any other action.

    A message that is not a Python literal (agents forget to escape quotes) is returned unchanged.
    """
    if not action or not _NAMES_MESSAGE.search(action):
        return None
    if len(action) <= _MAX_PARSED:
        try:
            with warnings.catch_warnings():
                # "\d" in a message is the agent's error and needs no warning.
                warnings.simplefilter("ignore")
                return _spoken(ast.parse(action.strip()))
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            pass
    match = _CALL.search(action)
    if match is None:
        return None
    text = _NAMED.sub("", match[1].strip(), count=1)
    quoted = len(text) > 1 and text[0] in "'\"" and text[0] == text[-1]
    return text[1:-1] if quoted else text


def _spoken(tree: ast.Module) -> str | None:
    message = None
    for node in tree.body:
        call = node.value if isinstance(node, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            continue
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        if call.func.id in _SPEAKING and arguments:
            value = ast.literal_eval(arguments[0])
            message = value if isinstance(value, str) else str(value)
            if call.func.id == _DECLARED:
                message = json.dumps({"answer": value}, ensure_ascii=False, default=str)
    return message
