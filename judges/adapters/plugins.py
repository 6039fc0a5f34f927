"""Adapters of the users': from a package (entry point group ``trajudge.adapters``) or a file.

Either gives a module with ``adapter(model, *, base_url, timeout, max_connections, dry_run)``, which
makes a ``judges.adapters.base.Adapter``. ``timeout`` is in seconds for one attempt; a ``dry_run``
sends nothing, and needs no key.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

from trajudge.judges.adapters.base import Adapter
from trajudge.trajectories.plugins import Door
from trajudge.trajectories.util.errors import UserError

DOOR = Door(group="trajudge.adapters", option="--adapter")


def adapter_factory(name: str) -> Callable[..., Adapter]:
    """Return what makes a user's adapter. Raises UserError if there is none of that name."""
    make = getattr(DOOR.module(name), "adapter", None)
    if not callable(make):
        raise UserError(
            f"--adapter {name}: defines no adapter: write  def adapter(model, *, base_url, "
            "timeout, max_connections, dry_run)"
        )

    def checked(model: str, **settings: object) -> Adapter:
        made = make(model, **settings)
        for part in ("send", "close"):
            if not inspect.iscoroutinefunction(getattr(made, part, None)):
                raise UserError(f"--adapter {name}: has no  async def {part}: see Adapter")
        for part in ("name", "endpoint"):
            if not isinstance(getattr(made, part, None), str):
                raise UserError(f"--adapter {name}: has no {part}, a str: see Adapter")
        adapter: Adapter = made
        return adapter

    return checked
