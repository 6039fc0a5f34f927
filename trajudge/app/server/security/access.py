"""Signing in with a token that was printed at the start."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from trajudge.app.server.pages import form_fields, page
from trajudge.app.server.security.guard import People
from trajudge.app.server.security.limits import RequestLimit
from trajudge.app.server.security.sessions import Sessions
from trajudge.app.server.threads import in_thread

VISITOR = "visitor"
_TRIES, _TRY_SECONDS = 10, 60.0


def new_token() -> tuple[str, People]:
    """Make a token for everybody, and what knows it again by its scrypt hash."""
    token, salt = secrets.token_urlsafe(24), secrets.token_bytes(16)
    kept = token_hash(token, salt)

    def people(text: str) -> str | None:
        return VISITOR if hmac.compare_digest(token_hash(text, salt), kept) else None

    return token, people


def token_hash(token: str, salt: bytes) -> bytes:
    """Return the scrypt hash by which a token is kept."""
    return hashlib.scrypt(token.encode("utf-8", "replace"), salt=salt, n=2**14, r=8, p=1)


def access_routes(people: People | None, sessions: Sessions) -> list[Route]:
    """Route signing in and out; without ``people`` there is neither."""
    if people is None:
        return []
    limit = RequestLimit(_TRIES, _TRY_SECONDS)

    async def sign_in(request: Request) -> Response:
        if request.method != "POST":
            return page(request, "login.html", problem="")
        limit.count("")
        token = (await form_fields(request)).get("token", "").strip()
        person = await in_thread(people, token)
        if person is None:
            return page(request, "login.html", 403, problem="This token is not known here.")
        secure = request.headers.get("origin", "").startswith("https://")
        response = RedirectResponse("/", 303)
        cookie = sessions.set_cookie(sessions.sign_in(person), secure=secure)
        response.headers["Set-Cookie"] = cookie
        return response

    async def sign_out(request: Request) -> Response:
        sessions.sign_out(request.state.session)
        return RedirectResponse("/login", 303)

    return [
        Route("/login", sign_in, methods=["GET", "POST"]),
        Route("/logout", sign_out, methods=["POST"]),
    ]
