"""Labels of a recorded run by today's reader of messages, without playing it again.

The facts of a run hold the rows that it changed, as they were and are, and the key of its codes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trajudge.environments.model.config import Config
from trajudge.environments.model.state import AppState
from trajudge.environments.serving.run import open_run
from trajudge.environments.verify import ExecutedAction, VerificationResult, verify
from trajudge.util.errors import UserError


def verified_again(
    facts: Mapping[str, Any], goal: str, message: str | None, actions: Sequence[str]
) -> VerificationResult:
    """Verify a run from its facts. Of its labels, success and side effect hold; the trace, which
    the others need, is not in the facts. Raises UserError for a recording without keys."""
    if "code_key" not in facts:
        key = facts["key"]
        raise UserError(
            f"{key['task_id']} by {key['agent']}: the recording has no key of its operation codes, "
            "so it cannot be labelled again: record it again"
        )
    run = open_run(Config.model_validate(facts["config"]), b"", goal=goal)
    run.key = bytes.fromhex(facts["code_key"])
    try:
        for change in facts["changes"]:
            _done(run.state, change)
        executed = [ExecutedAction("", action, str(at), "") for at, action in enumerate(actions)]
        return verify(run.evidence(message, executed))
    finally:
        run.state.close()


def _done(state: AppState, change: Mapping[str, Any]) -> None:
    if change["kind"] == "added":
        state.add(change["table"], **change["after"])
    elif change["kind"] == "removed":
        state.remove(change["table"], change["key"])
    else:
        state.change(change["table"], change["key"], **change["after"])
