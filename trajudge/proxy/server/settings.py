"""What a proxy is told when it starts."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from re import Pattern
from typing import Literal, NamedTuple

from trajudge.proxy.plans.plan import FaultPlan
from trajudge.proxy.server.model_api import ModelApi
from trajudge.proxy.server.sites import Sites
from trajudge.util.errors import UserError

Backend = Literal["embedded", "mitm"]
"""``embedded``: plain HTTP, in this process alone. ``mitm``: HTTPS as well, mitmproxy before it."""


class Authority(NamedTuple):
    """Who signs the certificates that agents see: the certificate's file, and the hash of the
    public key, by which Chromium can be told to trust it (base64 of SHA-256)."""

    certificate: Path
    spki: str


@dataclass(frozen=True, kw_only=True)
class ProxySettings:
    """``out`` None keeps no files. ``boundary`` matches ``METHOD URL`` of a page load that begins a
    task; its first group, if it has one, names the task. ``horizon`` is how many page loads a task
    takes, for ``random(n)``. ``cdp`` is the debugging port of the agent's browser. ``nonce`` is
    what the health check answers with: a proxy of another run answers with another."""

    plan: FaultPlan
    sites: Sites
    seed: int = 0
    task: str = "task"
    horizon: int | None = None
    out: Path | None = None
    backend: Backend = "embedded"
    port: int = 0
    cdp: int | None = None
    apis: tuple[ModelApi, ...] = ()
    boundary: Pattern[str] | None = None
    nonce: str = field(default_factory=lambda: secrets.token_hex(16))
    token: str = field(default_factory=lambda: secrets.token_hex(16))


def boundary(text: str) -> Pattern[str]:
    """Compile a task's signature. Raises UserError."""
    try:
        return re.compile(text)
    except re.error as error:
        raise UserError(
            f"--task-signature {text!r:.80} is no regular expression ({error}): write for example "
            r"'^GET \S+/start\?task=(\w+)'"
        ) from error
