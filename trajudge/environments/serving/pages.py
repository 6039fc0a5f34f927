"""What a run answers to a request, whoever asks: the server, or a session without a browser.

A change needs the single-use nonce of a form that was rendered, the hidden values and choices that
it was rendered with, and a browser's navigation (``Sec-Fetch-*``); anything else is refused with
403 and noted as tampering.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from trajudge.environments.apps import APPS
from trajudge.environments.kit.chart import draw
from trajudge.environments.kit.html import NONCE, render
from trajudge.environments.kit.layout import PageLayout
from trajudge.environments.kit.style import SCRIPT, stylesheet
from trajudge.environments.kit.theme import Theme, printable
from trajudge.environments.model.page import Chart, Form, Notice, Overlay, Page, Word
from trajudge.environments.model.site import CONFIRMED, Redirect, refused
from trajudge.environments.model.spec import Rejected
from trajudge.environments.serving.answer_page import ANSWER, RECEIVED, answer_page, submitted
from trajudge.environments.serving.noise import overlays, stumble
from trajudge.environments.serving.run import IssuedForm, ServedRun
from trajudge.trajectories.plugins import MISTAKES

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
KEPT = {"Cache-Control": "public, max-age=31536000, immutable"}
"""The header of a file whose name says what is in it."""

ASSETS = "assets/"
NAVIGATION = {
    "Sec-Fetch-Mode": "navigate",
    "Sec-Fetch-Dest": "document",
    "Sec-Fetch-Site": "same-origin",
}
"""The headers by which a browser says that a form in a page of the same origin was sent."""


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request. ``form`` are the fields of its body, with line breaks as one character."""

    method: str
    path: str
    query: Mapping[str, str]
    form: Mapping[str, str]
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PageResponse:
    """An answer: text, or bytes of a picture; ``location`` is where a redirect leads to, ``kept``
    says that the browser may keep it for ever."""

    status: int
    body: str | bytes = ""
    content_type: str = "text/plain"
    location: str = ""
    kept: bool = False

    @property
    def headers(self) -> dict[str, str]:
        """The headers beyond those of the content."""
        located = {"Location": self.location} if self.location else {}
        return {**HEADERS, **(KEPT if self.kept else {}), **located}


def answer(run: ServedRun, request: PageRequest) -> PageResponse:
    """Return what the run answers. A user's application that fails is noted as the run's
    ``mistake``; one of ours raises what it raised."""
    try:
        with run.lock:
            return _answer(run, request)
    except MISTAKES as mistake:
        run.note("fault", request.method, request.path)
        run.mistake = mistake
        if run.app.id in APPS:  # a defect of ours keeps its traceback
            raise
        return PageResponse(500, "the application failed")


def _answer(run: ServedRun, request: PageRequest) -> PageResponse:
    name = request.path.strip("/") or "home"
    if request.method == "GET":
        by_script = request.headers.get("Sec-Fetch-Dest") == "empty"
        return _read(run, name, dict(request.query), by_script=by_script)
    if request.method != "POST" or not name.startswith(("do/", "dismiss/")):
        return PageResponse(405, "not allowed")
    if fault := next((h for h, v in NAVIGATION.items() if request.headers.get(h) != v), None):
        return _tampered(run, request, f"{fault} is not that of a form in a page")
    if name.startswith("dismiss/"):
        return _dismiss(run, request, name.removeprefix("dismiss/"))
    return _operate(run, request, name.removeprefix("do/"))


def _read(run: ServedRun, name: str, args: dict[str, str], *, by_script: bool) -> PageResponse:
    """Return what an address shows. Of a page that a script reads only the content is taken: nobody
    sees what lies over it."""
    if name == "favicon.ico":  # the browser asks for it of its own accord
        return PageResponse(204)
    if name.startswith(ASSETS):
        return page_file(name.removeprefix(ASSETS), run.theme, run.app.identity)
    if name.startswith("do/"):  # a reload of a reply: to the page before it
        return PageResponse(303, location=run.shown)
    if name.startswith("chart/"):
        return _picture(run, run.chart(name.removeprefix("chart/").removesuffix(".png")))
    if name == ANSWER:
        run.note("document", "GET", f"/{ANSWER}")
        return _document(run, name, {}, answer_page(run.scenario))
    return _document(run, name, args, run.site.get(name, args) if by_script else None)


