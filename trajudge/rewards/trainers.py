"""Rewards for trainers: one function or class a trainer, which imports none of them.

``TRAINERS`` is the table: what each trainer calls, and what it gets where the judge has no value.
Those that run in the trainer's processes ask the server of ``trajudge serve`` for the trajectory
that was pushed under the id in the row's ``trajectory_id``; TRL's push it themselves, or ask a
``Rewarder`` in process.
"""

from __future__ import annotations

import asyncio
import atexit
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence, Sized
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from importlib import import_module
from inspect import isawaitable
from threading import Thread
from typing import Any, Literal, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from trajudge.judges.model import Status
from trajudge.rewards.client import (
    DEADLINE,
    AskedReward,
    RewardClient,
    RewardGroup,
    RewardUnavailable,
)
from trajudge.rewards.reward import Abstained, Reward, neutral_values, why_abstained
from trajudge.rewards.watch import ReferencePoint
from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey


class Trainer(NamedTuple):
    """A trainer: what of this module it is given, the setting that takes it, and what an abstention
    is to it."""

    name: str
    given: tuple[str, ...]
    setting: str
    abstention: str


TRAINERS = (
    Trainer(
        "TRL",
        ("trajudge_reward", "JudgedEnvironment", "combine", "stop_on_drift"),
        "`reward_funcs=`, `environment_factory=`, `callbacks=`",
        "None: left out of the mean of its group, at the advantage 0",
    ),
    Trainer(
        "verl",
        ("verl_score", "TrajudgeRewardManager", "verl_agent_reward"),
        "`reward.custom_reward_function`, `reward.reward_manager`, `AgentLoopOutput`",
        "the mean of its group, or the neutral value, marked by `abstained`; or an exception",
    ),
    Trainer(
        "OpenRLHF",
        ("openrlhf_step", "openrlhf_going_on"),
        "`AgentInstanceBase.step`",
        "the neutral value, marked by `abstained`",
    ),
    Trainer(
        "slime",
        ("slime_group_reward", "slime_reward"),
        "`--custom-rm-path`",
        "left out of the loss, at the mean of its group",
    ),
    Trainer(
        "AReaL",
        ("areal_reward",),
        "`AsyncRewardWrapper`",
        "the neutral value; its own timeout (15 seconds, worth 0) must be longer than the judge's",
    ),
    Trainer(
        "SkyRL", ("skyrl_step",), "the end of `step`", "the neutral value, named in `metadata`"
    ),
    Trainer(
        "verifiers, prime-rl",
        ("verifiers_reward",),
        "`@vf.reward`",
        "an exception: the trace is left out",
    ),
    Trainer("ART", ("art_group",), "a rollout's group", "the trajectory leaves its group"),
    Trainer(
        "rLLM",
        ("RllmEvaluator",),
        "`evaluator=`",
        "an exception; as a data set's verifier module it would be 0",
    ),
)


# Asking the reward server from a trainer's process.

_COLUMN = "trajectory_id"


def pushed_name(row: str, *places: Mapping[str, Any]) -> str:
    """Return the id under which a trainer's ``row`` says that its trajectory is pushed, from the
    first of its ``places`` that holds one. Raises RewardUnavailable."""
    for place in places:
        if place.get(_COLUMN) is not None:
            return str(place[_COLUMN])
    raise RewardUnavailable(
        f"{row} without {_COLUMN}: give it the id under which its trajectory is pushed"
    )


async def _ask(name: str, deadline: float = DEADLINE) -> AskedReward:
    return await RewardClient(deadline=deadline).ask(name)


def _value(reward: Reward) -> float:
    """Return a reward's value. Raises Abstained where the judge has none."""
    if reward.value is None:
        raise Abstained(why_abstained(reward))
    return reward.value


# OpenRLHF makes a tensor of every reward and has no mask: an abstention is the neutral value, and
# marked. Where a trajectory has an id of its own in the data set's ``label``, its single-turn
# executor asks /get_reward itself.


