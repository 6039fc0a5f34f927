"""Reasoning: how each service is told how much to think, and where its answers hold the thoughts.

A request says ``reasoning_effort`` (a word) and ``thinking_budget`` (tokens); each service has
fields of its own for them. Sources: the documentation of OpenAI's chat completions, Anthropic's
extended and adaptive thinking, OpenRouter's ``reasoning``, Gemini's OpenAI-compatible endpoint,
Alibaba's Model Studio, and vLLM's and SGLang's reasoning outputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from trajudge.judges.models.capabilities import Capability
from trajudge.trajectories.util.errors import UserError

NAMES = ("reasoning_effort", "thinking_budget")
# The least budget that Anthropic takes.
LEAST_BUDGET = 1_024

Fields = dict[str, JsonValue]


def chat_fields(parameters: Mapping[str, JsonValue], host: str, model: str) -> Fields:
    """Return the fields of chat completions at ``host`` for what the parameters say of reasoning.

    Raises UserError for a budget where no field for one is known.
    """
    effort, budget = (parameters.get(name) for name in NAMES)
    if budget is None:
        if effort is None:
            return {}
        return {"reasoning": {"effort": effort}} if _is_openrouter(host) else _effort(effort)
    if _is_openrouter(host):
        return {"reasoning": {"max_tokens": budget}}
    if "googleapis.com" in host or model.startswith("gemini"):
        # The field is named so in the body itself, where no effort may stand beside it.
        return {"extra_body": {"google": {"thinking_config": {"thinking_budget": budget}}}}
    if "aliyuncs.com" in host or model.startswith("qwen"):
        return {"enable_thinking": True, "thinking_budget": budget}
    raise UserError(
        f"--thinking-budget {budget}: {host} is not known to take a budget for {model}: use "
        "--reasoning-effort WORD, or name the server's own field with --extra-body JSON"
    )


def _is_openrouter(host: str) -> bool:
    return host.partition(":")[0].endswith("openrouter.ai")


def _effort(effort: JsonValue) -> Fields:
    return {"reasoning_effort": effort}


def messages_fields(
    parameters: Mapping[str, JsonValue], known: Capability, model: str
) -> dict[str, Any]:
    """Return the fields of Anthropic's messages for what the parameters say of reasoning.

    A model with adaptive thinking is told an effort, an earlier one a budget below ``max_tokens``.
    Raises UserError for what the model does not take.
    """
    effort, budget = (parameters.get(name) for name in NAMES)
    claude = known.thinks_when_told
    fields: dict[str, Any] = {}
    if isinstance(budget, int):
        if claude and known.adaptive_thinking and not known.budget_thinking:
            raise UserError(
                f"--thinking-budget {budget}: {model} thinks as much as it needs and takes no "
                "budget: use --reasoning-effort WORD"
            )
        _check_budget(budget, parameters.get("max_tokens"))
        fields["thinking"] = {"type": "enabled", "budget_tokens": budget}
    if effort is None:
        return fields
    if claude and not (known.effort or known.adaptive_thinking):
        raise UserError(
            f"--reasoning-effort {effort}: {model} takes no effort: use --thinking-budget TOKENS"
        )
    if effort == "none":
        return fields if known.always_thinks or fields else {"thinking": {"type": "disabled"}}
    if known.adaptive_thinking:
        fields.setdefault("thinking", {"type": "adaptive"})
    return {**fields, "output_config": {"effort": effort}}


def _check_budget(budget: int, limit: JsonValue) -> None:
    if budget < LEAST_BUDGET:
        raise UserError(f"--thinking-budget {budget}: must be at least {LEAST_BUDGET:,}")
    if isinstance(limit, int) and budget >= limit:
        raise UserError(
            f"--thinking-budget {budget}: must be less than --max-tokens {limit}, which holds for "
            "thoughts and answer together"
        )


def thoughts_of(message: Mapping[str, Any]) -> str:
    """Return the thoughts beside the answer in a message of chat completions: ``reasoning_content``
    (DeepSeek, vLLM, SGLang, llama.cpp), ``reasoning`` or ``reasoning_details`` (OpenRouter, vLLM),
    parts of the kind ``thinking`` (Mistral)."""
    for name in ("reasoning_content", "reasoning"):
        if isinstance(text := message.get(name), str) and text:
            return text
    pieces = message.get("reasoning_details")
    content = message.get("content")
    parts = [*(pieces if isinstance(pieces, list) else ())]
    parts += [p for p in content if _is_thinking(p)] if isinstance(content, list) else []
    return "\n".join(text for part in parts if (text := _text(part)))


def thoughts_in(blocks: list[Any]) -> str:
    """Return the thoughts in the blocks of Anthropic's messages; redacted ones have no text."""
    return "\n".join(text for block in blocks if _is_thinking(block) and (text := _text(block)))


def _is_thinking(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") == "thinking"


def _text(part: object) -> str:
    if not isinstance(part, dict):
        return ""
    text = part.get("thinking") or part.get("text") or part.get("summary")
    if isinstance(text, list):
        return "".join(_text(piece) for piece in text)
    return text if isinstance(text, str) else ""
