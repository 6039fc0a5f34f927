"""A rewarder that is watched: canaries among its rewards, audits, and an end when they say so."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from hashlib import sha256

import numpy as np

from trajudge.eval.store.inputs import open_spec
from trajudge.judges.model import Judgment, Status
from trajudge.rewards.reward import Reward
from trajudge.rewards.settings import WatchConfig
from trajudge.rewards.watch.journal import WatchJournal
from trajudge.rewards.watch.monitor import RewardMonitor
from trajudge.rewards.watch.probes import PROBES
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import Trajectory
from trajudge.util.errors import UserError, naming

log = logging.getLogger(__name__)

_PROBED = 0.5  # of the canaries that the judge rejected
AskAgain = Callable[[Trajectory], Awaitable[Judgment]]


def run_name(run: Trajectory) -> str:
    """Name a run for its audit by its key and a hash of its content: completions of one task often
    share the key, and would all be drawn, or none of them."""
    # It escapes half characters, too.
    content = json.dumps(run.model_dump(), default=_as_text)
    return f"{run.key} {sha256(content.encode()).hexdigest()[:12]}"


def _as_text(value: object) -> str:
    """Write what JSON has no form for: a path as it stands, a picture that came inline by its
    hash."""
    return sha256(value).hexdigest() if isinstance(value, bytes) else str(value)


class RewardWatch:
    """Takes down every reward, asks a canary after every ``every``-th, and keeps the journal."""

    def __init__(self, config: WatchConfig, version: str, ask_again: AskAgain) -> None:
        """Read the canaries and what earlier processes saw. Raises UserError."""
        self.monitor = RewardMonitor(config)
        self._journal = WatchJournal(config.journal, version)
        self._journal.replay(self.monitor)
        self._canaries = _canaries(config)
        self._ask_again = ask_again
        self._given = self._next = 0
        self._rng = np.random.default_rng([config.seed, 1])
        self._said = self.monitor.state
        self._at_work: set[asyncio.Task[None]] = set()

    def add(self, name: str, run: Trajectory, reward: Reward) -> None:
        """Take down a reward, and ask the next canary where it is time."""
        for held, value in self.monitor.add_run(run, reward).items():
            self._journal.add("shape", held, value)
        drawn = self.monitor.add_reward(name, reward)
        if drawn is not None:
            self._journal.add("drawn", *drawn)
        self._given += 1
        if self._canaries and self._given % self.monitor.config.every == 0:
            task = asyncio.create_task(self._ask_canary())
            self._at_work.add(task)
            task.add_done_callback(self._at_work.discard)
        self._say()

    def _say(self) -> None:
        """Log a state that is new."""
        if (state := self.monitor.state) is not self._said:
            self._said = state
            reason = self.monitor.reason or "nothing is odd any more"
            log.warning("rewards: %s: %s", state.name.lower(), reason)

    def audit(self, name: str, success: bool) -> bool:
        """Hold a reward to the truth; False for one that is not waiting for it."""
        known = self.monitor.add_audit(name, success)
        if known:
            self._journal.add("audit", name, success)
            self._say()
        return known

    async def _ask_canary(self) -> None:
        canary = self._canaries[self._next % len(self._canaries)]
        self._next += 1
        name = str(canary.key)
        if not await self._take_down(canary):
            return
        # Asked twice at once: what later verdicts are held to is that of the judge as it is now.
        if not self.monitor.is_held(name):
            await self._take_down(canary)
        wanted = self.monitor.config.probes and self.monitor.rejects(name)
        if wanted and self._rng.random() < _PROBED:
            await self._ask_probe(canary)
        self._say()

    async def _take_down(self, canary: Trajectory) -> bool:
        """Ask a canary; False where the judge gives no verdict."""
        verdict = await self._verdict(canary)
        if verdict is not None:
            self.monitor.add_canary(str(canary.key), verdict)
            self._journal.add("canary", str(canary.key), verdict)
        return verdict is not None

    async def _ask_probe(self, canary: Trajectory) -> None:
        kind = [*PROBES][self._rng.integers(len(PROBES))]
        accepted = await self._verdict(PROBES[kind](canary))
        if accepted is not None:
            self.monitor.add_probe(accepted)
            self._journal.add("probe", f"{kind}: {canary.key}", accepted)

    async def _verdict(self, run: Trajectory) -> bool | None:
        """Return the judge's verdict past the cache, None where it has none."""
        try:
            judgment = await self._ask_again(run)
        except UserError:  # of what rewards themselves will say
            return None
        return judgment.success if judgment.status is Status.OK else None

    async def settled(self) -> None:
        """Wait for the canaries that are being asked."""
        await asyncio.gather(*self._at_work)

    async def aclose(self) -> None:
        """End the canaries that are asked."""
        for task in list(self._at_work):
            task.cancel()
        await asyncio.gather(*self._at_work, return_exceptions=True)


def _canaries(config: WatchConfig) -> list[Trajectory]:
    """Read the canaries, in an order of their own."""
    if config.canaries is None:
        return []
    with naming("--canaries"):
        loaded = list(open_source(open_spec(config.canaries)))
    read = [one for one in loaded if isinstance(one, Trajectory)]
    if not read:
        raise UserError(f"--canaries {config.canaries}: there is no trajectory that can be read")
    rng = np.random.default_rng(config.seed)
    return [read[place] for place in rng.permutation(len(read))]
