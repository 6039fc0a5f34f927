"""What a decision was certified for: the judges' configurations, the agents and the benchmarks.

A judge's name does not tell its model parameters, prompts or options. A decision therefore keeps
them, and ``trajudge accept`` compares them with those of the judgments that it is applied to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from pydantic import Field, JsonValue

from trajudge.trajectories.model import Record

# What makes two judges of one name different judges; of a run all of these are known.
_COMPARED = ("model", "parameters", "prompt_hash", "options", "representation", "samples")

_OPTIONAL = ("calibration",)

_IF_BOTH_KNOW = ("sent",)

_SHOWN = 60


class JudgeConfiguration(Record):
    """``facts`` are what is known of the judge, by name: ``model``, ``parameters``,
    ``prompt_hash``, ``options``, ``representation``, ``samples``, ``calibration``, ``endpoint``,
    ``version``, and ``sent``, the models and parameters as the provider got them. A fact that is
    absent is not known. A run's manifest tells them, a published judgment its model and its
    representation alone."""

    judge: str
    facts: dict[str, JsonValue] = Field(default_factory=dict)


class DecisionScope(Record):
    """``judges`` by the name that the plan uses; ``agents`` and ``benchmarks`` count the labelled
    trajectories that the candidates were tested on."""

    judges: dict[str, JudgeConfiguration] = Field(default_factory=dict)
    agents: dict[str, int] = Field(default_factory=dict)
    benchmarks: dict[str, int] = Field(default_factory=dict)


def configuration_of_run(judge: str, manifest: Mapping[str, Any]) -> JudgeConfiguration:
    """Read the configuration that a run's manifest records."""
    names = ("model", "endpoint", "parameters", "prompt_hash", "options", "samples", "version")
    facts = {name: manifest[name] for name in names if name in manifest}
    facts |= {name: manifest[name] for name in _OPTIONAL if manifest.get(name) is not None}
    if sent := _sent(manifest.get("sent")):
        facts["sent"] = sent
    options = facts.get("options")
    if isinstance(options, dict):
        facts["representation"] = options.get("representation")
    return JudgeConfiguration(judge=judge, facts=facts)


def _sent(entries: object) -> list[JsonValue]:
    """Read models and parameters as they were really sent, whichever SDK and address it was."""
    if not isinstance(entries, list):
        return []
    calls: dict[bytes, JsonValue] = {}
    for entry in entries:
        call = {name: entry.get(name) for name in ("model", "parameters")}
        calls[orjson.dumps(call, option=orjson.OPT_SORT_KEYS)] = call
    return [calls[key] for key in sorted(calls)]


def differences(certified: JudgeConfiguration, current: JudgeConfiguration) -> Iterator[str]:
    """Say of every fact that both know in what they differ."""
    for name in (*_COMPARED, *_OPTIONAL, *_IF_BOTH_KNOW):
        if name not in certified.facts or name not in current.facts:
            continue
        before, now = certified.facts[name], current.facts[name]
        if isinstance(before, dict) and isinstance(now, dict):
            for key in sorted(before.keys() | now.keys()):
                yield from _difference(f"{name}.{key}", before.get(key), now.get(key))
        else:
            yield from _difference(name, before, now)


def unknown(
    certified: JudgeConfiguration, current: JudgeConfiguration
) -> tuple[list[str], list[str]]:
    """List facts that one of the two does not know, and those that neither does."""
    sides = (certified.facts, current.facts)
    count = {name: sum(name in facts for facts in sides) for name in (*_COMPARED, *_OPTIONAL)}
    return (
        [name for name, number in count.items() if number == 1],
        [name for name in _COMPARED if not count[name]],
    )


def _difference(name: str, before: JsonValue, now: JsonValue) -> Iterator[str]:
    if before != now:
        yield f"{name} {_short(now)} instead of {_short(before)}"


def _short(value: JsonValue) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
