"""A browser's session for a published task: what an honest run of it would have recorded.

Read from the task's record alone and from a recorded demo, whose headers and background requests
every session has. What kind of request a check is about is told by what the record itself gives
away: a referring page and a JSON reply belong to a page's script, a 302 to a form, an address of no
site to a service. Three browsers take turns: one that sends ``Sec-Fetch-*``, one on plain HTTP that
does not, and one that follows links of the map in place.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from tests.rules.verified.honest.bodies import body_of, chosen, filled, reply_of

Record = dict[str, Any]
Entry = dict[str, Any]

# Where the benchmark's containers listen (its documentation), and the host of each browser.
PORTS = {
    "__SHOPPING__": ":7770",
    "__SHOPPING_ADMIN__": ":7780/admin",
    "__REDDIT__": ":9999",
    "__GITLAB__": ":8023",
    "__WIKIPEDIA__": ":8888",
    "__MAP__": ":3000",
}
_HOSTS = ("localhost", "192.168.1.35", "localhost")
_FETCHED = {"sec-fetch-dest": "empty", "sec-fetch-mode": "cors", "sec-fetch-site": "same-origin"}
_NAVIGATED = {"sec-fetch-dest": "document", "sec-fetch-mode": "navigate", "sec-fetch-user": "?1"}
_SIDE_BAR = {"accept": "text/html, */*; q=0.01", "x-requested-with": "XMLHttpRequest"}
VARIANTS = 3


class Demo(NamedTuple):
    """Headers of a page's load and of a script's request, and a page's background, as recorded."""

    page: dict[str, str]
    script: dict[str, str]
    background: tuple[Entry, ...]


class Session(NamedTuple):
    """The sites' addresses, the answer, and the HAR entries of a run."""

    sites: dict[str, str]
    answer: object
    entries: list[Entry]


def demo_of(har: Record) -> Demo:
    """Return what every session repeats of a recorded run of the shop's administration."""
    entries = har["log"]["entries"]
    pages = [one for one in entries if _header(one, "accept").startswith("text/html,")]
    scripts = [one for one in entries if "/mui/index/render/" in one["request"]["url"]]
    at = entries.index(pages[-1])
    static = [one for one in entries[at + 1 :] if "/static/" in one["request"]["url"]]
    return Demo(_headers(pages[-1]), _headers(scripts[-1]), tuple(static[:3]))


def _headers(entry: Entry) -> dict[str, str]:
    pairs = {one["name"].lower(): one["value"] for one in entry["request"]["headers"]}
    return {name: value for name, value in pairs.items() if name not in ("host", "cookie")}


def _header(entry: Entry, name: str) -> str:
    return _headers(entry).get(name, "")


class Browser:
    """Records the requests of one run."""

    def __init__(self, demo: Demo, variant: int, sites: dict[str, str]) -> None:
        self.demo, self.variant, self.sites = demo, variant, sites
        self.entries: list[Entry] = []
        self.shown = ""

    def render(self, text: str) -> str:
        """Return the text with the sites' addresses."""
        for name, address in self.sites.items():
            text = text.replace(name, address)
        return text

    def load(self, url: str, status: int = 200) -> None:
        """Load a page into the tab, with what its scripts fetch."""
        self._sent("GET", url, status, self._page_headers())
        self.shown = self.entries[-1]["request"]["url"]
        root = "://".join(urlsplit(self.shown)[:2])
        for one in self.demo.background:
            path = urlsplit(one["request"]["url"]).path
            request = {**one["request"], "url": root + path}
            self.entries.append({**one, "request": request})

    def submit(self, method: str, url: str, status: int, body: Record | None) -> None:
        """Submit a form; the server sends the tab on to a page."""
        headers = {**self._page_headers(), "origin": "http://" + urlsplit(self.shown).netloc}
        self._sent(method, url, status, headers, body)
        if status == 302:
            self.load(self.shown)

    def fetch(self, method: str, url: str, status: int, **parts: Any) -> None:
        """Send a request by a script of the page that is shown."""
        headers = {**self.demo.script, "referer": self.shown, **parts.pop("headers", {})}
        self._sent(method, url, status, {**headers, **self._modern(_FETCHED)}, **parts)

    def _page_headers(self) -> dict[str, str]:
        referer = {"referer": self.shown} if self.shown else {}
        known = {name: text for name, text in self.demo.page.items() if name != "referer"}
        return {**known, **referer, **self._modern(_NAVIGATED)}

    def _modern(self, headers: dict[str, str]) -> dict[str, str]:
        return {} if self.variant == 1 else headers

    def _sent(
        self,
        method: str,
        url: str,
        status: int,
        headers: dict[str, str],
        body: Record | None = None,
        response: Record | None = None,
    ) -> None:
        pairs = [{"name": name, "value": value} for name, value in headers.items()]
        address = quote(self.render(url), safe="%/:=&?;,#+[]~@!$'()*._-")
        request = {"method": method, "url": address, "headers": pairs, "cookies": []}
        reply = {"status": status, "headers": [], "cookies": [], "content": {}}
        sent = {"postData": body} if body else {}
        self.entries.append({"request": request | sent, "response": {**reply, **(response or {})}})


