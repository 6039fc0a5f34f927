"""How models are called, for every command that calls one."""

from __future__ import annotations

import json
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, JsonValue, model_validator

from trajudge.util.settings import Count, Option, Positive, Seed, Settings, options_of

HOTTEST = 2.0  # OpenAI's and Gemini's bound; open models take more, and answer noise there


def _as_json(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict) else value


JsonText = Annotated[str, BeforeValidator(_as_json)]
"""A JSON object, as text or as a mapping."""


class RequestParameter(Option):
    """An option that goes into every request under its name: it is then in the manifest, in the key
    of a cached reply, and among what two runs of a judge must share."""


class CallConfig(Settings):
    """How models are called, and what that may cost."""

    adapter: Annotated[
        str | None,
        Option(
            "openai, anthropic, azure, bedrock, vertex, gemini, litellm, scripted, http "
            "(OpenAI's protocol without its SDK, faster), an installed one or a Python file "
            "(default: by the model's name)"
        ),
    ] = None
    script: Annotated[
        str | None, Option("replies for the scripted adapter (JSON Lines)", "FILE")
    ] = None
    base_url: Annotated[
        str | None, Option("a server that speaks the adapter's protocol", "URL")
    ] = None
    temperature: Annotated[
        float, Field(ge=0, le=HOTTEST), RequestParameter("sampling temperature (default: 0)", "T")
    ] = 0.0
    max_tokens: Annotated[
        Count | None,
        RequestParameter("tokens per reply (default: 1024, of a model that reasons 16000)"),
    ] = None
    reasoning_effort: Annotated[
        str | None, RequestParameter("none, low, medium, high, ... as it knows them", "WORD")
    ] = None
    thinking_budget: Annotated[
        Count | None, RequestParameter("tokens for thinking, of --max-tokens")
    ] = None
    extra_body: Annotated[
        JsonText | None, Option("an object of fields added to every request", "JSON")
    ] = None
    extra_headers: Annotated[
        JsonText | None, Option("an object of headers; secret ones are not kept", "JSON")
    ] = None
    seed: Annotated[
        Seed, RequestParameter("seed of the calls and of --stratified (default: 0)")
    ] = 0
    concurrency: Annotated[Count, Option("concurrent calls")] = 32
    rpm: Annotated[Positive | None, Option("requests per minute at most")] = None
    tpm: Annotated[Positive | None, Option("tokens per minute at most")] = None
    context: Annotated[Count | None, Option("context window in tokens, if not known")] = None
    timeout: Annotated[Positive, Option("per call", "SECONDS")] = 300.0
    wait: Annotated[
        Positive | None,
        Option(
            "for a server that is still loading its model, at most (default: not at all)",
            "SECONDS",
        ),
    ] = None
    max_cost: Annotated[
        float | None, Field(ge=0), Option("stop before costs exceed this", "DOLLARS")
    ] = None
    models: Annotated[
        JsonText | None,
        Option("windows, prices, parameters of models (TOML), before ours", "FILE"),
    ] = None
    prices: Annotated[str | None, Option("price table that overrides the built-in one", "FILE")] = (
        None
    )
    dry_run: Annotated[bool, Option("estimate the cost without a call")] = False
    yes: Annotated[bool, Option("do not ask before a run that costs more than $1")] = False
    cache: Annotated[
        str | None,
        Option("cached replies (default: TRAJUDGE_CACHE, or a file in ~/.cache/trajudge)", "FILE"),
    ] = None

    @property
    def parameters(self) -> dict[str, JsonValue]:
        """The parameters of every request by name, those that are not given as None."""
        return {name: getattr(self, name) for name in PARAMETERS}

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.adapter:
            from trajudge.judges.adapters.routing import (  # noqa: PLC0415 - where it is named
                check_adapter,
            )

            check_adapter(self.adapter)
        if self.script and self.adapter not in (None, "scripted"):
            raise ValueError("--script goes with --adapter scripted")
        return self


PARAMETERS = tuple(
    one.field for one in options_of(CallConfig) if isinstance(one.option, RequestParameter)
)
