"""Who may ask for what: a guard in front of every page, sessions, signing in, limits.

The guard refuses before any page sees it: other hosts and origins, forms of other sites, bodies
that are too large, whoever is not signed in. A session is a cookie that only this process can have
made, and the token that its forms carry.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from http.cookies import CookieError, SimpleCookie
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trajudge.app.settings import ServerConfig
from trajudge.app.web import (
    PageError,
    form_fields,
    in_thread,
    page,
    read_form,
)
from trajudge.util.errors import UserError
from trajudge.util.machine import is_loopback, own_addresses, own_names

POLICY = (
    "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class SecurityHeaders:
    """Puts the headers on every response; one that says nothing of caching is not kept."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, send_guarded)


_MOST_SESSIONS = 10_000


class RequestLimit:
    """At most ``most`` requests of one sender in ``seconds``."""

    def __init__(self, most: int, seconds: float) -> None:
        self._most, self._seconds = most, seconds
        self._counts: dict[str, tuple[float, int]] = {}

    def forget(self, sender: str) -> None:
        """Count the requests of a sender anew."""
        self._counts.pop(sender, None)

    def count(self, sender: str) -> None:
        """Count a request. Raises PageError 429 for one too many."""
        now = time.monotonic()
        start, before = self._counts.get(sender, (now, 0))
        if now - start >= self._seconds:
            start, before = now, 0
        if len(self._counts) >= _MOST_SESSIONS:
            self._counts = {
                other: count
                for other, count in self._counts.items()
                if now - count[0] < self._seconds
            }
        self._counts[sender] = start, before + 1
        if before >= self._most:
            raise PageError(
                429,
                f"More than {self._most:,} requests in {self._seconds:g} seconds: wait a moment.",
            )


People = Callable[[str], str | None]
"""From a token to the name of the person who has it ("": everybody's), None for no token."""
WRONG_TOKENS, WRONG_TOKEN_SECONDS = 10, 60.0
"""How many wrong tokens a client may send in so many seconds."""
_SHOWN = 43  # characters of token_urlsafe(32)


class Sessions:
    """Makes and checks sessions. Cookies are shared between the ports of a host: ``cookie`` names
    this application's own."""

    def __init__(self, cookie: str) -> None:
        self.cookie = cookie
        self._secret = secrets.token_bytes(32)
        self._people: dict[str, str] = {}

    def begin(self) -> str:
        """Make a new session's value."""
        number = secrets.token_urlsafe(32)
        return f"{number}.{self._mac('session', number)}"

    def read(self, header: str) -> str | None:
        """Return the session that a ``Cookie`` header names; None for one that was not made
        here."""
        try:
            morsel = SimpleCookie(header).get(self.cookie)
        except CookieError:
            return None
        value = morsel.value if morsel else ""
        number, _, mac = value.partition(".")
        genuine = len(number) == _SHOWN and hmac.compare_digest(
            mac.encode(), self._mac("session", number).encode()
        )
        return value if genuine else None

    def csrf(self, session: str) -> str:
        """Return the token that a session's forms carry."""
        return self._mac("form", session)

    def is_csrf(self, session: str, token: str) -> bool:
        """Tell whether a form's token is that of the session."""
        return hmac.compare_digest(self.csrf(session).encode(), token.encode("utf-8", "replace"))

    def sign_in(self, person: str) -> str:
        """Begin a session of a person's, with another value than before."""
        session = self.begin()
        self._people[session] = person
        return session

    def sign_out(self, session: str) -> None:
        """End what a session may see."""
        self._people.pop(session, None)

    def person(self, session: str) -> str | None:
        """Return who is signed in, None for nobody."""
        return self._people.get(session)

    def set_cookie(self, session: str, *, secure: bool = False) -> str:
        """Return the ``Set-Cookie`` header of a session."""
        return f"{self.cookie}={session}; Path=/; HttpOnly; SameSite=Strict" + (
            "; Secure" if secure else ""
        )

    def _mac(self, purpose: str, text: str) -> str:
        return hmac.new(self._secret, f"{purpose}:{text}".encode(), sha256).hexdigest()


