"""Usage as the providers' own types hold it, and the split of time."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

import pytest

from trajudge.judges.adapters.wire import read_usage
from trajudge.proxy import addon
from trajudge.proxy.results import split

CHAT = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
    "completion_tokens_details": {"reasoning_tokens": 8},
}


def test_the_addon_imports_the_standard_library_and_mitmproxy_alone() -> None:
    """It runs under whichever mitmproxy the user has."""
    tree = ast.parse(Path(addon.__file__).read_text(encoding="utf-8"))
    names = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""] if isinstance(node, ast.ImportFrom) else map(_name, node.names)
        )
    }
    assert names - sys.stdlib_module_names == {"mitmproxy"}


def _name(alias: ast.alias) -> str:
    return alias.name


def test_chat_usage_is_what_the_adapters_read() -> None:
    ours = addon.parse_usage(CHAT)
    read = read_usage(CHAT)
    assert read is not None
    theirs = read.model_dump()
    assert ours == {name: theirs[name] for name in addon.USAGE_FIELDS}


def test_usage_of_the_responses_api() -> None:
    from openai.types.responses.response_usage import ResponseUsage

    written = ResponseUsage.model_validate(
        {
            "input_tokens": 50,
            "output_tokens": 9,
            "total_tokens": 59,
            "input_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 4},
        }
    )
    ours = addon.parse_usage(written.model_dump())
    assert ours == {"input": 20, "cache_read": 30, "cache_write": None, "output": 9, "reasoning": 4}


@pytest.mark.parametrize("usage", [None, [], {}, {"prompt_tokens": "many"}])
def test_what_is_not_stated_is_none(usage: Any) -> None:
    assert addon.parse_usage(usage) is None
    assert (addon.parse_usage({"prompt_tokens": 3}) or {})["output"] is None


def test_events_break_anywhere() -> None:
    text = b': hello\ndata: {"a": 1}\n\nevent: x\r\ndata: {"b":\r\ndata: 2}\r\n\r\ndata: [DONE]\n\n'
    for size in range(1, len(text)):
        stream, events = addon.StreamedAnswer(), list[object]()
        for start in range(0, len(text), size):
            events += stream.events(text[start : start + size])
        assert events == [
            {"a": 1},
            {"b": 2},
        ] or events == [{"a": 1}, {"b": 2}, ["DONE"]]


def test_a_moment_counts_once() -> None:
    spans = [
        ("proxy", 0, 10),
        ("site", 1, 4),
        ("site", 2, 5),
        ("injected", 4.5, 7),
        ("model", 6, 8),
        ("model", 20, 30),
    ]
    assert split(spans, 0, 12) == {
        "model": 2.0,
        "injected": 1.5,
        "site": 3.5,
        "proxy": 3.0,
        "agent": 2.0,
    }
