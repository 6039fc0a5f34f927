"""A server of runs in this process, and what is sent to it over real HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from trajudge.environments.hosting.control import Control
from trajudge.environments.hosting.listeners import (
    Listener,
    default_origin,
    listening,
    port_of,
    site_application,
)
from trajudge.environments.hosting.runs import HostedRun, HostLimits, RunHost
from trajudge.environments.hosting.tasks import Tasks
from trajudge.environments.model.case import Case
from trajudge.environments.serving.pages import NAVIGATION
from trajudge.environments.serving.server import loop_in_thread
from trajudge.util.machine import listen

TOKEN = "the-token-of-the-harness-of-many-letters"
FORM = {**NAVIGATION, "Content-Type": "application/x-www-form-urlencoded"}


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass(frozen=True)
class Served:
    host: RunHost
    site: int
    control: int

    def ask(
        self,
        method: str,
        path: str,
        content: object = None,
        token: str | None = TOKEN,
        headers: Mapping[str, str] = {},
    ) -> Reply:
        """Ask the control listener."""
        body = None if content is None else json.dumps(content)
        bearer = {} if token is None else {"Authorization": f"Bearer {token}"}
        return _sent(self.control, method, path, body, {**bearer, **headers})

    def open(self, **wish: Any) -> dict[str, Any]:
        reply = self.ask("POST", "/v1/runs", wish)
        assert reply.status == 201, reply.text
        opened: dict[str, Any] = reply.json
        return opened

    def page(
        self,
        opened: Mapping[str, Any],
        path: str,
        form: Mapping[str, str] | None = None,
        headers: Mapping[str, str] = FORM,
    ) -> Reply:
        """Ask for a page of a run, or submit a form, as its browser would."""
        host = {"Host": urlsplit(opened["start_url"]).netloc, **headers}
        body = None if form is None else urlencode(form)
        return _sent(self.site, "GET" if form is None else "POST", path, body, host)

    def run(self, opened: Mapping[str, Any]) -> HostedRun:
        return self.host.runs[opened["id"]]

    def finish(self, opened: Mapping[str, Any], **ending: Any) -> Reply:
        path = f"/v1/runs/{opened['id']}/finish"
        return self.ask("POST", path, ending, opened["run_token"])

    def verdict(self, opened: Mapping[str, Any]) -> dict[str, Any]:
        reply = self.ask("GET", f"/v1/runs/{opened['id']}/verdict")
        assert reply.status == 200, reply.text
        verdict: dict[str, Any] = reply.json
        return verdict


def _sent(port: int, method: str, path: str, body: str | None, headers: Mapping[str, str]) -> Reply:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, body, dict(headers))
    response = connection.getresponse()
    return Reply(response.status, dict(response.headers), response.read())


@contextmanager
def serving(
    cases: Sequence[Case] = (),
    limits: HostLimits = HostLimits(),  # noqa: B008
    folder: Path | None = None,
    more: Sequence[Listener] = (),
) -> Iterator[Served]:
    host = RunHost(Tasks(cases), limits, folder)
    with loop_in_thread() as loop, listen("127.0.0.1", 0) as site, listen("127.0.0.1", 0) as other:
        host.origin = default_origin(site)
        control = Control(host, TOKEN).application()
        opened = listening(host, [(site_application(host), site), (control, other), *more])
        asyncio.run_coroutine_threadsafe(opened.__aenter__(), loop).result()
        try:
            yield Served(host, port_of(site), port_of(other))
        finally:
            closing = opened.__aexit__(None, None, None)
            asyncio.run_coroutine_threadsafe(closing, loop).result()
