"""Rewards for trainers: a function or class for each trainer, without importing the trainers.

Most of them request from ``trajudge serve`` the reward of the trajectory that was pushed under the
row's ``trajectory_id``. TRL's push the trajectory themselves, or use a ``Rewarder`` in process.
docs/trainers.md has the table of trainers, and of what an abstention is to each.
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
from typing import Any, Literal, Protocol
from weakref import WeakKeyDictionary

from trajudge.judges.model import Status
from trajudge.rewards.client import (
    DEADLINE,
    RewardClient,
    RewardGroup,
    RewardUnavailable,
    ServerReward,
)
from trajudge.rewards.reward import Abstained, Reward, neutral_values, why_abstained
from trajudge.rewards.watch import ReferencePoint
from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey

_COLUMN = "trajectory_id"


def pushed_name(row: str, *mappings: Mapping[str, Any]) -> str:
    """Return the ``trajectory_id`` from the first mapping that has one; ``row`` names them in the
    message. Raises RewardUnavailable without one."""
    for mapping in mappings:
        if mapping.get(_COLUMN) is not None:
            return str(mapping[_COLUMN])
    raise RewardUnavailable(
        f"{row} without {_COLUMN}: give it the id under which its trajectory is pushed"
    )


async def _ask(name: str, deadline: float = DEADLINE) -> ServerReward:
    return await RewardClient(deadline=deadline).ask(name)


def _value(reward: Reward) -> float:
    """Return a reward's value. Raises Abstained without one."""
    if reward.value is None:
        raise Abstained(why_abstained(reward))
    return reward.value


# OpenRLHF makes a tensor of every reward and has no mask: an abstention is the neutral value,
# marked as abstained. Its single-turn executor calls /get_reward itself, with the data set's
# ``label`` as the trajectory's id.


async def openrlhf_step(
    trajectory: Trajectory, *, client: RewardClient | None = None
) -> dict[str, Any]:
    """Push a trajectory, and return the result of the last ``step`` of OpenRLHF's
    ``AgentInstanceBase``; every other step returns ``openrlhf_going_on``.

        class AgentInstance(AgentInstanceBase):
            async def step(self, states, **kwargs):
                page = self.shop.act(states["action_text"])
                if not self.shop.is_over:
                    return openrlhf_going_on(page)
                return await openrlhf_step(self.shop.trajectory)

    An abstention is the server's neutral value. ``client`` defaults to one for the address in the
    environment variable. Raises Abstained without a neutral value, RewardUnavailable.
    """
    client = client or RewardClient()
    answer = await client.ask(await client.push(trajectory))
    return _openrlhf(answer.number(), "", answer.reward)


