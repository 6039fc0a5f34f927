"""Changes to an agent's answer: wording, JSON slips, values written another way."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from numpy.random import Generator

from tests.rules.against_package.values import slip

Change = Callable[[Any, Generator], Any]


def _dump(answer: Any) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer)


def _open(text: str) -> str:
    """Return an object's text without its closing brace, ready for one more key."""
    return text[:-1] + ("," if len(text) > 2 else "")


def _with_data(change: Callable[[list[Any], Generator], Any]) -> Change:
    """Return a change of the retrieved list; other answers stay as they are."""

    def changed(answer: Any, rng: Generator) -> Any:
        if not isinstance(answer, dict) or not isinstance(answer.get("retrieved_data"), list):
            return answer
        return {**answer, "retrieved_data": change(answer["retrieved_data"], rng)}

    return changed


def _with_key(name: str, change: Callable[[str], Any]) -> Change:
    def changed(answer: Any, rng: Generator) -> Any:
        if not isinstance(answer, dict) or not isinstance(answer.get(name), str):
            return answer
        return {**answer, name: change(answer[name])}

    return changed


def _without(answer: Any, name: str) -> Any:
    if not isinstance(answer, dict):
        return answer
    return {key: value for key, value in answer.items() if key != name}


def _legacy(answer: Any, _: Generator) -> Any:
    if not isinstance(answer, dict) or "task_type" not in answer:
        return answer
    return {"performed_operation": answer["task_type"], **_without(answer, "task_type")}


def _one_slip(items: list[Any], rng: Generator) -> list[Any]:
    if not items:
        return items
    at = int(rng.integers(len(items)))
    return [slip(item, rng) if index == at else item for index, item in enumerate(items)]


def _objects(change: Callable[[dict[str, Any]], Any]) -> Change:
    return _with_data(
        lambda items, _: [change(item) if isinstance(item, dict) else item for item in items]
    )


def _text(item: Any) -> Any:
    return item if isinstance(item, dict | list) else str(item)


CHANGES: dict[str, Change] = {
    "as text": lambda answer, _: _dump(answer),
    "in a fence": lambda answer, _: f"```json\n{_dump(answer)}\n```",
    "in a bare fence": lambda answer, _: f"Done.\n```\n{_dump(answer)}\n```\nBye.",
    "in an open fence": lambda answer, _: f"```json\n{_dump(answer)}",
    "in two fences": lambda answer, _: f"```\n{{}}\n```\n```\n{_dump(answer)}\n```",
    "after prose": lambda answer, _: f"The answer is {_dump(answer)}",
    "byte-order mark": lambda answer, _: "\ufeff" + _dump(answer),
    "half an emoji in JSON": lambda answer, _: _open(_dump(answer)) + '"x":"\\ud83d"}',
    "NaN in JSON": lambda answer, _: _open(_dump(answer)) + '"x":NaN}',
    "half an emoji after JSON": lambda answer, _: _dump(answer) + " \ud83d",
    "cut off": lambda answer, _: _dump(answer)[:-1],
    "single quotes": lambda answer, _: repr(answer),
    "JSON in JSON": lambda answer, _: json.dumps(_dump(answer)),
    "nothing": lambda answer, _: None,
    "empty text": lambda answer, _: "  ",
    "a list": lambda answer, _: [answer],
    "legacy name": _legacy,
    "no task type": lambda answer, _: _without(answer, "task_type"),
    "no status": lambda answer, _: _without(answer, "status"),
    "no data": lambda answer, _: _without(answer, "retrieved_data"),
    "one more key": lambda answer, _: {**answer, "more": 1} if isinstance(answer, dict) else answer,
    "status in lower case": _with_key("status", str.lower),
    "status padded": _with_key("status", lambda text: f" {text} ."),
    "status dotted": _with_key("status", lambda text: f"'{text}'."),
    "status hyphenated": _with_key("status", lambda text: text.replace("_", "-")),
    "status as pattern": _with_key("status", lambda text: "^.*$"),
    "status empty": _with_key("status", lambda text: ""),
    "status a number": _with_key("status", lambda text: 1),
    "task type as pattern": _with_key("task_type", lambda text: "^r.*|m.*|n.*$"),
    "task type in a list": _with_key("task_type", lambda text: [text]),
    "data as texts": _with_data(lambda items, _: [_text(item) for item in items]),
    "data reversed": _with_data(lambda items, _: items[::-1]),
    "data as patterns": _with_data(lambda items, _: ["^.*$" for _ in items]),
    "data padded": _with_data(
        lambda items, _: [f" {item} ." if isinstance(item, str) else item for item in items]
    ),
    "data nested": _with_data(lambda items, _: [[item, item] for item in items]),
    "data alone in lists": _with_data(lambda items, _: [[item] for item in items]),
    "data empty": _with_data(lambda items, _: []),
    "data null": _with_data(lambda items, _: None),
    "data unwrapped": _with_data(lambda items, _: items[0] if len(items) == 1 else items),
    "data of one null": _with_data(lambda items, _: [None, *items[1:]]),
    "data repeated": _with_data(lambda items, _: items + items[:1]),
    "data cut": _with_data(lambda items, _: items[:-1]),
    "data joined": _with_data(lambda items, _: [", ".join(map(str, items))]),
    "many alternatives": _with_data(
        lambda items, _: [
            item if isinstance(item, dict | list) else [item, *map(str, range(150))]
            for item in items
        ]
    ),
    "objects as text": _objects(json.dumps),
    "objects as a list": _objects(lambda item: list(item.values())),
    "keys in upper case": _objects(lambda item: {key.upper(): item[key] for key in item}),
    "keys reversed": _objects(lambda item: dict(reversed(item.items()))),
    "one key more": _objects(lambda item: {**item, "more": 1}),
    "one key fewer": _objects(lambda item: dict(list(item.items())[1:])),
    "a value slipped": _with_data(_one_slip),
    "two values slipped": _with_data(lambda items, rng: _one_slip(_one_slip(items, rng), rng)),
}  # fmt: skip