async def openrlhf_step(
    trajectory: Trajectory, *, client: RewardClient | None = None
) -> dict[str, Any]:
    """Push what an instance of OpenRLHF's ``AgentInstanceBase`` recorded, and return what its
    ``step`` returns at the end of the episode; every other step returns ``openrlhf_going_on``.

        class AgentInstance(AgentInstanceBase):
            async def step(self, states, **kwargs):
                page = self.shop.act(states["action_text"])
                if not self.shop.is_over:
                    return openrlhf_going_on(page)
                return await openrlhf_step(self.shop.trajectory)

    An abstention is the server's neutral value. ``client`` defaults to the environment's. Raises
    Abstained where there is none, RewardUnavailable.
    """
    client = client or RewardClient()
    asked = await client.ask(await client.push(trajectory))
    return _openrlhf(asked.number(), "", asked.reward)


def openrlhf_going_on(feedback: str) -> dict[str, Any]:
    """Return what ``step`` of OpenRLHF's ``AgentInstanceBase`` returns while the episode goes on;
    ``feedback`` is what the policy reads next.

    An episode that outgrows the context has no other step: its reward is 0, marked as
    ``unfinished``, and no judge is asked.
    """
    return _openrlhf(0.0, feedback, None)


def _openrlhf(value: float, feedback: str, reward: Reward | None) -> dict[str, Any]:
    import torch  # noqa: PLC0415 - the trainer's own

    probability = None if reward is None else reward.probability
    return {
        "rewards": torch.tensor(value, dtype=torch.float64),
        "scores": value,
        "environment_feedback": feedback,
        "done": reward is not None,
        "extra_logs": {  # the same names in all samples
            "abstained": float(reward is not None and reward.value is None),
            "unfinished": float(reward is None),
            "probability": -1.0 if probability is None else probability,
            "cost": (reward and reward.cost) or 0.0,
        },
    }


# slime: a sample whose ``remove_sample`` is set has no part in the loss, but its reward stays in
# the mean and the spread of its group. An abstention therefore sets it, and gets the mean of the
# others.


async def slime_group_reward(args: Any, samples: Sequence[Any], **_: Any) -> list[float]:
    """Return the rewards of a group whose ``metadata`` name pushed trajectories, in its order.

        --custom-rm-path trajudge.rewards.trainers.slime_group_reward --group-rm

    Raises Abstained where nobody has a value and there is no neutral one, RewardUnavailable without
    a server or an id.
    """
    names = [pushed_name("a sample's metadata", one.metadata) for one in samples]
    asked = await asyncio.gather(*map(_ask, names))
    for sample, one in zip(samples, asked, strict=True):
        if one.reward.value is None:
            sample.remove_sample = True
    neutral = next((one.neutral_value for one in asked if one.neutral_value is not None), None)
    return neutral_values([one.reward for one in asked], base_rate=neutral)


async def slime_reward(args: Any, sample: Any, **_: Any) -> float:
    """Return one sample's reward (``--custom-rm-path`` without ``--group-rm``): an abstention is
    the neutral value."""
    (value,) = await slime_group_reward(args, [sample])
    return value


def areal_reward(
    prompt: str,
    completions: str,
    prompt_ids: list[int],
    completion_ids: list[int],
    *,
    trajectory_id: str,
    **_: Any,
) -> float:
    """Return to AReaL the reward of the trajectory that the row's column ``trajectory_id`` names;
    an abstention is the neutral value.

    AReaL pickles the function into other processes and takes a call that lasts 15 seconds for a
    failure worth 0. Give ``AsyncRewardWrapper(areal_reward, timeout_seconds=...)`` more than
    ``DEADLINE``, so that the judge's own deadline comes first.

    Raises Abstained where there is no neutral value, RewardUnavailable without a server.
    """
    return asyncio.run(_ask(trajectory_id)).number()


def skyrl_step(
    trajectory_id: str, observations: Sequence[dict[str, str]] = (), *, deadline: float = DEADLINE
) -> dict[str, Any]:
    """Return what SkyRL's ``BaseTextEnv.step`` returns at the end of an episode whose trajectory
    was pushed.

    SkyRL takes a number from every step and has no mask that an environment could set: an
    abstention is the neutral value, and ``metadata`` says so. Raises Abstained where
    there is none, RewardUnavailable without a server.
    """
    asked = asyncio.run(_ask(trajectory_id, deadline))
    value, reward = asked.number(), asked.reward
    probability = -1.0 if reward.probability is None else reward.probability
    return {
        "observations": list(observations),
        "reward": value,
        "done": True,
        "metadata": {"abstained": reward.abstained, "probability": probability},
        "postprocessed_action": None,
    }