def openrlhf_going_on(feedback: str) -> dict[str, Any]:
    """Return the result of any ``step`` of OpenRLHF's ``AgentInstanceBase`` but the last one;
    ``feedback`` is the policy's next input.

    If the episode exceeds the context after this step, its reward is 0, marked as ``unfinished``,
    and no judge is called.
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
        "extra_logs": {  # the same keys in all samples
            "abstained": float(reward is not None and reward.value is None),
            "unfinished": float(reward is None),
            "probability": -1.0 if probability is None else probability,
            "cost": (reward and reward.cost) or 0.0,
        },
    }


# slime excludes a sample with ``remove_sample`` from the loss, but not from the mean and standard
# deviation of its group. An abstention therefore sets it, and gets the mean of the others.


async def slime_group_reward(args: Any, samples: Sequence[Any], **_: Any) -> list[float]:
    """Return the rewards of a group of slime's samples, in order; the ``metadata`` of each has its
    ``trajectory_id``.

        --custom-rm-path trajudge.rewards.trainers.slime_group_reward --group-rm

    Raises Abstained if no sample has a value and there is no neutral one, RewardUnavailable without
    a server or an id.
    """
    names = [pushed_name("a sample's metadata", one.metadata) for one in samples]
    answers = await asyncio.gather(*map(_ask, names))
    for sample, one in zip(samples, answers, strict=True):
        if one.reward.value is None:
            sample.remove_sample = True
    neutral = next((one.neutral_value for one in answers if one.neutral_value is not None), None)
    return neutral_values([one.reward for one in answers], base_rate=neutral)


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
    """Return the reward of the row's ``trajectory_id`` to AReaL; an abstention is the neutral
    value.

    AReaL counts a call of more than 15 seconds as a failure with the reward 0. Set a timeout longer
    than ``DEADLINE``: ``AsyncRewardWrapper(areal_reward, timeout_seconds=...)``.

    Raises Abstained without a neutral value, RewardUnavailable without a server.
    """
    return asyncio.run(_ask(trajectory_id)).number()


def skyrl_step(
    trajectory_id: str, observations: Sequence[dict[str, str]] = (), *, deadline: float = DEADLINE
) -> dict[str, Any]:
    """Return the result of the last ``BaseTextEnv.step`` of SkyRL for a pushed trajectory.

    SkyRL requires a number from every step and offers no mask to environments: an abstention is the
    neutral value, marked in ``metadata``. Raises Abstained without a neutral value,
    RewardUnavailable without a server.
    """
    answer = asyncio.run(_ask(trajectory_id, deadline))
    value, reward = answer.number(), answer.reward
    probability = -1.0 if reward.probability is None else reward.probability
    return {
        "observations": list(observations),
        "reward": value,
        "done": True,
        "metadata": {"abstained": reward.abstained, "probability": probability},
        "postprocessed_action": None,
    }


async def verifiers_reward(trace: Any, *, deadline: float = DEADLINE) -> float:
    """Return the reward of ``trace.info["trajectory_id"]`` to verifiers and prime-rl.

        class Task(vf.Task):
            @vf.reward
            async def judged(self, trace) -> float:
                return await verifiers_reward(trace)

    Raises Abstained for an abstention, which excludes the trace from the training, and
    RewardUnavailable without a server or an id.
    """
    answer = await _ask(pushed_name("a trace's info", trace.info), deadline)
    return _value(answer.reward)


async def art_group(group: Any, *, deadline: float = DEADLINE) -> Any | None:
    """Set the rewards of an ``art.TrajectoryGroup`` and remove trajectories without a value; the
    ``metadata`` of each has its ``trajectory_id``.

    Returns None if fewer than two trajectories remain. Raises RewardUnavailable without a server or
    an id.
    """
    names = [pushed_name("a trajectory's metadata", one.metadata) for one in group.trajectories]
    answers = await asyncio.gather(*(_ask(name, deadline) for name in names))
    kept = []
    for trajectory, one in zip(group.trajectories, answers, strict=True):
        if one.reward.value is not None:
            trajectory.reward = one.reward.value
            kept.append(trajectory)
    group.trajectories = kept
    return group if len(kept) > 1 else None


_EVAL_OUTPUT = ("rllm.eval.types", "rllm.experimental.eval.types")  # now, and before 2026


class RllmEvaluator:
    """Evaluates rLLM's episodes, whose ``trajectory_id`` is in ``artifacts``, in ``metadata`` or in
    the task.

        trainer = AgentTrainer(..., evaluator=RllmEvaluator())

    An abstention is an exception. Pass the evaluator to rLLM directly: in a data set's verifier
    module (``[verifier].module``) an exception counts as the reward 0. ``output`` is called with
    ``reward``, ``is_correct`` and ``metadata`` (None: rLLM's ``EvalOutput``).
    """

    def __init__(
        self, *, deadline: float = DEADLINE, output: Callable[..., Any] | None = None
    ) -> None:
        self.deadline = deadline
        self._output = output

    def evaluate(self, task: Any, episode: Any) -> Any:
        """Return the episode's reward.

        Raises Abstained for an abstention, RewardUnavailable without a server or an id.
        """
        row = task if isinstance(task, Mapping) else getattr(task, "metadata", {})
        name = pushed_name("an episode and a task", episode.artifacts, episode.metadata, row)
        # rLLM calls it in a thread without an event loop.
        reward = asyncio.run(_ask(name, self.deadline)).reward
        value = _value(reward)
        make = self._output or _eval_output()
        fields = ("probability", "judge", "version")
        metadata = {field: getattr(reward, field) for field in fields}
        return make(reward=value, is_correct=reward.verdict is True, metadata=metadata)


def _eval_output() -> Callable[..., Any]:
    for module in _EVAL_OUTPUT:
        with suppress(ImportError):
            output: Callable[..., Any] = import_module(module).EvalOutput
            return output
    raise RewardUnavailable("rLLM's EvalOutput is not there: install rllm, or give output=")


# verl cannot exclude a sample: NaN makes its whole group NaN. So an abstention is a neutral value
# (``on_abstain="neutral"``), marked as abstained, or an exception (``"raise"``). The neutral value
# is the mean of the row's group, which makes its advantage 0, or without a group the server's. The
# reward manager adds the group to the row:
#
#     reward.reward_manager.source=importlib
#     reward.reward_manager.name=TrajudgeRewardManager
#     reward.reward_manager.module.path=.../trajudge/rewards/trainers.py
#
# Every sample has the same keys, as verl's collation requires.

GROUP, GROUP_SIZE = "group", "group_size"
# Values of ``extra_info["split"]`` for validation data; verl's preprocessing writes the first.
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
    """Return score, accuracy (1: accepted), abstention, probability and cost of the trajectory that
    was pushed under ``extra_info[column]``, which may also have ``group`` and ``group_size``.

        reward.custom_reward_function.path=.../trajudge/rewards/trainers.py
        reward.custom_reward_function.name=verl_score

    verl's validation reports the mean accuracy; that of an abstention is its score.

    Raises Abstained for an abstention with ``"raise"`` or without a neutral value,
    RewardUnavailable without a server.
    """
    row = extra_info or {}
    name, group_name, size = (row.get(key) for key in (column, GROUP, GROUP_SIZE))
    if name is None:
        raise RewardUnavailable(
            f"a row of {data_source} has no extra_info[{column!r}]: let the agent loop return it "
            "in its extra_fields"
        )
    group = RewardGroup(str(group_name), int(size)) if group_name is not None and size else None
    answer = await RewardClient(url, deadline=deadline).ask(str(name), group=group)
    return _verl_scores(answer, on_abstain)


def _verl_scores(answer: ServerReward, on_abstain: Literal["neutral", "raise"]) -> dict[str, float]:
    reward = answer.reward
    score = _value(reward) if on_abstain == "raise" else answer.number()
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
    """Push the trajectory of an agent loop of verl, and return the fields of ``AgentLoopOutput``
    with its reward. ``row`` are the keyword arguments of ``run``, which identify the group.

        class Shop(AgentLoopBase):
            async def run(self, sampling_params, **row):
                ...
                judged = await verl_agent_reward(self, trajectory, row)
                return AgentLoopOutput(..., **judged)

    verl then calls no reward function. ``client`` defaults to one for the address in the
    environment variable. Raises Abstained for an abstention with ``"raise"`` or without a neutral
    value, RewardUnavailable.
    """
    client = client or RewardClient()
    name = await client.push(trajectory)
    answer = await client.ask(name, group=_verl_group(row, loop.rollout_config))
    scores = _verl_scores(answer, on_abstain)
    extra = {"trajectory_id": name, "reward_extra_info": scores}
    return {"reward_score": scores["score"], "extra_fields": extra}


def _verl_group(row: Mapping[str, Any], rollout: Any) -> RewardGroup | None:
    """Return the group of a row: rows of one prompt share their ``uid``.

    In validation a prompt has ``val_kwargs.n`` rollouts instead of ``rollout.n``. verl does not
    expose whether it validates, so the row's split decides.
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
    """Return the reward manager that adds the group to each row."""
    from verl.experimental.reward_loop.reward_manager.naive import (  # noqa: PLC0415 - the trainer
        NaiveRewardManager,
    )

    class TrajudgeRewardManager(NaiveRewardManager):  # type: ignore[misc]
        async def run_single(self, data: Any) -> dict[str, Any]:
            row = data[-1:][0].non_tensor_batch
            extra = row.get("extra_info")
            group = _verl_group(row, self.config.actor_rollout_ref.rollout)
            if extra is not None and group is not None:
                extra.setdefault(GROUP, group.name)
                extra.setdefault(GROUP_SIZE, group.size)
            scores: dict[str, Any] = await super().run_single(data)
            return scores

    return TrajudgeRewardManager


# TRL's GRPO and RLOO exclude None from its group's mean, and give it the advantage 0, but only if
# every reward function of the row returns None. With a second function the default aggregation
# counts None as 0, so that an abstention counts as a failure: use ``combine``.


class RewardSource(Protocol):
    """A ``RewardClient``, or in a training of one process a ``Rewarder``."""

    @property
    def stopped(self) -> bool:
        """Whether the watch stopped the rewards."""

    async def reward(self, trajectory: Trajectory, *, step: int | None = None) -> Reward:
        """Judge a trajectory of the training's ``step``."""

    async def reference(self, before: int) -> ReferencePoint | None:
        """Return the reference judge's point of the last step before this one."""


TrajectoryOf = Callable[[Mapping[str, Any]], Trajectory | None]
"""Returns the trajectory of a row with ``prompt``, ``completion`` and the data set's columns; None
or KeyError if it was not recorded."""
RewardColumn = Callable[..., Any]
"""A reward function as TRL calls it, synchronous or not; its values may be None."""
_PER_BATCH = ("trainer_state", "log_extra", "log_metric")  # keywords of TRL that are no columns


def trajudge_reward(
    source: RewardSource, trajectory_of: TrajectoryOf | None = None
) -> Callable[..., Awaitable[list[float | None]]]:
    """Return a reward function for ``GRPOTrainer(reward_funcs=...)``; all rows are judged at once.

    Without ``trajectory_of`` the rows are runs of ``JudgedEnvironment``. A completion of another
    environment, or without a trajectory, has no reward. Keywords that are no columns (a value for
    each completion) are not passed to ``trajectory_of``, and noted once.

    If TRL supports it, ``trajudge/...`` is logged by step: the shares of abstentions and of
    unparsable replies, the mean probability, cost in US dollars and seconds of a reward, and the
    reference judge's means of the step before; with ``log_completions`` also each row's columns.
    The function raises ValueError with neither environments nor ``trajectory_of``.
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
        pending = [
            _request(source, trajectory_of, {"prompt": prompt, "completion": completion, **row})
            for prompt, completion, row in zip(
                prompts, completions, _rows(by_row, len(completions)), strict=True
            )
        ]
        waiting = (asyncio.wrap_future(one) for one in pending if one is not None)
        rewards = iter(await asyncio.gather(*waiting))
        rows = [None if one is None else next(rewards) for one in pending]
        if (metric := columns.get("log_metric")) is not None:
            point = None if state is None else await _reference(source, state.global_step)
            _log_metrics(rows, point, metric)
        if (extra := columns.get("log_extra")) is not None:
            _log_columns(rows, extra)
        return [None if row is None else row.value for row in rows]

    return trajudge


def _request(
    source: RewardSource, trajectory_of: TrajectoryOf | None, row: Mapping[str, Any]
) -> Future[Reward] | None:
    """Request a row's reward; None if it has no trajectory."""
    if trajectory_of is None:
        environment = row["environments"]
        is_judged = isinstance(environment, JudgedEnvironment)
        return environment._finish(_last_message(row["completion"])) if is_judged else None
    try:
        trajectory = trajectory_of(row)
    except KeyError:
        return None
    return None if trajectory is None else _ask_in_background(source, trajectory)


_STATES: WeakKeyDictionary[RewardSource, Any] = WeakKeyDictionary()
"""The last trainer's state by source, for the step of the next requests."""


@cache
def _judging_loop() -> asyncio.AbstractEventLoop:
    """Start the event loop for TRL's rewards: connections belong to one loop, but a tool that ends
    an episode is called outside any."""
    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, name="trajudge rewards", daemon=True).start()
    atexit.register(_close_sources)
    return loop


