"""What the texts of a specification show without a run: places left open, and other targets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from trajudge.rules.audit.findings import Finding
from trajudge.rules.verified.dataset import NetworkCheck, Task, placeholders
from trajudge.rules.verified.network.patterns import HOLE, is_pattern

_ONE_SIDED = re.compile(r"\.\*\(\?![^()]*\)\.\*\$?\Z")
_VALUE_NAME = re.compile(r"(?<![A-Za-z0-9_])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+){2,}(?![A-Za-z0-9_])")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
_OF_REPOSITORY = re.compile(r"__GITLAB__/([\w.-]+/[\w.-]+)/(?:-/|notes|toggle_star)")


def text_findings(task: Task) -> Iterator[Finding]:
    """Yield what the texts of a task's network checks show, in the order of the checks."""
    yield from _other_target(task)
    for index, check in enumerate(task.network_checks):
        field = f"eval network {index + 1}"
        for text in _strings(msgspec.to_builtins(check)):
            yield from _left_open(task, field, text)
        yield from _addresses(task, check, field)
        if check.expected.response_status < 100:
            yield Finding(
                task.task_id,
                "unanswered",
                field,
                check.expected.response_status,
                "no server answers with this status: it stands for a request that failed",
                "say how a run comes to send it, and what of it counts",
            )


def _left_open(task: Task, field: str, text: str) -> Iterator[Finding]:
    if HOLE.search(text):
        yield Finding(
            task.task_id,
            "unfilled",
            field,
            text,
            "a place of the template was left unfilled: any value counts here, and the released "
            "package takes it for the text itself",
            "write the value, or a pattern",
        )
    if is_pattern(text) and _ONE_SIDED.search(text):
        yield Finding(
            task.task_id,
            "one_sided",
            field,
            text,
            "the look-ahead stands behind .* and is always met at the text's end",
            "put it at the start of the pattern",
        )


def _addresses(task: Task, check: NetworkCheck, field: str) -> Iterator[Finding]:
    for url in check.expected.urls:
        if name := _VALUE_NAME.search(url):
            yield Finding(
                task.task_id,
                "unwritten",
                field,
                url,
                f"{name[0]} is the name of a value: no page of the site has this address",
                "write the value",
            )
        if check.should_not_exist or placeholders(url) or not is_pattern(url):
            continue
        # Otherwise the changed host of the synthetic run has already told.
        if "://" in url and not url.startswith("^.*"):
            yield Finding(
                task.task_id,
                "host_unbound",
                field,
                url,
                "the address may be on any host",
                "begin the pattern with the site's placeholder",
            )


def _other_target(task: Task) -> Iterator[Finding]:
    """Find checks of repositories none of which the intent's own one is."""
    values = [str(value) for value in task.instantiation_dict.values()]
    wanted = [value for value in values if _REPOSITORY.fullmatch(value)]
    text = msgspec.json.encode(task.eval).decode()
    checked = dict.fromkeys(_OF_REPOSITORY.findall(text.replace("\\\\", "")))
    if not checked or any(value.casefold() in text.casefold() for value in wanted):
        return
    for value in wanted:
        yield Finding(
            task.task_id,
            "other_target",
            "instantiation_dict",
            value,
            f"the intent is about {value}, and the checks are about {', '.join(checked)}",
            "write the address of what the intent names",
        )


def _strings(value: Any) -> Iterator[str]:
    """Yield every text in a specification, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(key)
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)
