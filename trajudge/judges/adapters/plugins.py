"""Adapters of the users': from a package (entry point group ``trajudge.adapters``) or a file.

Either gives a module with ``adapter(model, *, base_url, timeout, max_connections, dry_run)``, which
makes a ``judges.adapters.base.Adapter``. ``timeout`` is in seconds for one attempt; a ``dry_run``
sends nothing, and needs no key. To the endpoint is added a hash of the module's content: replies of
another version of the file are never taken for its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import wraps
from hashlib import sha256
from pathlib import Path
from types import ModuleType

from trajudge.judges.adapters.base import Adapter, AdapterResponse
from trajudge.judges.model import Reply, Request
from trajudge.trajectories.plugins import Door, mistakes_said, refuse_async
from trajudge.trajectories.util.errors import UserError

Send = Callable[[Request], Awaitable[AdapterResponse]]
DOOR = Door(group="trajudge.adapters", option="--adapter")


def adapter_factory(name: str) -> Callable[..., Adapter]:
    """Return what makes a user's adapter. Raises UserError if there is none of that name."""
    module = DOOR.module(name)
    make = getattr(module, "adapter", None)
    if not callable(make):
        raise UserError(
            f"--adapter {name}: defines no adapter: write  def adapter(model, *, base_url, "
            "timeout, max_connections, dry_run)"
        )
    refuse_async(f"--adapter {name}", make, "def adapter(model, *, base_url, ...)")

    def checked(model: str, **settings: object) -> Adapter:
        with mistakes_said(f"--adapter {name}: adapter() failed", make, "correct it"):
            made = make(model, **settings)
        if isinstance(made, type):
            raise UserError(
                f"--adapter {name}: adapter() gave the class {made.__name__}: end it with  return "
                f"{made.__name__}(...)"
            )
        for part in ("send", "close"):
            if not inspect.iscoroutinefunction(getattr(made, part, None)):
                raise UserError(f"--adapter {name}: has no  async def {part}: see Adapter")
        for part in ("name", "endpoint"):
            if not isinstance(getattr(made, part, None), str):
                raise UserError(f"--adapter {name}: has no {part}, a str: see Adapter")
        made.endpoint = f"{made.endpoint}#{_digest(module)}"
        made.send = _explained(name, made.send)
        adapter: Adapter = made
        return adapter

    return checked


def _digest(module: ModuleType | None) -> str:
    """Return a hash of the file in which a module stands."""
    known: str | None = getattr(module, "__digest__", None)
    file = getattr(module, "__file__", None)
    if known is None and file:
        known = sha256(Path(file).read_bytes()).hexdigest()
    return (known or "")[:16]


def _explained(name: str, send: Callable[[Request], Awaitable[object]]) -> Send:
    """Return ``send`` as it ends a run in one sentence where the user's code has a mistake: an
    exception that is none of ``judges.adapters.errors``, or something else than a response."""
    mend = "raise an error of judges/adapters/errors.py; what was judged before is kept"
    logged: set[str] = set()  # of calls that are under way at once every one fails

    @wraps(send)
    async def guarded(request: Request) -> AdapterResponse:
        with mistakes_said(f"--adapter {name}: send failed", send, mend, logged):
            sent = await send(request)
        if not isinstance(sent, AdapterResponse) or not isinstance(sent.reply, Reply):
            raise UserError(
                f"--adapter {name}: send gave {type(sent).__name__} where a response belongs: end "
                "it with  return AdapterResponse(Reply(text=..., model=...))"
            )
        return sent

    return guarded
