"""Sessions: a cookie that only this process can have made, and the token that its forms carry; and
who may begin one."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Mapping
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from typing import Any, NamedTuple

from trajudge.app.server.security.limits import RequestLimit
from trajudge.app.server.threads import in_thread

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