async def verifiers_reward(trace: Any, *, deadline: float = DEADLINE) -> float:
    """Return to verifiers and prime-rl the reward of the trajectory that was pushed under
    ``trace.info["trajectory_id"]``.

        class Task(vf.Task):
            @vf.reward
            async def judged(self, trace) -> float:
                return await verifiers_reward(trace)

    An exception leaves the trace out of the training, which is what an abstention means. Raises
    Abstained where the judge has no value, RewardUnavailable without a server or an id.
    """
    asked = await _ask(pushed_name("a trace's info", trace.info), deadline)
    return _value(asked.reward)


async def art_group(group: Any, *, deadline: float = DEADLINE) -> Any | None:
    """Set the rewards of an ``art.TrajectoryGroup`` whose trajectories' ``metadata`` name pushed
    ones, and keep those with a value.

    None where fewer than two are left: nothing could be compared. Raises RewardUnavailable without
    a server or an id.
    """
    names = [pushed_name("a trajectory's metadata", one.metadata) for one in group.trajectories]
    asked = await asyncio.gather(*(_ask(name, deadline) for name in names))
    kept = []
    for trajectory, one in zip(group.trajectories, asked, strict=True):
        if one.reward.value is not None:
            trajectory.reward = one.reward.value
            kept.append(trajectory)
    group.trajectories = kept
    return group if len(kept) > 1 else None


_EVAL_OUTPUT = ("rllm.eval.types", "rllm.experimental.eval.types")  # now, and before 2026


class RllmEvaluator:
    """Evaluates rLLM's episodes by the trajectories that were pushed under
    ``artifacts["trajectory_id"]`` (else ``metadata``, else the task's own).

        trainer = AgentTrainer(..., evaluator=RllmEvaluator())

    An abstention is an exception. Give rLLM the evaluator itself: of a data set's verifier module
    (``[verifier].module``) it takes an exception for the reward 0. ``output`` makes the result
    (None: rLLM's ``EvalOutput``) from ``reward``, ``is_correct`` and ``metadata``.
    """

    def __init__(
        self, *, deadline: float = DEADLINE, output: Callable[..., Any] | None = None
    ) -> None:
        self.deadline = deadline
        self._output = output

    def evaluate(self, task: Any, episode: Any) -> Any:
        """Return the episode's reward.

        Raises Abstained where the judge has no value, RewardUnavailable without a server or an id.
        """
        row = task if isinstance(task, Mapping) else getattr(task, "metadata", {})
        name = pushed_name("an episode and a task", episode.artifacts, episode.metadata, row)
        # rLLM calls it in a thread: there is no loop to wait in.
        reward = asyncio.run(_ask(name, self.deadline)).reward
        value = _value(reward)
        make = self._output or _eval_output()
        told = {"probability": reward.probability, "judge": reward.judge, "version": reward.version}
        return make(reward=value, is_correct=reward.verdict is True, metadata=told)


def _eval_output() -> Callable[..., Any]:
    for home in _EVAL_OUTPUT:
        try:
            made: Callable[..., Any] = import_module(home).EvalOutput
        except ImportError:
            continue
        return made
    raise RewardUnavailable("rLLM's EvalOutput is not there: install rllm, or give output=")


# verl has no way to leave a sample out: NaN makes its whole group NaN. So an abstention is a
# neutral value (``on_abstain="neutral"``), marked as abstained, or an exception (``"raise"``).
# Neutral is the mean of its group, whose advantage is 0, where the row names its group; else the
# server's neutral value. Our reward manager passes on the group, which
# verl knows:
#
#     reward.reward_manager.source=importlib
#     reward.reward_manager.name=TrajudgeRewardManager
#     reward.reward_manager.module.path=.../trajudge/rewards/trainers.py
#
# Every sample has the same keys, which verl's collating needs.

