"""The browser of the environments: Chromium through Playwright and the DevTools protocol.

``browser`` starts it and lends its tabs; ``tab`` holds a tab to one origin and knows when a page
is there; ``observation`` reads the page; ``actions`` does what an agent asks for; ``network`` keeps
the trace; ``session`` is what a recorder uses: ``observe``, ``act``, ``har``.
"""

from trajudge.environments.chromium.axtree import Element
from trajudge.environments.chromium.browser import Browser, find_chromium, launch
from trajudge.environments.chromium.observation import MarkMode
from trajudge.environments.chromium.session import (
    NOW,
    VIEWPORT,
    AgentObservation,
    Session,
    open_session,
)

__all__ = [
    "NOW",
    "VIEWPORT",
    "AgentObservation",
    "Browser",
    "Element",
    "MarkMode",
    "Session",
    "find_chromium",
    "launch",
    "open_session",
]
