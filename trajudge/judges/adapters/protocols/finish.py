"""Finish reasons of every protocol that is spoken here.

Only an answer that is known to be complete, cut at its token limit or declined counts as an answer.
After anything else (``error``, ``abort``, ``network_error``, ``insufficient_system_resource``,
``pause_turn``, no word at all) the text may be half of what the model would have said: the call is
repeated.
"""

from __future__ import annotations

import re
from typing import Literal

from trajudge.judges.adapters.errors import BadReply, CallFailed, ContextOverflow
from trajudge.judges.model import Usage

Finish = Literal["stop", "length", "refused"]

# OpenAI, Anthropic, Cohere (complete), and servers by Hugging Face and Together (eos).
_WHOLE = {"stop", "end_turn", "stop_sequence", "complete", "eos", "eos_token"}
_WHOLE |= {"tool_calls", "tool_use", "tool_call", "function_call"}
_CUT = {"length", "max_tokens", "max_output_tokens", "max_output", "max_new_tokens"}
_WINDOW_FULL = {"model_context_window_exceeded", "model_length"}
# Gemini passes its own words on (SAFETY, "content_filter: RECITATION"), and so does Zhipu
# (sensitive), Bedrock (guardrail_intervened) and Cohere (error_toxic).
_DECLINED = re.compile(
    r"content_filter|refus|safety|recitation|blocklist|prohibited|spii|sensitive|guardrail|toxic"
)


def finish_of(word: object, where: str, usage: Usage | None) -> Finish:
    """Map the ``finish_reason`` or ``stop_reason`` of an answer.

    Raises ContextOverflow if the window was full before the answer ended, BadReply for a word that
    tells of no end; either with the ``usage`` that the answer reports.
    """
    reason = word.strip().lower() if isinstance(word, str) else ""
    if reason in _WHOLE:
        return "stop"
    if reason in _CUT:
        return "length"
    if _DECLINED.search(reason):
        return "refused"
    error: CallFailed
    if reason in _WINDOW_FULL:
        error = ContextOverflow(f"{where}: the answer ran against the end of the context window")
    elif reason:
        error = BadReply(f"{where} broke off its answer (finish reason {reason[:40]!r})")
    else:
        error = BadReply(f"{where} did not say that its answer is complete (no finish reason)")
    error.usage = usage
    raise error