GROUP, GROUP_SIZE = "group", "group_size"
# What ``extra_info["split"]`` says of validation data: verl's preprocessing writes the first.
VALIDATION = frozenset({"test", "val", "validation", "dev"})


async def verl_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    *,
    url: str | None = None,
    column: str = "trajectory_id",
    on_abstain: Literal["neutral", "raise"] = "neutral",
    deadline: float = DEADLINE,
    **_: Any,
) -> dict[str, float]:
    """Return score, accuracy (1: accepted) and what says how far they count, of the trajectory that
    was pushed under ``extra_info[column]``; its ``group`` and ``group_size`` may stand beside.

        reward.custom_reward_function.path=.../trajudge/rewards/trainers.py
        reward.custom_reward_function.name=verl_score

    verl's validation reports the mean accuracy, where an abstention counts as its score does.

    Raises Abstained under ``"raise"``, or where there is no neutral value; RewardUnavailable
    without a server.
    """
    row = extra_info or {}
    name, in_group, size = (row.get(key) for key in (column, GROUP, GROUP_SIZE))
    if name is None:
        raise RewardUnavailable(
            f"a row of {data_source} has no extra_info[{column!r}]: let the agent loop return it "
            "in its extra_fields"
        )
    group = RewardGroup(str(in_group), int(size)) if in_group is not None and size else None
    asked = await RewardClient(url, deadline=deadline).ask(str(name), group=group)
    return _verl_scores(asked, on_abstain)


def _verl_scores(asked: AskedReward, on_abstain: Literal["neutral", "raise"]) -> dict[str, float]:
    reward = asked.reward
    score = _value(reward) if on_abstain == "raise" else asked.number()
    return {
        "score": score,
        "acc": score if reward.value is None else float(reward.verdict is True),
        "abstained": float(reward.value is None),
        "probability": -1.0 if reward.probability is None else reward.probability,
        "cost": reward.cost or 0.0,
    }


async def verl_agent_reward(
    loop: Any,
    trajectory: Trajectory,
    row: Mapping[str, Any],
    *,
    client: RewardClient | None = None,
    on_abstain: Literal["neutral", "raise"] = "neutral",
) -> dict[str, Any]:
    """Push what an agent loop of verl recorded, and return the fields of ``AgentLoopOutput`` that
    hold its reward. ``row`` are the keywords of ``run``, which name the group.

        class Shop(AgentLoopBase):
            async def run(self, sampling_params, **row):
                ...
                judged = await verl_agent_reward(self, trajectory, row)
                return AgentLoopOutput(..., **judged)

    verl then calls no reward function. ``client`` defaults to the environment's. Raises Abstained
    under ``"raise"``, or where there is no neutral value; RewardUnavailable.
    """
    client = client or RewardClient()
    name = await client.push(trajectory)
    asked = await client.ask(name, group=_verl_group(row, loop.rollout_config))
    scores = _verl_scores(asked, on_abstain)
    extra = {"trajectory_id": name, "reward_extra_info": scores}
    return {"reward_score": scores["score"], "extra_fields": extra}


def _verl_group(row: Mapping[str, Any], rollout: Any) -> RewardGroup | None:
    """Return the group of a row: rows of one prompt have one ``uid``.

    verl does not tell whether it validates, where a prompt has ``val_kwargs.n`` rollouts and not
    ``rollout.n``: the row's split does.
    """
    if row.get("uid") is None:
        return None
    validates = (row.get("extra_info") or {}).get("split") in VALIDATION
    return RewardGroup(str(row["uid"]), int((rollout.val_kwargs if validates else rollout).n))


def __getattr__(name: str) -> Any:
    if name == "TrajudgeRewardManager":
        return _reward_manager()
    raise AttributeError(name)


@cache
def _reward_manager() -> type:
    """Make the manager that tells a row's group."""
    from verl.experimental.reward_loop.reward_manager.naive import (  # noqa: PLC0415 - the trainer
        NaiveRewardManager,
    )

    class TrajudgeRewardManager(NaiveRewardManager):  # type: ignore[misc]
        async def run_single(self, data: Any) -> dict[str, Any]:
            row = data[-1:][0].non_tensor_batch
            told = row.get("extra_info")
            group = _verl_group(row, self.config.actor_rollout_ref.rollout)
            if told is not None and group is not None:
                told.setdefault(GROUP, group.name)
                told.setdefault(GROUP_SIZE, group.size)
            found: dict[str, Any] = await super().run_single(data)
            return found

    return TrajudgeRewardManager