def session(task: Record, demo: Demo, variant: int) -> Session:
    """Return an honest run; ``variant`` chooses the browser and among alternatives.

    Raises ValueError where nothing was written for a pattern of the task.
    """
    host = _HOSTS[variant % VARIANTS]
    sites = {name: f"http://{host}{port}" for name, port in PORTS.items()}
    # Longest first, so that the administration is not taken for the shop.
    browser = Browser(demo, variant, dict(sorted(sites.items(), key=lambda one: -len(one[0]))))
    for url in task["start_urls"]:
        browser.load(url)
    checks = [one for one in _intended(task) if not one.get("should_not_exist")]
    kind = task["eval"][0]["expected"]["task_type"]
    for check in checks:
        _make(browser, check, kind)
    if kind != "navigate":
        browser.load(task["start_urls"][0])
    needed = {f"__{site.upper()}__" for site in task["sites"]} | set(
        re.findall(r"__[A-Z_]+?__", json.dumps(checks))
    )
    known = {name: sites[name] for name in sorted(needed & sites.keys())}
    return Session(known, _answer(task, browser, variant), browser.entries)


def wrong_sessions(task: Record, demo: Demo) -> Iterator[Session]:
    """Yield runs with the right answer that did not do the task: one that stops at the start page,
    and for a task that asks for a page, one that goes back to the start page from it.

    Tasks whose requests are not checked, or only for what must not be sent, have none.
    """
    asked = [one for one in task["eval"][1:] if not one.get("should_not_exist")]
    if not asked:
        return
    idle = session({**task, "eval": task["eval"][:1]}, demo, 0)
    honest = session(task, demo, 0)
    yield idle._replace(sites=honest.sites)
    if task["eval"][0]["expected"]["task_type"] == "navigate":
        yield honest._replace(entries=[*honest.entries, *idle.entries])


def _intended(task: Record) -> list[Record]:
    """Return the checks, about the repository that the intent names, and pages that exist."""
    text = json.dumps(task["eval"][1:])
    text = re.sub(r"TASK_\d+_MAP_RELATION_ID", "relation/421", text)
    for repository in task["instantiation_dict"].values():
        if re.fullmatch(r"[\w.-]+/[\w.-]+", str(repository)) and repository not in text:
            text = re.sub(r"(__GITLAB__/)[\w.-]+/[\w.-]+(?=/-/)", rf"\g<1>{repository}", text)
    checks: list[Record] = json.loads(text)
    return checks


