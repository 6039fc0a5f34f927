"""How many pages a task takes: those that the oracle loads, its detours and errors left out."""

from __future__ import annotations

from functools import lru_cache

from trajudge.environments.agents.script import ORACLE, STEP_LIMIT
from trajudge.environments.agents.scripted import Scripted
from trajudge.environments.chromium.action_syntax import spoken
from trajudge.environments.model.config import Config
from trajudge.environments.serving.run import open_run
from trajudge.environments.text import TextSession


@lru_cache(maxsize=4096)
def horizon_of(config: Config) -> int:
    """Return the number of pages that the oracle loads, from a run without a browser."""
    run = open_run(config, b"horizon", "horizon")
    try:
        page = TextSession(run)
        agent = Scripted(run, ORACLE, 0, 0)
        error = None
        for _ in range(STEP_LIMIT):
            text, _ = agent.act(page.observe(error))
            if spoken(text) is not None:
                break
            error = page.act(text)
        return run.documents
    finally:
        run.state.close()
