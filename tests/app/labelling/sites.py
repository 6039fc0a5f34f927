"""A queue served on a real port, and a client with a session, who sends forms as a page does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page

from tests.app.browsing import complaints
from tests.app.made_runs import Task, write_run
from tests.app.serving import Answer, Served, served
from trajudge.annotations.queue import LabelQueue
from trajudge.app.audit_pages import RuleText
from trajudge.app.label_forms import cookie_of
from trajudge.app.label_pages import label_room
from trajudge.app.workspace import Workspace
from trajudge.eval.labelling.build import plan_queue, write_queue
from trajudge.eval.labelling.settings import BuildConfig

FORM = "application/x-www-form-urlencoded"


class Site(NamedTuple):
    """A served queue."""

    served: Served
    store: LabelQueue


@contextmanager
def queue_site(
    folder: Path, tasks: list[Task], rules: Mapping[str, RuleText] | None = None, **config: object
) -> Iterator[Site]:
    """Write a run, draw a queue of all its trajectories, and serve it."""
    run = write_run(folder, tasks)
    settings = {"budget": len(tasks), "double": 0.0, "out": folder / "queue", **config}
    build = BuildConfig.model_validate({"runs": (run,), **settings})
    write_queue(plan_queue(build), build)
    store = LabelQueue(folder / "queue")
    workspace = Workspace({}, store.settings.data)
    with served(workspace, [label_room(store, rules)]) as server:
        yield Site(server, store)
    store.close()


class Client:
    """A browser's session: cookies, and the token of its forms."""

    def __init__(self, site: Site, name: str = "", role: str = "annotator") -> None:
        self.site = site
        self.cookies: dict[str, str] = {}
        self.answers: list[Answer] = []
        self.get("/people")
        if name:
            assert self.post("/people", name=name, role=role).status == 303

    def get(self, path: str, **headers: str) -> Answer:
        return self._ask(path, "GET", None, **headers)

    def post(self, path: str, **fields: object) -> Answer:
        headers = {"Content_Type": FORM, "Sec_Fetch_Site": "same-origin"}
        body = urlencode({"csrf": self.csrf, **fields})
        return self._ask(path, "POST", body, **headers)

    def next_item(self) -> str:
        """The address of the next item, whose page was opened; "" where nothing is left."""
        path = self.get("/queue/next").headers.get("location", "")
        if path:
            self.page = self.get(path)
            assert self.page.status == 200, self.page.text
        return path

    def label(self, success: str = "yes", **fields: object) -> str:
        """Label the next item; its address."""
        path = self.next_item()
        whole = {"side_effect": "no", "repetition": "no", "optimality": "3", **fields}
        made = self.post(path, action="submit", success=success, **self.hidden(), **whole)
        assert made.status == 303, made.text
        return path

    def hidden(self) -> dict[str, str]:
        """The hidden fields of the form that was opened last."""
        names = ("version", "request", "seconds")
        return {name: _field(self.page.text, name) for name in names}

    def _ask(self, path: str, method: str, body: str | None, **headers: str) -> Answer:
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        headers |= {"Cookie": cookie} if cookie else {}
        answer = self.site.served.ask(path, method, body, Accept="text/html", **headers)
        if "set-cookie" in answer.headers:
            name, _, value = answer.headers["set-cookie"].partition(";")[0].partition("=")
            self.cookies[name] = value
        found = re.search(r'name="csrf" content="(\w+)"', answer.text)
        self.csrf = found[1] if found else getattr(self, "csrf", "")
        self.answers.append(answer)
        return answer


def _field(text: str, name: str) -> str:
    values: set[str] = set(re.findall(rf'name="{name}" value="([^"]*)"', text))
    (value,) = values
    return value


def visited(browser: Browser, site: Site, name: str, **context: object) -> tuple[Page, list[str]]:
    """A page of the person's, and what it asked of others or complained of."""
    person = site.store.person(name)
    assert person is not None
    made = browser.new_context(**context)  # type: ignore[arg-type]
    made.add_cookies(
        [{"name": cookie_of(site.store), "value": str(person.id), "url": site.served.address}]
    )
    page = made.new_page()
    page.set_default_timeout(30_000)
    return page, complaints(page, site.served.address, accept=True)
