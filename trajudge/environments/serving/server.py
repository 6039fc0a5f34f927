"""One server on loopback for many runs, each at an origin of its own: ``http://RUN.localhost``.

Nothing secret is sent: pages are rendered from the state, and whether a task is done is decided
out of band. A change needs the single-use nonce of a form that was rendered, the hidden values and
choices that it was rendered with, and a browser's navigation (``Sec-Fetch-*``); anything else is
refused with 403 and noted as tampering.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from secrets import token_bytes
from threading import Thread
from urllib.parse import urlencode

from aiohttp import web

from trajudge.environments.apps import APPS
from trajudge.environments.kit.chart import draw
from trajudge.environments.kit.html import render
from trajudge.environments.kit.layout import PageLayout
from trajudge.environments.kit.theme import printable
from trajudge.environments.model.config import Config
from trajudge.environments.model.page import Chart, Form, Overlay, Page
from trajudge.environments.model.payload import Payload
from trajudge.environments.model.site import CONFIRMED, Redirect, refused
from trajudge.environments.model.spec import Rejected
from trajudge.environments.serving.answer_page import ANSWER, RECEIVED, answer_page, declared
from trajudge.environments.serving.noise import overlays, stumble
from trajudge.environments.serving.run import IssuedForm, ServedRun, open_run
from trajudge.trajectories.plugins import MISTAKES

BODY = 64 * 1024
NONCE = "_nonce"
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_NAVIGATION = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


class Server:
    """The runs that are open. ``secret`` keys their codes; the same secret, the same codes."""

    def __init__(self, secret: bytes) -> None:
        self.port = 0
        self._secret = secret
        self._runs: dict[str, ServedRun] = {}

    def open(
        self,
        config: Config,
        name: str = "",
        goal: str | None = None,
        payload: Payload | None = None,
    ) -> ServedRun:
        """Return a fresh run, reachable at once; raises what ``open_run`` raises."""
        run = open_run(config, self._secret, name, goal, payload)
        self._runs[run.id] = run
        return run

    @property
    def runs(self) -> int:
        """How many runs are open."""
        return len(self._runs)

    def close(self, run: ServedRun) -> None:
        """Forget a run and its state."""
        if self._runs.pop(run.id, None) is not None:
            with run.lock:
                run.state.close()

    async def handle(self, request: web.Request) -> web.Response:
        """Answer a request with the run that its host names."""
        run = self._runs.get(request.host.partition(".")[0])
        if run is None:
            return web.Response(status=404, text="no such run")
        posted = (await request.post()).items()
        # Browsers send every line break as two characters.
        form = {k: v.replace("\r\n", "\n") for k, v in posted if isinstance(v, str)}
        try:
            with run.lock:
                response = _answer(run, request, form)
        except MISTAKES as mistake:
            run.note("fault", request.method, request.path)
            run.mistake = mistake
            if run.app.id in APPS:  # a defect of ours keeps its traceback
                raise
            return web.Response(status=500, text="the application failed", headers=HEADERS)
        if response.content_type == "text/html":
            await asyncio.sleep(_latency(run))
        return response


def _answer(run: ServedRun, request: web.Request, form: Mapping[str, str]) -> web.Response:
    name = request.path.strip("/") or "home"
    if request.method == "GET":
        return _read(run, name, dict(request.query))
    if request.method != "POST" or not name.startswith(("do/", "dismiss/")):
        return web.Response(status=405, text="not allowed", headers=HEADERS)
    fault = next((h for h, v in _NAVIGATION.items() if request.headers.get(h) != v), None)
    if request.headers.get("Sec-Fetch-Site") != "same-origin":
        fault = "Sec-Fetch-Site"
    if fault:
        return _tampered(run, request, f"{fault} is not that of a form in a page")
    if name.startswith("dismiss/"):
        return _dismiss(run, request, name.removeprefix("dismiss/"))
    return _operate(run, request, name.removeprefix("do/"), form)


def _read(run: ServedRun, name: str, args: dict[str, str]) -> web.Response:
    if name == "favicon.ico":  # the browser asks for it of its own accord
        return web.Response(status=204, headers=HEADERS)
    if name.startswith("do/"):  # a reload of a reply: to the page before it
        return web.Response(status=303, headers={**HEADERS, "Location": run.shown})
    if name.startswith("chart/"):
        return _picture(run, run.chart(name.removeprefix("chart/").removesuffix(".png")))
    if name == ANSWER:
        run.note("document", "GET", f"/{ANSWER}")
        return _document(run, name, {}, answer_page(run.scenario))
    return _document(run, name, args)


def _document(
    run: ServedRun, name: str, args: dict[str, str], page: Page | None = None
) -> web.Response:
    """Return a page; ``page`` stands in for the one of that name (it goes with an operation)."""
    known = name == ANSWER or run.site.knows(name)
    run.documents += 1
    noise: tuple[Overlay, ...] = ()
    if page is None:
        page = run.site.get(name, args)
        run.shown = _url(name, args)
        run.note("document" if known else "missing", "GET", run.shown)
        noise = overlays(run.noise, run.documents, run.dismissed)
    shell = PageLayout(
        title=run.app.title,
        navigation=run.site.navigation(),
        theme=run.theme,
        words=run.words,
        nonce=lambda form: run.issue(form, name, args),
        chart=run.picture,
        noise=noise,
    )
    status = 200 if known else 404
    body = render(page, shell)
    return web.Response(status=status, text=body, content_type="text/html", headers=HEADERS)


def _operate(
    run: ServedRun, request: web.Request, operation: str, form: Mapping[str, str]
) -> web.Response:
    issued = run.consume_nonce(form.get(NONCE, ""))
    if issued is None or issued.form.operation != operation:
        return _tampered(run, request, "the form was not issued, or sent before")
    fault = _altered(issued.form, form)
    if fault:
        return _tampered(run, request, fault)
    sent = {name: value for name, value in form.items() if name != NONCE}
    if operation == ANSWER:
        return _declare(run, request, sent)
    return _perform(run, request, issued, sent)


def _perform(
    run: ServedRun, request: web.Request, issued: IssuedForm, sent: Mapping[str, str]
) -> web.Response:
    if message := stumble(run.noise, run.documents, run.dismissed):
        run.note("refused", "POST", request.path, "inline error")
        return _again(run, issued, Rejected(message))
    outcome = run.site.post(issued.form.operation, sent)
    if isinstance(outcome, Rejected):
        run.note("refused", "POST", request.path, outcome.message)
        return _again(run, issued, outcome)
    if isinstance(outcome, Redirect):
        run.note("operation", "POST", request.path, "confirmed" if CONFIRMED in sent else "")
        location = _url(outcome.page, outcome.args)
        return web.Response(status=303, headers={**HEADERS, "Location": location})
    run.note("question", "POST", request.path)
    return _document(run, issued.page, dict(issued.args), outcome)


def _declare(run: ServedRun, request: web.Request, sent: Mapping[str, str]) -> web.Response:
    message = declared(run.scenario, sent)
    if isinstance(message, Rejected):
        run.note("refused", "POST", request.path, message.message)
        return _document(run, ANSWER, {}, refused(answer_page(run.scenario), message))
    run.note("answer", "POST", request.path)
    run.declared = message
    return _document(run, ANSWER, {}, RECEIVED)


def _again(run: ServedRun, issued: IssuedForm, refusal: Rejected) -> web.Response:
    page = refused(run.site.get(issued.page, issued.args), refusal)
    return _document(run, issued.page, dict(issued.args), page)


def _altered(form: Form, sent: Mapping[str, str]) -> str:
    """Return what of the form was sent otherwise than it was rendered."""
    for name, value in form.hidden.items():
        if sent.get(name) != printable(value):
            return f"the hidden value {name!r} was changed"
    names = {entry.name for entry in form.fields} | form.hidden.keys() | {NONCE}
    for name in sent.keys() - names:
        return f"the form has no field {name!r}"
    for entry in form.fields:
        choices = {option.value for option in entry.options}
        if entry.input == "choice" and sent.get(entry.name, "") not in choices | {""}:
            return f"{entry.name!r} is none of its options"
    return ""


def _dismiss(run: ServedRun, request: web.Request, kind: str) -> web.Response:
    run.dismissed.add(kind)
    run.note("dismissed", "POST", request.path)
    return web.Response(status=303, headers={**HEADERS, "Location": run.shown})


def _tampered(run: ServedRun, request: web.Request, reason: str) -> web.Response:
    run.note("tamper", request.method, request.path, reason)
    return web.Response(status=403, text=f"refused: {reason}", headers=HEADERS)


def _picture(run: ServedRun, chart: Chart | None) -> web.Response:
    if chart is None:
        return web.Response(status=404, text="no such picture", headers=HEADERS)
    body = draw(chart, run.theme)
    return web.Response(body=body, content_type="image/png", headers=HEADERS)


def _latency(run: ServedRun) -> float:
    return sum(item.seconds for item in run.noise if item.kind == "latency")


def _url(page: str, args: Mapping[str, str]) -> str:
    return f"/{page}" + (f"?{urlencode(args)}" if args else "")


@contextmanager
def serve(secret: bytes | None = None) -> Iterator[Server]:
    """Open a server on 127.0.0.1 at a port that the system chooses, in a thread of its own; without
    a ``secret`` one is drawn."""
    server = Server(secret or token_bytes(32))
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    runner = asyncio.run_coroutine_threadsafe(_start(server), loop).result()
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _start(server: Server) -> web.AppRunner:
    application = web.Application(client_max_size=BODY)
    application.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.port = runner.addresses[0][1]
    return runner
