"""What is refused before any page sees it: other hosts and origins, forms of other sites, bodies
that are too large, whoever is not signed in."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trajudge.app.server.hosts import bracketed
from trajudge.app.server.problems import PageError
from trajudge.app.server.security.limits import RequestLimit
from trajudge.app.server.security.sessions import Sessions, SignIn, client_of

MAX_BODY = 1_000_000
"""Bytes of a request's body."""
MAX_FIELDS = 1_000
_READING, _WRITING = ("GET", "HEAD"), ("POST",)
_FORM, _JSON = "application/x-www-form-urlencoded", "application/json"
# What everybody may have who reaches the application at all.
_OPEN = ("/login", "/healthz", "/favicon.ico", "/static/")


@dataclass(frozen=True)
class Guard:
    """An application behind the checks of every request. ``sign_in`` None: nobody signs in."""

    app: ASGIApp
    hosts: frozenset[str]
    sessions: Sessions
    sign_in: SignIn | None
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
        self._check_host(scope, headers)
        session = self.sessions.read(headers.get("cookie", ""))
        self.limit.count(session or client_of(scope))
        fresh = session is None
        session = session or self.sessions.begin()
        body = await self._checked_body(scope, headers, receive, None if fresh else session)
        person = self.sessions.person(session)
        if self.sign_in is not None and scope["method"] in _READING:
            given = dict(parse_qsl(scope["query_string"].decode("latin-1"))).get("token")
            if given is not None:
                answer = await self._sign_in_by_address(self.sign_in, scope, headers, given)
                await answer(scope, receive, send)
                return
            kind, _, given = headers.get("authorization", "").partition(" ")
            if person is None and kind.lower() == "bearer":
                person = await self.sign_in.person(given.strip(), client_of(scope))
        state = scope.setdefault("state", {})
        state.update(session=session, csrf=self.sessions.csrf(session), body=body)
        state.update(person=person or None, signed_in=person is not None)
        if self.sign_in is not None and person is None and not scope["path"].startswith(_OPEN):
            await self._ask_for_token(scope, headers)(scope, receive, send)
            return
        cookie = self.sessions.set_cookie(session) if fresh and _is_page(scope) else None
        await self.app(scope, _replayed(body, receive), _with_cookie(send, cookie))

    def _check_host(self, scope: Scope, headers: Headers) -> None:
        """Refuse the name of another site, whose pages a name server leads here (DNS rebinding).
        The address at which the connection arrived is this machine's own, whichever it is."""
        hosts = headers.getlist("host")
        if len(hosts) == 1 and hosts[0].lower() in {*self.hosts, _arrived_at(scope)}:
            return
        name = hosts[0][:100] if len(hosts) == 1 else "of none or several names"
        raise PageError(
            421,
            f"The host {name!r} is not served here: open an address that was printed at the start, "
            "or start with --allow-host NAME for another name of this machine or of a proxy.",
        )

    async def _sign_in_by_address(
        self, sign_in: SignIn, scope: Scope, headers: Headers, token: str
    ) -> Response:
        """Answer an address that holds a token: with a cookie, and the address without it."""
        person = await sign_in.person(token, client_of(scope))
        if person is None:
            raise PageError(403, "The token in this address is not known here: open /login.")
        fields = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        query = urlencode([(name, value) for name, value in fields if name != "token"])
        path = "/" + scope["raw_path"].decode("latin-1").lstrip("/")
        address = path + (f"?{query}" if query else "")
        cookie = {"Set-Cookie": sign_in.cookie_for(person, headers)}
        if headers.get("sec-fetch-site") != "cross-site":
            return RedirectResponse(address, 303, cookie)
        # A strict cookie is not sent when a page of another site, such as a mail, leads here.
        leads = f'<meta http-equiv="refresh" content="0;url={escape(address)}">'
        return HTMLResponse(f"<!doctype html>{leads}<title>trajudge</title>", headers=cookie)

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
        raise PageError(
            401,
            "Sign in first: open the address with the token that was printed, or send the header  "
            "Authorization: Bearer TOKEN",
        )


def _arrived_at(scope: Scope) -> str | None:
    host, port = scope.get("server") or ("", None)
    return f"{bracketed(host)}:{port}" if port else None


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