# TRL's GRPO and RLOO take None for "no reward": it is left out of its group's mean, and its
# advantage is 0. That holds only where every reward function of the row returns None. Beside a
# second function the default aggregation sums a None as 0, so that an abstention counts as a
# failure: use ``combine``.


class RewardSource(Protocol):
    """Gives trajectories their rewards: a ``RewardClient``, or of a training of one process a
    ``Rewarder``."""

    @property
    def stopped(self) -> bool:
        """Whether the watch stopped the rewards."""

    async def reward(self, trajectory: Trajectory, *, step: int | None = None) -> Reward:
        """Judge a trajectory of the training's ``step``."""

    async def reference(self, before: int) -> ReferencePoint | None:
        """Return what the reference judge said of the last step before this one."""


TrajectoryOf = Callable[[Mapping[str, Any]], Trajectory | None]
"""Finds a row's trajectory, from its ``prompt``, its ``completion`` and the data set's columns;
None or KeyError: it was not recorded."""
RewardColumn = Callable[..., Any]
"""A reward function as TRL calls it: values for completions, or None, at once or awaited."""
_OURS = ("trainer_state", "log_extra", "log_metric")  # what TRL gives a function once, not by row


def trajudge_reward(
    source: RewardSource, trajectory_of: TrajectoryOf | None = None
) -> Callable[..., Awaitable[list[float | None]]]:
    """Make the reward function of ``GRPOTrainer(reward_funcs=...)``; all rows are judged at once.

    Without ``trajectory_of`` the rows are runs of ``JudgedEnvironment``; one of another environment
    has no reward. A completion without a trajectory has none either. A keyword that is no column (a
    value for each completion) is left out of the rows, with a note, once.

    Where TRL offers it, ``trajudge/...`` is logged by step: the shares of abstentions and of
    unparsable replies, the mean probability, cost in US dollars and seconds of a reward, and what
    the reference judge said of the step before; and with ``log_completions`` each row's columns.
    Raises ValueError where there are neither environments nor ``trajectory_of``.
    """

    noted: set[str] = set()

    async def trajudge(
        prompts: Sequence[Any], completions: Sequence[Any], **columns: Any
    ) -> list[float | None]:
        if trajectory_of is None and columns.get("environments") is None:
            raise ValueError(
                "trajudge_reward has no environments to judge: give the trainer "
                "environment_factory=, or trajudge_reward a function that finds the trajectories"
            )
        if (state := columns.get("trainer_state")) is not None:
            _STATES[source] = state
        by_row = _columns(columns, len(completions), noted)
        asked = [
            _asked_of(source, trajectory_of, {"prompt": prompt, "completion": completion, **row})
            for prompt, completion, row in zip(
                prompts, completions, _rows(by_row, len(completions)), strict=True
            )
        ]
        waiting = (asyncio.wrap_future(one) for one in asked if one is not None)
        rewards = iter(await asyncio.gather(*waiting))
        rows = [None if one is None else next(rewards) for one in asked]
        if (metric := columns.get("log_metric")) is not None:
            point = None if state is None else await _reference(source, state.global_step)
            _log_metrics(rows, point, metric)
        if (extra := columns.get("log_extra")) is not None:
            _log_columns(rows, extra)
        return [None if row is None else row.value for row in rows]

    return trajudge


def _asked_of(
    source: RewardSource, trajectory_of: TrajectoryOf | None, row: Mapping[str, Any]
) -> Future[Reward] | None:
    """Return a row's reward, which is asked for; None: it has no trajectory."""
    if trajectory_of is None:
        environment = row["environments"]
        is_judged = isinstance(environment, JudgedEnvironment)
        return environment._ended(_last_message(row["completion"])) if is_judged else None
    try:
        found = trajectory_of(row)
    except KeyError:
        return None
    return None if found is None else _ask_in_background(source, found)


