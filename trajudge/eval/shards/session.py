"""One shard, judged by the session of an ordinary run in a folder of the worker's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trajudge.eval.data.folder_lock import locked_folder
from trajudge.eval.data.run_log import run_log
from trajudge.eval.runs.grid import PlannedRun
from trajudge.eval.runs.session import RunSession
from trajudge.eval.runs.workers import StopSignal
from trajudge.eval.shards.replies import ShardReplies

if TYPE_CHECKING:
    from trajudge.eval.data.index.judgments import RunJudgments
    from trajudge.eval.runs.jobs import JudgmentJob
    from trajudge.judges.calls.handle import ModelHandle
    from trajudge.judges.engine import EngineLookup, Engines, Payments
    from trajudge.judges.model import Judgment


class ShardSession(RunSession):
    """Judges as ``RunSession`` does, by the ``engines`` of its worker (None: it asks no model),
    which stay open. What is answered goes to ``replies`` as well."""

    def __init__(
        self,
        planned: PlannedRun,
        stop: StopSignal,
        replies: ShardReplies,
        engines: Engines | None,
    ) -> None:
        super().__init__(planned, (), stop)
        self._replies = replies
        self._engines = engines
        self._answered: set[str] = set()

    async def judge(self) -> RunJudgments:
        """Judge the shard and write its files. Raises UserError as ``execute``."""
        with locked_folder(self.plan.folder), run_log(self.plan.folder):
            return (await self._judged())[0]

    def _open_engines(self, model: ModelHandle, spent: float, payments: Payments) -> Engines:
        engines = self._engines
        if engines is None:
            return super()._open_engines(model, spent, payments)
        known = self._replies.known()
        self._answered = {row[0].hex() for row in known}
        engines.cache.take_in(known)
        engines.cache.copy_to = self._replies.keep
        return engines

    async def _judge_one(
        self, job: JudgmentJob, engines: EngineLookup | None, refresh: frozenset[str]
    ) -> Judgment:
        judgment = await super()._judge_one(job, engines, refresh)
        if not self._answered:
            return judgment
        # What an earlier worker of the shard asked was paid by this run.
        calls = [
            call.model_copy(update={"cached": call.cached and call.request not in self._answered})
            for call in judgment.calls
        ]
        return judgment.model_copy(update={"calls": tuple(calls)})

    async def _close_engines(self, engines: Engines) -> None:
        engines.cache.copy_to = None
