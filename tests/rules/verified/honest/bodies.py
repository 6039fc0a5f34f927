"""What an honest run sends and gets back: forms, JSON, cookies, as the sites' programs write them.

The shop's administration spells a list out in fields ``name[0]``, ``name[1]``, in a multipart form.
"""

from __future__ import annotations

import json
import re
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from tests.rules.verified.honest.texts import is_pattern, written

Record = dict[str, Any]
_BOUNDARY = "----WebKitFormBoundary7MA4YWxkTrZu0gW"


class Sender(Protocol):
    """The browser that sends a body: which one, and the sites' addresses."""

    variant: int

    def render(self, text: str) -> str:
        """Return the text with the sites' addresses."""
        ...


def filled(text: str) -> str:
    """Return the text with a number where the template was left unfilled."""
    return re.sub(r"\{\{\w+\}\}", "4217", text)


def chosen(value: Any, variant: int) -> Any:
    """Return one of alternatives, and a text for a pattern."""
    if isinstance(value, list):
        value = value[variant % len(value)]
    return written(value, variant) if is_pattern(value) else value


def body_of(check: Record, status: int, browser: Sender) -> Record | None:
    """Return what is sent: JSON by a script of GitLab and the checkout, else a form."""
    fields = check["expected"].get("post_data")
    if fields is None:
        return None
    url = str(check["expected"]["url"])
    sent = _document(fields, check.get("post_data_schema") or {}, browser)
    if status != 302 and ("__GITLAB__" in url or "/rest/" in url):
        return {"mimeType": "application/json", "text": json.dumps(sent)}
    pairs = [("form_key", "JvY0Qe8wVxq3DTa1"), ("utf8", "✓"), *_fields(sent)]
    if browser.variant == 1:
        return {
            "mimeType": "application/x-www-form-urlencoded; charset=UTF-8",
            "text": urlencode(pairs),
        }
    parts = "".join(
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in pairs
    )
    kind = f"multipart/form-data; boundary={_BOUNDARY}"
    return {"mimeType": kind, "text": f"{parts}--{_BOUNDARY}--\r\n"}


def _fields(sent: Record) -> list[tuple[str, str]]:
    """Return a form's fields; lists and objects as the shop's pages and JSON fields write them."""
    pairs = []
    for name, value in sent.items():
        if isinstance(value, list) and not any(isinstance(one, dict | list) for one in value):
            pairs += [(f"{name}[{at}]", str(one)) for at, one in enumerate(value)]
        elif isinstance(value, dict | list):
            pairs.append((name, json.dumps(value)))
        else:
            pairs.append((name, str(value)))
    return pairs


def _document(fields: Record, schema: Record, browser: Sender) -> Record:
    """Return the object that has every field at its place; what must be absent is not there."""
    sent: Record = {}
    for key, expected in fields.items():
        if expected is None:
            continue
        declared = (schema.get("properties") or {}).get(key) or {}
        value = expected
        if not (isinstance(value, list) and (declared.get("type") == "array" or len(value) == 1)):
            several = isinstance(value, list) and all(isinstance(one, int) for one in value)
            value = value if several else chosen(value, browser.variant)
        if isinstance(value, str):
            value = filled(browser.render(value))
        _put(sent, key, value)
    return sent


def _put(sent: Record, key: str, value: Any) -> None:
    if key.startswith("$.^"):
        sent[written(key[2:])] = value
    elif found := re.fullmatch(r"\$\['(.+?)'\]\[\?\(@\.(\w+) == (\d+)\)\]\.(\w+)", key):
        rows = [{found[2]: int(found[3]), found[4]: one} for one in value]
        sent[found[1]] = [*rows, {found[2]: 0, found[4]: "size: m"}]
    elif key.startswith("$."):
        place: Any = sent
        *steps, last = re.findall(r"[\w-]+", key[2:])
        for step, following in zip(steps, [*steps[1:], last], strict=True):
            if step.isdigit():
                place.extend({} for _ in range(int(step) + 1 - len(place)))
                place = place[int(step)]
            else:
                place = place.setdefault(step, [] if following.isdigit() else {})
        place[last] = value
    else:
        sent[filled(key)] = value


def reply_of(expected: Record, variant: int) -> Record:
    """Return the parts of the response that a check names."""
    reply: Record = {}
    if content := expected.get("response_content"):
        document: Record = {}
        for key, value in content.items():
            _put(document, key, chosen(value, variant))
        reply["content"] = {"mimeType": "application/json", "text": json.dumps(document)}
    if cookies := expected.get("response_cookies"):
        named = {name: quote(chosen(text, variant)) for name, text in cookies.items()}
        reply["cookies"] = [{"name": name, "value": text} for name, text in named.items()]
    return reply