_STATES: WeakKeyDictionary[RewardSource, Any] = WeakKeyDictionary()
"""The trainer's state of those that asked for rewards: its step is that of what is asked next."""


@cache
def _judging_loop() -> asyncio.AbstractEventLoop:
    """Start the event loop that asks for TRL's rewards: a tool that ends an episode is called
    outside of every loop, and connections belong to one."""
    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, name="trajudge rewards", daemon=True).start()
    atexit.register(_close_sources)
    return loop


_OPEN: set[Any] = set()
"""Sources of this process that hold connections; its end alone tells that a training is over."""
_CLOSING = 10.0  # seconds


def _close_sources() -> None:
    async def close() -> None:
        await asyncio.gather(*(source.aclose() for source in _OPEN), return_exceptions=True)

    with suppress(TimeoutError):
        asyncio.run_coroutine_threadsafe(close(), _judging_loop()).result(_CLOSING)


def _ask_in_background(source: RewardSource, run: Trajectory) -> Future[Reward]:
    if hasattr(source, "aclose"):
        _OPEN.add(source)
    state = _STATES.get(source)
    asked = source.reward(run, step=None if state is None else int(state.global_step))
    return asyncio.run_coroutine_threadsafe(asked, _judging_loop())


async def _reference(source: RewardSource, before: int) -> ReferencePoint | None:
    asked = asyncio.run_coroutine_threadsafe(source.reference(before), _judging_loop())
    return await asyncio.wrap_future(asked)


def _columns(given: Mapping[str, Any], count: int, noted: set[str]) -> Mapping[str, Any]:
    """Return the keywords that hold a value for each of ``count`` completions; note others the
    first time."""
    columns = {}
    for name, column in given.items():
        if column is None or name in _OURS:
            continue
        if _is_column(column, count):
            columns[name] = column
        elif name not in noted:
            noted.add(name)
            sys.stderr.write(
                f"note: {name} of the trainer is no column of {count} values: it is not passed "
                "to trajectory_of\n"
            )
    return columns


def _is_column(value: object, count: int) -> bool:
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__getitem__"):
        return False
    return isinstance(value, Sized) and len(value) == count


def _rows(columns: Mapping[str, Any], count: int) -> Iterator[Mapping[str, Any]]:
    for place in range(count):
        yield {name: column[place] for name, column in columns.items()}


def combine(
    judge: RewardColumn, *others: RewardColumn, weights: Sequence[float] | None = None
) -> Callable[..., Awaitable[list[float | None]]]:
    """Make one reward function of several: the weighted sum, None where any has no value.

    ``weights`` are those of ``judge`` and the others, in order (None: 1 each). Raises ValueError
    for another number of them.
    """
    functions = (judge, *others)
    shares = [1.0] * len(functions) if weights is None else list(weights)
    if len(shares) != len(functions):
        raise ValueError(f"{len(functions)} reward functions take as many weights")

    async def combined(**given: Any) -> list[float | None]:
        columns = []
        for function in functions:
            values = function(**given)
            columns.append(await values if isawaitable(values) else values)
        return [
            None
            if any(value is None for value in row)
            else sum(share * value for share, value in zip(shares, row, strict=True))
            for row in zip(*columns, strict=True)
        ]

    return combined


def _log_metrics(
    rows: Sequence[Reward | None],
    point: ReferencePoint | None,
    metric: Callable[[str, float], Any],
) -> None:
    """Log each row's values: TRL averages them over all rows of all ranks."""
    for row in rows:
        metric("trajudge/abstained", float(row is None or row.value is None))
        metric("trajudge/unparsable", float(row is not None and row.status is Status.UNPARSABLE))
        if row is not None:
            metric("trajudge/seconds", row.seconds)
        for name in ("probability", "cost"):
            if row is not None and (value := getattr(row, name)) is not None:
                metric(f"trajudge/{name}", value)
    if point is not None:
        for name, value in point.means().items():
            metric(f"trajudge/reference/{name}", value)


