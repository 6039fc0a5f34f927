"""What is watched of a judge's rewards: did the judge move, did the policy leave it behind, does it
fail too often.

Three sequential tests share the error level. Canaries: the judge's verdicts on frozen trajectories,
asked again, differ from those at first more often than by chance. Audits: of rewards drawn at
random, the mean lies above the share of true successes by more than the gap. Failures: more
rewards than may have none because the judge failed. Two signs ask for more audits and stop nothing:
doctored failures that the judge accepts, and a change in the form of accepted runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from hashlib import sha256
from typing import NamedTuple

from trajudge.rewards.reward import Reward
from trajudge.rewards.settings import WatchConfig
from trajudge.rewards.watch.bets import RunningBet
from trajudge.rewards.watch.shape import ShapeWatch
from trajudge.trajectories.model import Trajectory

_TESTS = 3
_WATCH = 10.0  # times less evidence than stops
_AUDITS = 10  # times more of them while something is to be watched
_ACCEPTED = 0.5  # belief in success
_REMEMBERED = 100_000  # rewards that were drawn to be audited


class WatchState(IntEnum):
    """``WATCH``: a tenth of the evidence that stops, or a sign that stops nothing: more rewards are
    audited; ``STOP``: rewards are not given any more."""

    OK = 0
    WATCH = 1
    STOP = 2


class Audited(NamedTuple):
    """A reward that was drawn to be audited: its id, and the value between 0 and 1 that is held to
    the truth."""

    name: str
    value: float


class RewardMonitor:
    """Takes down rewards, canaries and audits, and tells the state."""

    def __init__(self, config: WatchConfig) -> None:
        self.config = config
        self.moved = RunningBet(config.noise)
        self.ahead = RunningBet((1 + config.gap) / 2)
        self.failing = RunningBet(config.failures)
        self.fooled = RunningBet(config.fooled)
        self.shape = ShapeWatch(config)
        self.flips = self.believed = 0
        self._first: dict[str, bool] = {}
        self._held: set[str] = set()
        self._wanted: dict[str, float] = {}

    @property
    def state(self) -> WatchState:
        """The state now."""
        largest, stop = self._largest, _TESTS / self.config.alpha
        if largest >= stop:
            return WatchState.STOP
        is_odd = largest >= stop / _WATCH or next(self._signs(), "")
        return WatchState.WATCH if is_odd else WatchState.OK

    def _signs(self) -> Iterator[str]:
        """Yield what asks for audits, a clause each."""
        if self.fooled.largest >= 1 / self.config.alpha:
            yield f"the judge accepted {self.believed} of {self.fooled.seen} doctored failures"
        yield from self.shape.alarms()

    @property
    def stopped(self) -> bool:
        """Whether rewards abstain as "drift"."""
        return self._largest >= _TESTS / self.config.alpha and not self.config.keep_going

    @property
    def _largest(self) -> float:
        """Return the most evidence that a test has."""
        return max(self.moved.largest, self.ahead.largest, self.failing.largest)

    @property
    def reason(self) -> str:
        """What the state rests on, in a sentence; "" while it is ok."""
        state, signs = self.state, [*self._signs()]
        tests = self._tests() if state is WatchState.STOP or not signs else ""
        return "" if state is WatchState.OK else "; ".join(filter(None, (tests, *signs)))

    def _tests(self) -> str:
        """Say which test has the most evidence."""
        named = (
            (self.moved, f"{self.flips} of {self.moved.seen} canaries got another verdict"),
            (self.ahead, f"the mean of {self.ahead.seen} audited rewards is above the truth"),
            (self.failing, f"the judge failed too often among {self.failing.seen} rewards"),
        )
        bet, text = max(named, key=lambda one: one[0].largest)
        return f"{text} (e-value {bet.largest:.3g}; {_TESTS / self.config.alpha:g} stops)"

    def add_run(self, run: Trajectory, reward: Reward) -> Mapping[str, float]:
        """Take down the form of a run; return what later ones are held to once that is known."""
        believed = _believed(reward)
        accepted = None if believed is None else believed >= _ACCEPTED
        return self.shape.add(run, reward, accepted=accepted)

    def add_reward(self, name: str, reward: Reward) -> Audited | None:
        """Take down a reward that was given; return it where it was drawn, by its id, to be
        audited."""
        if reward.abstained in ("", "failed", "uncertain"):
            self.failing.add(float(reward.abstained == "failed"))
        value = _believed(reward)
        if value is None or name in self._wanted or not self._is_drawn(name):
            return None
        return self.draw(Audited(name, value))

    def draw(self, drawn: Audited) -> Audited:
        """Let a reward wait for its audit; the oldest of too many is given up."""
        self._wanted[drawn.name] = drawn.value
        if len(self._wanted) > _REMEMBERED:
            del self._wanted[next(iter(self._wanted))]
        return drawn

    def add_canary(self, name: str, verdict: bool | None) -> None:
        """Take down the verdict on a canary; None is no verdict. Later ones are held to the first
        that comes twice in a row: a single one that the judge gives seldom would make every later
        one a flip, and stop a judge that did not move."""
        if verdict is None:
            return
        if name not in self._held:
            if self._first.get(name) is verdict:
                self._held.add(name)
            self._first[name] = verdict
            return
        flipped = verdict is not self._first[name]
        self.flips += flipped
        self.moved.add(float(flipped))

    def is_held(self, name: str) -> bool:
        """Tell whether it is known which verdict later ones on a canary are held to."""
        return name in self._held

    def rejects(self, name: str) -> bool:
        """Tell whether the judge rejected a canary when it was asked first."""
        return self._first.get(name) is False

    def add_probe(self, accepted: bool) -> None:
        """Take down the verdict on a doctored failure."""
        self.believed += accepted
        self.fooled.add(float(accepted))

    def add_audit(self, name: str, success: bool) -> bool:
        """Hold a drawn reward to the truth; False for one that was not drawn, or audited before."""
        value = self._wanted.pop(name, None)
        if value is None:
            return False
        self.ahead.add((value - float(success) + 1) / 2)
        return True

    def to_audit(self) -> Iterator[Audited]:
        """Yield the rewards that wait for an audit, the oldest first."""
        for name, value in self._wanted.items():
            yield Audited(name, value)

    def gauges(self) -> Mapping[str, float]:
        """Return what an operator watches, by the names of the metrics."""
        seen = self.moved.seen
        return {
            "drift_state": float(self.state),
            "canaries_asked": float(seen),
            "canary_agreement": 1.0 if not seen else 1 - self.flips / seen,
            "probes_asked": float(self.fooled.seen),
            "probes_accepted": float(self.believed),
            "rewards_audited": float(self.ahead.seen),
            "rewards_to_audit": float(len(self._wanted)),
        }

    def _is_drawn(self, name: str) -> bool:
        digest = sha256(f"{self.config.seed}/{name}".encode("utf-8", "surrogatepass")).digest()
        share = self.config.audit_share * (_AUDITS if self.state is WatchState.WATCH else 1)
        return int.from_bytes(digest[:8], "big") < share * 2**64


def _believed(reward: Reward) -> float | None:
    """Return how sure the reward is of success, between 0 and 1; None where it says nothing."""
    if reward.value is None:
        return None
    if reward.probability is not None:
        return reward.probability
    return None if reward.verdict is None else float(reward.verdict)