def _make(browser: Browser, check: Record, kind: str) -> None:
    """Do in the browser what brings about the request of a check."""
    expected, variant = check["expected"], browser.variant
    method, status = expected.get("http_method", "GET"), expected.get("response_status", 200)
    url = _address(check, browser)
    referer = (expected.get("headers") or {}).get("referer")
    if referer:
        _come_from(browser, chosen(referer, variant))
    body = body_of(check, status, browser)
    parts = {"body": body, "response": reply_of(expected, variant)}
    cookie = (expected.get("headers") or {}).get("Cookie")
    if cookie:
        parts["headers"] = {"cookie": chosen(cookie, variant)}
    if method == "GET" and not referer and not expected.get("response_content"):
        if "/route/" in url:
            browser.fetch("GET", url, status, **parts)
        elif variant == 2 and re.match(r"__MAP__/(?:node|way|relation|search)", url):
            joined = "&" if "?" in url else "?"
            browser.fetch("GET", f"{url}{joined}xhr=1", status, headers=_SIDE_BAR)
        else:
            browser.load(url, status)
    elif method == "GET" and kind == "navigate":
        _list_rows(browser, url, status)
    elif status == 302:
        browser.submit(method, url, status, body)
        browser.entries[-1 - _after_form(browser)]["response"].update(parts["response"])
    else:
        browser.fetch(method, url, status, **parts)


def _after_form(browser: Browser) -> int:
    return 1 + len(browser.demo.background)


def _come_from(browser: Browser, referer: str) -> None:
    """Be on the page that a request is to come from; lists change their query in place."""
    address = browser.render(referer)
    if urlsplit(browser.shown).path.rstrip("/") != urlsplit(address).path.rstrip("/"):
        browser.load(referer)
    browser.shown = quote(address, safe="%/:=&?;,#+[]~@!$'()*._-")


def _list_rows(browser: Browser, url: str, status: int) -> None:
    """Ask for a list's rows as recorded: all rows first, then those that the filter leaves."""
    base, _, query = url.partition("?")
    plain = re.sub(r"&?filters%5Bstatus%5D=[^&]*", "", query)
    for asked in (plain, query):
        browser.fetch("GET", f"{base}?{asked}&paging%5BpageSize%5D=20&isAjax=true", status)
    form = {"mimeType": "application/x-www-form-urlencoded", "text": "namespace=sales_order_grid"}
    browser.fetch("POST", base.replace("index/render", "bookmark/save"), 200, body=form)


def _address(check: Record, browser: Browser) -> str:
    expected, variant = check["expected"], browser.variant
    url = chosen(expected["url"], variant)
    page = browser.render("__SHOPPING__/grocery.html" + ("?p=2" if variant == 1 else ""))
    packed = base64.b64encode(page.encode()).decode().translate(str.maketrans("+/=", "-_,"))
    url = filled(url.replace("%UENC%", packed))
    if "query_params" not in expected:
        return str(url)
    pairs = [
        (name, str(chosen(one, variant)))
        for name, values in expected["query_params"].items()
        for one in (values if isinstance(values, list) else [values])
    ]
    if check.get("decode_base64_query") and url.endswith("/filter"):
        form = urlencode([*pairs, ("period_type", "day"), ("show_empty_rows", "0")])
        return f"{url}/{base64.b64encode(form.encode()).decode()}/"
    return f"{url}?{urlencode(pairs)}"


def _answer(task: Record, browser: Browser, variant: int) -> object:
    check = task["eval"][0]
    expected = check["expected"]
    told = {
        "task_type": expected["task_type"].upper(),
        "status": expected["status"].upper(),
        "retrieved_data": _told(check["results_schema"], expected.get("retrieved_data"), browser),
        "error_details": None,
    }
    text = json.dumps(told, ensure_ascii=False)
    return (told, text, f"Here is my answer:\n```json\n{text}\n```\n")[variant % VARIANTS]


def _told(schema: Record, value: Any, browser: Browser) -> Any:
    if schema.get("type") == "array" and isinstance(value, list):
        return [_told(schema.get("items") or {}, one, browser) for one in value]
    if isinstance(value, dict):
        known = schema.get("properties") or {}
        return {key: _told(known.get(key) or {}, one, browser) for key, one in value.items()}
    value = chosen(value, browser.variant)
    return browser.render(value) if isinstance(value, str) else value