class SignIn(NamedTuple):
    """How whoever comes becomes a session's person: by a token, of which a client may send a few
    that are wrong. Clients are told apart by their address."""

    sessions: Sessions
    people: People
    limit: RequestLimit

    async def person(self, token: str, client: str) -> str | None:
        """Return whose token this is, None for nobody's. Raises PageError 429 for a client that
        has sent too many wrong ones."""
        self.limit.count(client)
        person = await in_thread(self.people, token)
        if person is not None:
            self.limit.forget(client)
        return person

    def cookie_for(self, person: str, headers: Mapping[str, str]) -> str:
        """Begin a session of the person's; return its ``Set-Cookie`` header."""
        secure = headers.get("origin", "").startswith("https://")
        return self.sessions.set_cookie(self.sessions.sign_in(person), secure=secure)


def client_of(scope: Mapping[str, Any]) -> str:
    """Return the address that a request came from."""
    return str((scope.get("client") or ("",))[0])


def new_token() -> tuple[str, People]:
    """Make a token for everybody, and what recognises it."""
    token = secrets.token_urlsafe(24)

    def people(text: str) -> str | None:
        same = hmac.compare_digest(text.encode("utf-8", "replace"), token.encode())
        return "" if same else None

    return token, people


MAX_BODY = 1_000_000
"""Bytes of a request's body."""
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


def access_routes(sign_in: SignIn | None) -> list[Route]:
    """Route signing in and out; without ``sign_in`` there is neither."""
    if sign_in is None:
        return []

    async def show(request: Request) -> Response:
        if request.method != "POST":
            return page(request, "login.html", problem="")
        token = (await form_fields(request)).get("token", "").strip()
        person = await sign_in.person(token, client_of(request.scope))
        if person is None:
            return page(request, "login.html", 403, problem="This token is not known here.")
        response = RedirectResponse("/", 303)
        response.headers["Set-Cookie"] = sign_in.cookie_for(person, request.headers)
        return response

    async def sign_out(request: Request) -> Response:
        sign_in.sessions.sign_out(request.state.session)
        return RedirectResponse("/login", 303)

    return [
        Route("/login", show, methods=["GET", "POST"]),
        Route("/logout", sign_out, methods=["POST"]),
    ]


LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


def check_server(config: ServerConfig) -> None:
    """Refuse an application that others would reach without a token. Raises UserError."""
    if config.no_token and not is_loopback(config.host):
        raise UserError(
            f"--host {config.host}: others could read and change what is served: leave --no-token "
            "out, or listen on this machine alone and let a proxy sign people in"
        )


def own_hosts(config: ServerConfig) -> Sequence[str]:
    """List the hosts by which others reach the application, as addresses of pages hold them; none
    where it listens on loopback."""
    if is_loopback(config.host):
        return ()
    hosts = [config.host, *own_names()]
    if _is_any(config.host):
        family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
        hosts = [*own_names(), *own_addresses(family)]
    return list(dict.fromkeys(bracketed(host) for host in hosts))


def allowed_hosts(config: ServerConfig, port: int) -> frozenset[str]:
    """Return the values of a request's ``Host`` that are answered: loopback, the names and
    addresses of this machine where others reach it, and the names that the user allows, with the
    port or, as a proxy sends them, without."""
    names = [*LOOPBACK_NAMES, bracketed(config.host), *own_hosts(config)]
    hosts = {f"{name}:{port}" for name in names}
    if port == 80:
        hosts.update(names)
    for name in config.allow_host:
        hosts |= {name, f"{name}:{port}"}
    return frozenset(name.lower() for name in hosts)


def bracketed(host: str) -> str:
    """Return a host as addresses of pages hold it: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


def _is_any(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
