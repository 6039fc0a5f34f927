"""Changes to a run: an agent's answer written another way, and what browsers, sites and recorders
do differently."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from numpy.random import Generator

from tests.rules.against_package.values import slip

AnswerChange = Callable[[Any, Generator], Any]


def _dump(answer: Any) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer)


def _open(text: str) -> str:
    """Return an object's text without its closing brace, ready for one more key."""
    return text[:-1] + ("," if len(text) > 2 else "")


def _with_data(change: Callable[[list[Any], Generator], Any]) -> AnswerChange:
    """Return a change of the retrieved list; other answers stay as they are."""

    def changed(answer: Any, rng: Generator) -> Any:
        if not isinstance(answer, dict) or not isinstance(answer.get("retrieved_data"), list):
            return answer
        return {**answer, "retrieved_data": change(answer["retrieved_data"], rng)}

    return changed


def _with_key(name: str, change: Callable[[str], Any]) -> AnswerChange:
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


def _objects(change: Callable[[dict[str, Any]], Any]) -> AnswerChange:
    return _with_data(
        lambda items, _: [change(item) if isinstance(item, dict) else item for item in items]
    )


def _as_text(item: Any) -> Any:
    return item if isinstance(item, dict | list) else str(item)


ANSWER_CHANGES: dict[str, AnswerChange] = {
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
    "data as texts": _with_data(lambda items, _: [_as_text(item) for item in items]),
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


Entry = dict[str, Any]
RequestChange = Callable[[list[Entry], Generator], list[Entry]]


def _each(change: Callable[[Entry, Generator], None]) -> RequestChange:
    """Return a change of all entries, or of one of them."""

    def changed(entries: list[Entry], rng: Generator) -> list[Entry]:
        entries = copy.deepcopy(entries)
        if entries:
            one = int(rng.integers(-1, len(entries)))
            for entry in entries if one < 0 else entries[one : one + 1]:
                change(entry, rng)
        return entries

    return changed


def _is_whole(entry: Entry) -> bool:
    """Tell whether no other change took the address or the list of headers away."""
    request = entry.get("request", {})
    return "url" in request and isinstance(request["headers"], list)


def _url(change: Callable[[str, str, str], str]) -> RequestChange:
    """Return a change of the address: of its origin, path and query (with the question mark)."""

    def changed(entry: Entry, rng: Generator) -> None:
        if _is_whole(entry):
            base, mark, query = entry["request"]["url"].partition("?")
            at = base.find("/", base.find("://") + 3)
            at = len(base) if at < 0 else at
            entry["request"]["url"] = change(base[:at], base[at:], mark + query)

    return _each(changed)


def _query(change: Callable[[list[tuple[str, str]]], list[tuple[str, str]]]) -> RequestChange:
    def changed(start: str, path: str, query: str) -> str:
        pairs = change(parse_qsl(query[1:], keep_blank_values=True))
        return start + path + (f"?{urlencode(pairs)}" if pairs else "")

    return _url(changed)


def _request(change: Callable[[Entry], None]) -> RequestChange:
    def changed(entry: Entry, rng: Generator) -> None:
        if _is_whole(entry):
            change(entry["request"])

    return _each(changed)


def _header(name: str, *values: str | None) -> RequestChange:
    """Return a change of a request's header: all its values; None takes it away."""

    def changed(request: Entry) -> None:
        kept = [one for one in request["headers"] if one["name"].lower() != name.lower()]
        made = [{"name": name, "value": value} for value in values if value is not None]
        request["headers"] = kept + made

    return _request(changed)


def _body(change: Callable[[Entry], None]) -> RequestChange:
    def changed(request: Entry) -> None:
        if request.get("postData"):
            change(request["postData"])

    return _request(changed)


def _is_form(body: Entry) -> bool:
    return "form-urlencoded" in body.get("mimeType", "") and bool(body.get("text"))


def _form(change: Callable[[list[tuple[str, str]]], list[tuple[str, str]]]) -> RequestChange:
    def changed(body: Entry) -> None:
        if _is_form(body):
            body["text"] = urlencode(change(parse_qsl(body["text"], keep_blank_values=True)))

    return _body(changed)


def _status(status: object) -> RequestChange:
    def changed(entry: Entry, rng: Generator) -> None:
        entry.get("response", {})["status"] = status

    return _each(changed)


def _as_json(body: Entry) -> None:
    if _is_form(body):
        fields = dict(parse_qsl(body["text"], keep_blank_values=True))
        body.update(mimeType="application/json", text=json.dumps(fields))


def _as_multipart(body: Entry) -> None:
    if not _is_form(body):
        return
    parts = [
        f'--b0\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in parse_qsl(body["text"], keep_blank_values=True)
    ]
    body.update(mimeType="multipart/form-data; boundary=b0", text="".join(parts) + "--b0--\r\n")


def _slipped(entry: Entry, rng: Generator) -> None:
    """Change one value of a form."""
    body = entry.get("request", {}).get("postData") or {}
    if _is_form(body):
        pairs = parse_qsl(body["text"], keep_blank_values=True)
        if pairs:
            at = int(rng.integers(len(pairs)))
            pairs[at] = (pairs[at][0], slip(pairs[at][1], rng))
            body["text"] = urlencode(pairs)


def _parameter_slipped(entry: Entry, rng: Generator) -> None:
    base, _, query = entry.get("request", {}).get("url", "").partition("?")
    pairs = parse_qsl(query, keep_blank_values=True)
    if pairs:  # the address is there, then
        at = int(rng.integers(len(pairs)))
        pairs[at] = (pairs[at][0], slip(pairs[at][1], rng))
        entry["request"]["url"] = f"{base}?{urlencode(pairs)}"


def _content(text: Callable[[str], str]) -> RequestChange:
    def changed(entry: Entry, rng: Generator) -> None:
        content = entry.get("response", {}).get("content") or {}
        if content.get("text"):
            content["text"] = text(content["text"])

    return _each(changed)


def _cookies(change: Callable[[list[Entry]], list[Entry]]) -> RequestChange:
    def changed(entry: Entry, rng: Generator) -> None:
        response = entry.get("response", {})
        response["cookies"] = change(response.get("cookies") or [])

    return _each(changed)


def _after(path: str, dest: str, accept: str, status: int = 200) -> RequestChange:
    """Return a change that adds a request to the last request's host."""

    def changed(entries: list[Entry], rng: Generator) -> list[Entry]:
        if not entries or not _is_whole(entries[-1]):
            return entries
        url = entries[-1]["request"]["url"].split("?")[0]
        start = "/".join(url.split("/")[:3])
        headers = {"accept": accept, "sec-fetch-dest": dest, "sec-fetch-mode": "navigate"}
        made = {
            "method": "GET",
            "url": start + path,
            "headers": [{"name": name, "value": value} for name, value in headers.items()],
        }
        response = {"status": status, "headers": [], "cookies": [], "content": {}}
        return [*entries, {"request": made, "response": response}]

    return changed


def _snapshots(entries: list[Entry], rng: Generator) -> list[Entry]:
    if not entries or "snapshot" in entries[0]:
        return entries
    return [{"type": "resource-snapshot", "snapshot": entry} for entry in entries]


def _shuffled(entries: list[Entry], rng: Generator) -> list[Entry]:
    return [entries[int(at)] for at in rng.permutation(len(entries))]


def _dropped(entries: list[Entry], rng: Generator) -> list[Entry]:
    at = int(rng.integers(max(len(entries), 1)))
    return entries[:at] + entries[at + 1 :]


def _no_address(entries: list[Entry], rng: Generator) -> list[Entry]:
    """Take the last request's address away, of several: a trace with none is refused as a file."""
    if len(entries) < 2 or not _is_whole(entries[-1]) or not _is_whole(entries[0]):
        return entries
    request = {key: one for key, one in entries[-1]["request"].items() if key != "url"}
    return [*entries[:-1], {**entries[-1], "request": request}]


def _upper_type(body: Entry) -> None:
    body["mimeType"] = body.get("mimeType", "").upper()


def _charset(body: Entry) -> None:
    body["mimeType"] = body.get("mimeType", "") + "; charset=UTF-8"


def _no_text(body: Entry) -> None:
    body.pop("text", None)


def _encoded(path: str) -> str:
    return "".join(f"%{ord(char):02x}" if char in "-_a" else char for char in path)


REQUEST_CHANGES: dict[str, RequestChange] = {
    "slash at the end": _url(lambda host, path, query: host + path + "/" + query),
    "no slash at the end": _url(lambda host, path, query: host + path.rstrip("/") + query),
    "doubled slash": _url(lambda host, path, query: host + "/" + path + query),
    "doubled slash within": _url(lambda host, path, query: host + path.replace("/", "//") + query),
    "path in upper case": _url(lambda host, path, query: host + path.upper() + query),
    "query in upper case": _url(lambda host, path, query: host + path + query.upper()),
    "host in upper case": _url(lambda host, path, query: host.upper() + path + query),
    "another host": _url(lambda host, path, query: host.replace("example", "other") + path + query),
    "another port": _url(lambda host, path, query: host + "1" + path + query),
    "https": _url(lambda host, path, query: host.replace("http:", "https:") + path + query),
    "user info": _url(lambda host, path, query: host.replace("://", "://u:p@") + path + query),
    "dot segment": _url(lambda host, path, query: host + "/." + path + query),
    "two dots": _url(lambda host, path, query: host + "/x/.." + path + query),
    "path encoded": _url(lambda host, path, query: host + _encoded(path) + query),
    "space in the path": _url(lambda host, path, query: host + path + "%20" + query),
    "path parameter": _url(lambda host, path, query: host + path + ";jsessionid=1" + query),
    "longer path": _url(lambda host, path, query: host + path + "/more" + query),
    "shorter path": _url(lambda host, path, query: host + path.rpartition("/")[0] + query),
    "base64 in the path": _url(lambda host, path, query: host + path + "/YT0xJmI9Mg==" + query),
    "fragment": _url(lambda host, path, query: host + path + query + "#top"),
    "bare question mark": _url(lambda host, path, query: host + path + (query or "?")),
    "no query": _url(lambda host, path, query: host + path),
    "query encoded twice": _url(lambda host, path, query: host + path + query.replace("%", "%25")),
    "space as %20": _url(lambda host, path, query: host + path + query.replace("+", "%20")),
    "semicolons": _url(lambda host, path, query: host + path + query.replace("&", ";")),
    "placeholder": _url(lambda start, path, query: "__SHOPPING__" + path + query),
    "one parameter more": _query(lambda pairs: [*pairs, ("utm", "1")]),
    "a blank parameter more": _query(lambda pairs: [*pairs, ("utm", "")]),
    "one parameter fewer": _query(lambda pairs: pairs[1:]),
    "parameters reversed": _query(lambda pairs: pairs[::-1]),
    "parameter twice": _query(lambda pairs: pairs + pairs[:1]),
    "parameter twice, first other": _query(lambda ps: [(n, "0") for n, _ in ps[:1]] + ps),
    "parameter values blank": _query(lambda pairs: [(name, "") for name, _ in pairs]),
    "parameter values padded": _query(lambda pairs: [(n, f" {value} ") for n, value in pairs]),
    "parameter names in upper case": _query(lambda pairs: [(name.upper(), v) for name, v in pairs]),
    "parameter value slipped": _each(_parameter_slipped),
    "method in lower case": _request(lambda r: r.update(method=r["method"].lower())),
    "another method": _request(lambda r: r.update(method={"GET": "POST"}.get(r["method"], "PUT"))),
    "a created answer (201)": _status(201),
    "a redirect (302)": _status(302),
    "kept by the browser (304)": _status(304),
    "an error (500)": _status(500),
    "aborted (-1)": _status(-1),
    "status as text": _status("200"),
    "no status": _status(None),
    "headers as an object": _request(
        lambda r: r.update(headers={one["name"]: one.get("value", "") for one in r["headers"]})
    ),
    "a header without a value": _request(lambda r: r["headers"].append({"name": "x"})),
    "no address": _no_address,
    "no one clicked": _header("sec-fetch-user", None),
    "a script clicked": _header("sec-fetch-user", "?0"),
    "a frame": _header("sec-fetch-dest", "iframe"),
    "no accept": _header("accept", None),
    "accepts anything": _header("accept", "*/*"),
    "accepts XML first": _header("accept", "application/xhtml+xml,text/html"),
    "accepts in upper case": _header("Accept", "TEXT/HTML"),
    "no referer": _header("referer", None),
    "another referer": _header("referer", "http://shopping.example:7770/other/"),
    "referer with a query": _header("Referer", "http://gitlab.example:8023/x?a=1"),
    "two referers": _header("referer", "http://a.test/", "http://b.test/"),
    "no headers": _request(lambda r: r.update(headers=[])),
    "header names in upper case": _request(
        lambda r: r.update(headers=[{**one, "name": one["name"].upper()} for one in r["headers"]])
    ),
    "type in upper case": _body(_upper_type),
    "type with charset": _body(_charset),
    "type of text": _body(lambda body: body.update(mimeType="text/plain")),
    "form as JSON": _body(_as_json),
    "form in parts": _body(_as_multipart),
    "body without text": _body(_no_text),
    "body empty": _body(lambda body: body.update(text="")),
    "body cut": _body(lambda body: body.update(text=body.get("text", "")[:-2])),
    "body no object": _body(lambda body: body.update(mimeType="application/json", text="[1]")),
    "NaN in the body": _body(lambda b: b.update(text=b.get("text", "")[:-1] + ',"x":NaN}')),
    "no body": _request(lambda r: r.update(postData=None)),
    "one field more": _form(lambda pairs: [*pairs, ("form_key", "1")]),
    "one field fewer": _form(lambda pairs: pairs[:-1]),
    "fields reversed": _form(lambda pairs: pairs[::-1]),
    "field twice": _form(lambda pairs: pairs + pairs[:1]),
    "field twice, first other": _form(lambda pairs: [(name, "0") for name, _ in pairs[:1]] + pairs),
    "fields blank": _form(lambda pairs: [(name, "") for name, _ in pairs]),
    "fields padded": _form(lambda pairs: [(name, f"  {value} ") for name, value in pairs]),
    "fields as patterns": _form(lambda pairs: [(name, "^.*$") for name, _ in pairs]),
    "fields in upper case": _form(lambda pairs: [(name, value.upper()) for name, value in pairs]),
    "field names in upper case": _form(lambda pairs: [(name.upper(), v) for name, v in pairs]),
    "field with line breaks": _form(lambda pairs: [(n, v.replace(" ", "\r\n")) for n, v in pairs]),
    "field slipped": _each(_slipped),
    "reply in upper case": _content(str.upper),
    "reply cut": _content(lambda text: text[:-1]),
    "no reply": _content(lambda text: ""),
    "no cookies": _cookies(lambda cookies: []),
    "cookies twice": _cookies(lambda cookies: cookies + [{**one, "value": "0"} for one in cookies]),
    "cookies encoded": _cookies(lambda cs: [{**one, "value": quote(one["value"])} for one in cs]),
    "a frame after": _after("/frame", "iframe", "text/html"),
    "a script's request after": _after("/api/x.json", "empty", "*/*"),
    "a picture after": _after("/a.png", "image", "image/*"),
    "another page after": _after("/other", "document", "text/html"),
    "another page's redirect after": _after("/other", "document", "text/html", 302),
    "everything twice": lambda entries, rng: entries + entries,
    "in reverse": lambda entries, rng: entries[::-1],
    "shuffled": _shuffled,
    "one request fewer": _dropped,
    "no request": lambda entries, rng: [],
    "Playwright's snapshots": _snapshots,
}  # fmt: skip
