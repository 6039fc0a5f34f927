"""What verification reads of a run that has ended, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from trajudge.environments.model.spec import Bound, Scenario
from trajudge.environments.model.state import AppState, Change, Dump, difference
from trajudge.environments.verify.labels import ExecutedAction
from trajudge.environments.verify.truth import Code


@dataclass(frozen=True)
class RunEvidence:
    """One ended run. ``before`` and ``after`` are the state's rows then and the state now,
    ``code(table, key)`` gives a row's operation code as it is now; ``answer`` is the last message,
    ``actions`` the trace, ``shortest`` the length of the shortest way there is, counted as
    ``actions`` are, 0 where it is not known.
    """

    scenario: Scenario
    bound: Bound
    before: Dump
    after: AppState
    code: Code
    goal: str = ""
    answer: str | None = None
    actions: Sequence[ExecutedAction] = ()
    shortest: int = 0

    @cached_property
    def changes(self) -> list[Change]:
        """What the run changed; read once, so ask when it has ended."""
        return difference(self.before, self.after.dump())