def _log_columns(rows: Sequence[Reward | None], extra: Callable[[str, list[Any]], Any]) -> None:
    """Log what each row came to."""
    extra("trajudge_abstained", ["lost" if row is None else row.abstained for row in rows])
    for name in ("detail", "status", "verdict", "probability", "cost", "seconds"):
        extra(f"trajudge_{name}", [None if row is None else getattr(row, name) for row in rows])


def stop_on_drift(source: RewardSource) -> Any:
    """Make a callback of TRL's trainers that ends the training, with a checkpoint, once the watch
    stops the rewards of any rank: all of them end after the same step."""
    from transformers import TrainerCallback  # noqa: PLC0415 - the trainer's own

    class StopOnDrift(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
            if _is_true_of_a_rank(source.stopped, args.device):
                control.should_training_stop = control.should_save = True
            return control

    return StopOnDrift()


def _is_true_of_a_rank(value: bool, device: Any) -> bool:
    import torch  # noqa: PLC0415 - the trainer's own

    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return value
    flag = torch.tensor(float(value), device=device)
    torch.distributed.all_reduce(flag, op=torch.distributed.ReduceOp.MAX)
    return bool(flag.item())


def _last_message(completion: Any) -> str | None:
    """Return the text that a conversation ends with; None where it ends otherwise."""
    last = completion[-1] if isinstance(completion, list) and completion else {}
    text = last.get("content") if last.get("role") == "assistant" else None
    return text if isinstance(text, str) and text and not last.get("tool_calls") else None


class JudgedEnvironment:
    """An environment of TRL's ``environment_factory`` that records its run, for
    ``trajudge_reward(source)``.

        class Shop(JudgedEnvironment):
            def reset(self, goal: str, task: str, **_: Any) -> str:
                self._begin(goal, key=TrajectoryKey(benchmark="shop", agent="policy", task_id=task))
                return self._see(self.page())

            def click(self, element: str) -> str:
                "Click an element of the page."
                self._act(f"click({element!r})")
                return self._see(self.page())

        reward = trajudge_reward(source)
        GRPOTrainer(..., reward_funcs=reward, environment_factory=lambda: Shop(source))

    The judge is asked once the run ends: at its answer, else when the trainer asks for rewards;
    then the policy's last message is the answer. TRL makes a tool of every public method, so those
    that record are private. There is no ``get_reward``: TRL awaits those one after the other.
    """

    def __init__(self, source: RewardSource) -> None:
        self._source = source
        self._run: Trajectory | None = None
        self._asked: Future[Reward] | None = None

    def _begin(self, goal: str, key: TrajectoryKey) -> None:
        """Begin a run anew."""
        self._run = Trajectory(key=key, raw_task_id=key.task_id, goal=goal)
        self._asked = None

    def _see(self, observation: Observation) -> str:
        """Take down the page that the policy sees next; return its accessibility tree."""
        run = self._going_on()
        step = Step(index=len(run.steps), observation=observation)
        self._run = run.model_copy(update={"steps": (*run.steps, step)})
        return observation.axtree or ""

    def _act(self, action: str, reasoning: str | None = None) -> None:
        """Take down what the policy does on the page that it saw last."""
        run = self._going_on()
        if not run.steps:
            raise RuntimeError("nothing was seen yet: call _see() first")
        told = {"action": action, "reasoning": reasoning}
        steps = (*run.steps[:-1], run.steps[-1].model_copy(update=told))
        self._run = run.model_copy(update={"steps": steps})

    def _answer(self, text: str) -> None:
        """Take down the policy's last message, which ends the run: the judge is asked."""
        self._going_on()
        self._ended(text)

    def _ended(self, answer: str | None = None) -> Future[Reward]:
        """Ask for the reward of the run, once; ``answer`` is the policy's last message."""
        run = self._begun()
        if self._asked is None:
            if answer is not None:
                run = run.model_copy(update={"answer": answer, "terminated": True})
            self._run = run
            self._asked = _ask_in_background(self._source, run)
        return self._asked

    def _going_on(self) -> Trajectory:
        if self._asked is not None:
            raise RuntimeError("the run is over")
        return self._begun()

    def _begun(self) -> Trajectory:
        if self._run is None:
            raise RuntimeError("no run was begun: call _begin() in reset()")
        return self._run