def _document(
    run: ServedRun, name: str, args: dict[str, str], page: Page | None = None
) -> PageResponse:
    """Return a page; ``page`` stands in for the one of that name (it goes with an operation)."""
    known = name == ANSWER or run.site.knows(name)
    run.documents += 1
    noise: tuple[Overlay, ...] = ()
    if page is None:
        page = run.site.get(name, args)
        run.shown = _url(name, args)
        run.note("document" if known else "missing", "GET", run.shown)
        if run.message is not None:
            notice = Notice(run.message)
            run.message, page = None, page._replace(blocks=(notice, *page.blocks))
        noise = overlays(run.noise, run.documents, run.dismissed)
    shell = PageLayout(
        title=run.app.title,
        navigation=run.site.navigation(name),
        theme=run.theme,
        words=run.words,
        nonce=lambda form: run.issue(form, name, args),
        chart=run.picture,
        identity=run.app.identity,
        name=name,
        args=args,
        information=run.site.information(),
        noise=noise,
        script=run.script,
        folded=run.site.ui.folded,
        frame=run.frame,
    )
    return PageResponse(200 if known else 404, render(page, shell), "text/html")


def _operate(run: ServedRun, request: PageRequest, operation: str) -> PageResponse:
    form = request.form
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
    run: ServedRun, request: PageRequest, issued: IssuedForm, sent: Mapping[str, str]
) -> PageResponse:
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
        run.message = Word("saved")
        return PageResponse(303, location=location)
    run.note("question", "POST", request.path)
    if outcome.question is not None:  # over the page that the form was on
        back = outcome.question.cancel._replace(page=issued.page, args=issued.args)
        below = run.site.get(issued.page, issued.args)
        outcome = below._replace(question=outcome.question._replace(cancel=back))
    return _document(run, issued.page, dict(issued.args), outcome)


def _declare(run: ServedRun, request: PageRequest, sent: Mapping[str, str]) -> PageResponse:
    message = submitted(run.scenario, sent)
    if isinstance(message, Rejected):
        run.note("refused", "POST", request.path, message.message)
        return _document(run, ANSWER, {}, refused(answer_page(run.scenario), message))
    run.note("answer", "POST", request.path)
    run.declared = message
    return _document(run, ANSWER, {}, RECEIVED)


def _again(run: ServedRun, issued: IssuedForm, refusal: Rejected) -> PageResponse:
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


def _dismiss(run: ServedRun, request: PageRequest, kind: str) -> PageResponse:
    run.dismissed.add(kind)
    run.note("dismissed", "POST", request.path)
    return PageResponse(303, location=run.shown)


def _tampered(run: ServedRun, request: PageRequest, reason: str) -> PageResponse:
    run.note("tamper", request.method, request.path, reason)
    return PageResponse(403, f"refused: {reason}")


def page_file(name: str, look: Theme, identity: str) -> PageResponse:
    """Return a file that the pages of a theme refer to."""
    for file in (stylesheet(look, identity), SCRIPT):
        if file.name == name:
            return PageResponse(200, file.text.encode(), file.content_type, kept=True)
    return PageResponse(404, "no such file")


def _picture(run: ServedRun, chart: Chart | None) -> PageResponse:
    if chart is None:
        return PageResponse(404, "no such picture")
    return PageResponse(200, draw(chart, run.theme), "image/png")


def _url(page: str, args: Mapping[str, str]) -> str:
    return f"/{page}" + (f"?{urlencode(args)}" if args else "")
