"""What is refused before any page sees it: other hosts and origins, forms of other sites, bodies
that are too large, whoever is not signed in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trajudge.app.server.problems import PageError
from trajudge.app.server.security.limits import RequestLimit
from trajudge.app.server.security.sessions import Sessions

MAX_BODY = 1_000_000
"""Bytes of a request's body."""
MAX_FIELDS = 1_000
_READING, _WRITING = ("GET", "HEAD"), ("POST",)
_FORM, _JSON = "application/x-www-form-urlencoded", "application/json"
# What everybody may have who reaches the application at all.
_OPEN = ("/login", "/healthz", "/favicon.ico", "/static/")

People = Callable[[str], str | None]
"""From a token to the name of whom it was given to, None for a token of nobody's."""


@dataclass(frozen=True)
class Guard:
    """An application behind the checks of every request. ``people`` None: nobody signs in."""

    app: ASGIApp
    hosts: frozenset[str]
    sessions: Sessions
    people: People | None
    limit: RequestLimit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it in a sentence."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            await self._guarded(scope, receive, send)
        except PageError as error:
            await PlainTextResponse(error.sentence + "\n", error.status)(scope, receive, send)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        self._check_host(headers)
        session = self.sessions.read(headers.get("cookie", ""))
        self.limit.count(session or str((scope.get("client") or ("",))[0]))
        fresh = session is None
        session = session or self.sessions.begin()
        body = await self._checked_body(scope, headers, receive, None if fresh else session)
        person = self.sessions.person(session)
        state = scope.setdefault("state", {})
        state.update(session=session, person=person, csrf=self.sessions.csrf(session), body=body)
        if self.people is not None and person is None and not scope["path"].startswith(_OPEN):
            await self._ask_for_token(scope, headers)(scope, receive, send)
            return
        cookie = self.sessions.set_cookie(session) if fresh and _is_page(scope) else None
        await self.app(scope, _replayed(body, receive), _with_cookie(send, cookie))

    def _check_host(self, headers: Headers) -> None:
        """Refuse the name of another site, whose pages a name server leads here (DNS rebinding)."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            raise PageError(
                421, "This host name is not served here: open the address that was printed."
            )

    async def _checked_body(
        self, scope: Scope, headers: Headers, receive: Receive, session: str | None
    ) -> bytes:
        """Return the body of a form that a page of this session sent, b"" where nothing is
        written. Raises PageError for all others."""
        method = scope["method"]
        if method in _READING:
            if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
                raise PageError(400, "A page is asked for without a body.")
            return b""
        if method not in _WRITING:
            raise PageError(405, "Pages are read with GET and changed with POST alone.")
        _check_origin(headers)
        body = await _whole_body(headers, receive)
        token = headers.get("x-csrf-token") or _form_token(headers, body)
        if session is None or not self.sessions.is_csrf(session, token):
            raise PageError(
                403, "This form belongs to another session: load the page again and repeat it."
            )
        return body

    def _ask_for_token(self, scope: Scope, headers: Headers) -> Response:
        if scope["method"] in _READING and "text/html" in headers.get("accept", ""):
            return RedirectResponse("/login", 303)
        raise PageError(401, "Sign in first: open /login with the token that was printed.")


def _check_origin(headers: Headers) -> None:
    """Refuse what a page of another origin makes a browser send, and what tells no origin.

    A form on a page without referrers is sent with the origin "null": the browser's word that it
    comes from the same origin, which no page can write, has to do.
    """
    fetched, origin = headers.get("sec-fetch-site"), headers.get("origin")
    matches = origin is not None and urlsplit(origin).netloc.lower() == headers["host"].lower()
    by_browser = fetched == "same-origin" and (origin in (None, "null") or matches)
    if not (by_browser if fetched is not None else matches):
        raise PageError(403, "Only pages of this application may change anything here.")


async def _whole_body(headers: Headers, receive: Receive) -> bytes:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (_FORM, _JSON):
        raise PageError(415, f"A form is sent as {_FORM} or {_JSON}.")
    too_large = PageError(413, f"A form has at most {MAX_BODY:,} bytes: shorten its texts.")
    told = headers.get("content-length", "0")
    if not told.isdecimal() or int(told) > MAX_BODY:
        raise too_large
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise PageError(400, "The form was not sent to its end: send it again.")
        body += message.get("body", b"")
        if len(body) > MAX_BODY:
            raise too_large
        if not message.get("more_body", False):
            return bytes(body)


def _form_token(headers: Headers, body: bytes) -> str:
    if not headers["content-type"].lower().startswith(_FORM):
        return ""
    return read_form(body).get("csrf", [""])[-1]


def read_form(body: bytes) -> dict[str, list[str]]:
    """Read the fields of a form with all their values. Raises PageError for too many."""
    try:
        return parse_qs(
            body.decode("latin-1"),
            keep_blank_values=True,
            encoding="utf-8",
            errors="replace",
            max_num_fields=MAX_FIELDS,
        )
    except ValueError as error:
        raise PageError(413, f"A form has at most {MAX_FIELDS:,} fields.") from error


def _is_page(scope: Scope) -> bool:
    return not scope["path"].startswith(("/static/", "/healthz", "/image/"))


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Give the body that was read to whoever asks, once, and then what else happens."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


def _with_cookie(send: Send, cookie: str | None) -> Send:
    if cookie is None:
        return send

    async def send_with_cookie(message: Message) -> None:
        if message["type"] == "http.response.start":
            already = any(name == b"set-cookie" for name, _ in message["headers"])
            if not already:
                message["headers"] = [*message["headers"], (b"set-cookie", cookie.encode())]
        await send(message)

    return send_with_cookie