_OPEN: set[Any] = set()
"""Sources with open connections, which are closed at exit: TRL has no hook for the end."""
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
    reward = source.reward(run, step=None if state is None else int(state.global_step))
    return asyncio.run_coroutine_threadsafe(reward, _judging_loop())


async def _reference(source: RewardSource, before: int) -> ReferencePoint | None:
    point = asyncio.run_coroutine_threadsafe(source.reference(before), _judging_loop())
    return await asyncio.wrap_future(point)


def _columns(keywords: Mapping[str, Any], count: int, noted: set[str]) -> Mapping[str, Any]:
    """Return the keywords with a value for each of ``count`` completions; note each other one
    once."""
    columns = {}
    for name, column in keywords.items():
        if column is None or name in _PER_BATCH:
            continue
        if _is_column(column, count):
            columns[name] = column
        elif name not in noted:
            noted.add(name)
            sys.stderr.write(
                f"note: {name} of the trainer is not a column of {count} values: it is not passed "
                "to trajectory_of\n"
            )
    return columns


def _is_column(value: object, count: int) -> bool:
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__getitem__"):
        return False
    return isinstance(value, Sized) and len(value) == count


def _rows(columns: Mapping[str, Any], count: int) -> Iterator[Mapping[str, Any]]:
    for index in range(count):
        yield {name: column[index] for name, column in columns.items()}


