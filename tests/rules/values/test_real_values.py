"""Every typed value that the published tasks expect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trajudge.rules.limits import fullmatch, is_pattern
from trajudge.rules.values import KINDS, Mode, equal, normalise

Value = tuple[str, Any]


def typed(schema: dict[str, Any] | None, value: Any) -> Iterator[Value]:
    """(kind, value) pairs of a value under its schema, alternatives one by one."""
    schema = schema or {}
    kind = str(schema.get("format") or schema.get("type") or "string")
    if kind == "array":
        for item in value or ():
            yield from typed(schema.get("items"), item)
    elif kind == "object":
        for one in value if isinstance(value, list) else [value]:
            for key, item in one.items():
                yield from typed(schema.get("properties", {}).get(key), item)
    else:
        yield from ((kind, item) for item in (value if isinstance(value, list) else [value]))


def expected_values(tasks: list[dict[str, Any]]) -> Iterator[Value]:
    for config in (config for task in tasks for config in task["eval"]):
        expected = config["expected"]
        yield from typed(config.get("results_schema"), expected.get("retrieved_data"))
        for part in ("query_params", "post_data"):
            schemas = (config.get(f"{part}_schema") or {}).get("properties", {})
            for key, value in (expected.get(part) or {}).items():
                yield from typed(schemas.get(key), value)


@pytest.fixture
def values(real_data: Path) -> list[Value]:
    path = real_data / "webarena" / "webarena-verified.json"
    tasks = json.loads(path.read_text(encoding="utf-8"))
    assert len(tasks) == 812
    return list(expected_values(tasks))


@pytest.mark.real_data
def test_every_expected_value_of_the_812_tasks_normalises(values: list[Value]) -> None:
    assert {kind for kind, _ in values} == set(KINDS) - {"base64", "full_address"}
    for kind, value in values:
        if is_pattern(value):
            fullmatch(value, "compiles")
            continue
        normal = normalise(kind, value)
        assert normalise(kind, normal) == normal, (kind, value)
        assert equal(kind, value, value).equal, (kind, value)


@pytest.mark.real_data
def test_the_release_reads_them_too(values: list[Value]) -> None:
    for kind, value in values:
        if value is not None:
            normalise(kind, value, mode=Mode.RELEASE)
            assert equal(kind, value, value, mode=Mode.RELEASE).equal, (kind, value)
