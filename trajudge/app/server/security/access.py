"""The pages that sign in and out."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from trajudge.app.server.pages import form_fields, page
from trajudge.app.server.security.sessions import SignIn, client_of


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