def combine(
    judge: RewardColumn, *others: RewardColumn, weights: Sequence[float] | None = None
) -> Callable[..., Awaitable[list[float | None]]]:
    """Combine reward functions into their weighted sum, which is None if any value is None.

    ``weights`` are those of ``judge`` and the others, in order (None: 1 each). Raises ValueError
    if their number differs.
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
    """Log the fields of each row's reward."""
    extra("trajudge_abstained", ["lost" if row is None else row.abstained for row in rows])
    for name in ("detail", "status", "verdict", "probability", "cost", "seconds"):
        extra(f"trajudge_{name}", [None if row is None else getattr(row, name) for row in rows])


def stop_on_drift(source: RewardSource) -> Any:
    """Return a callback for TRL's trainers that ends the training, with a checkpoint, once the
    watch stops the rewards of any rank; all ranks end after the same step."""
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
    """Return the text of the assistant's last message; None without text or with tool calls."""
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

    The judge is called when the run ends: at its answer, else when the trainer requests rewards,
    with the policy's last message as the answer. The methods that record are private because TRL
    offers every public method to the policy as a tool. There is no ``get_reward``, because TRL
    awaits these one after the other.
    """

    def __init__(self, source: RewardSource) -> None:
        self._source = source
        self._run: Trajectory | None = None
        self._reward: Future[Reward] | None = None

    def _begin(self, goal: str, key: TrajectoryKey) -> None:
        """Start a new run."""
        self._run = Trajectory(key=key, raw_task_id=key.task_id, goal=goal)
        self._reward = None

    def _see(self, observation: Observation) -> str:
        """Record the page that the policy sees next; return its accessibility tree."""
        run = self._running()
        step = Step(index=len(run.steps), observation=observation)
        self._run = run.model_copy(update={"steps": (*run.steps, step)})
        return observation.axtree or ""

    def _act(self, action: str, reasoning: str | None = None) -> None:
        """Record the policy's action on the page that it saw last."""
        run = self._running()
        if not run.steps:
            raise RuntimeError("no page was recorded: call _see() first")
        step = run.steps[-1].model_copy(update={"action": action, "reasoning": reasoning})
        self._run = run.model_copy(update={"steps": (*run.steps[:-1], step)})

    def _answer(self, text: str) -> None:
        """Record the policy's last message, which ends the run, and request the reward."""
        self._running()
        self._finish(text)

    def _finish(self, answer: str | None = None) -> Future[Reward]:
        """Request the reward of the run, once; ``answer`` is the policy's last message."""
        run = self._started()
        if self._reward is None:
            if answer is not None:
                run = run.model_copy(update={"answer": answer, "terminated": True})
            self._run = run
            self._reward = _ask_in_background(self._source, run)
        return self._reward

    def _running(self) -> Trajectory:
        if self._reward is not None:
            raise RuntimeError("the run is over")
        return self._started()

    def _started(self) -> Trajectory:
        if self._run is None:
            raise RuntimeError("no run was started: call _begin() in reset()")
        return self._run
