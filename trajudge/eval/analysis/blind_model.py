"""A model's answers to tasks of which it sees the words alone."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from trajudge.eval.runs.pricing import CostEstimate, priced
from trajudge.eval.runs.workers import StopSignal, graceful_interrupt, judge_all
from trajudge.judges.adapters.errors import CallFailed
from trajudge.judges.calls.handle import ModelHandle
from trajudge.judges.model import Call, Message, ModelClient, Reply, Text
from trajudge.prompts.render import load_prompt
from trajudge.rules.audit.agents import TASK_TYPES, AuditedTask, BlindAgent, NoAnswer
from trajudge.rules.audit.suites import TaskSet
from trajudge.rules.verified.response import STATUSES
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.progress import progress_bar

# Rules that read a response object; others read text.
_RESPONSES = "verified"
_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.IGNORECASE | re.DOTALL)


@dataclass
class ModelAnswers:
    """Answers and the reasons for those that were not obtained, by task id in the tasks' order."""

    name: str
    answers: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    manifest: dict[str, Any] = field(default_factory=dict)
    halted: Exception | None = None

    @property
    def agent(self) -> BlindAgent:
        """The model as an agent that never sees a page."""

        def answer(task: AuditedTask) -> str:
            try:
                return self.answers[str(task.task_id)]
            except KeyError:
                raise NoAnswer(self.failures.get(str(task.task_id), "not asked")) from None

        return BlindAgent(self.name, answer)


def messages(task: AuditedTask, dialect: str) -> tuple[Message, ...]:
    """Render the prompt for one task: its words, and the form of answer that its rules read."""
    prompt = load_prompt("naive")
    form = "response" if dialect == _RESPONSES else "text"
    system = prompt.render("system", form=form, statuses=STATUSES, task_types=TASK_TYPES)
    user = prompt.render("user", intent=task.intent)
    return (
        Message(role="system", parts=(Text(text=system),)),
        Message(role="user", parts=(Text(text=user),)),
    )


def answer_of(reply: Reply, dialect: str) -> str:
    """Extract the answer for the rules: the last one in its tag, or all of the text. Raises
    NoAnswer for a reply that ran out of tokens."""
    if reply.finish == "length":
        raise NoAnswer("the reply ran out of tokens: give --max-tokens more")
    text = reply.text.encode("utf-8", "replace").decode()
    tagged = [] if dialect == _RESPONSES else _ANSWER.findall(text)
    return str(tagged[-1]).strip() if tagged else text.strip()


async def predict(tasks: TaskSet, handle: ModelHandle) -> CostEstimate:
    """Estimate what asking would cost; every prompt is rendered and its tokens are counted."""
    cache = handle.open_cache()
    calls: list[Call] = []
    try:
        for task in tasks.tasks:
            ask = handle.dry_ask(cache, 0)
            try:
                await ask(messages(task, tasks.suite.dialect), stage="naive")
            except CallFailed:
                continue  # a failure that the cache remembers costs nothing
            finally:
                calls += ask.calls
    finally:
        await cache.close()
    return priced(len(tasks.tasks), calls, set())


async def ask_all(tasks: TaskSet, handle: ModelHandle, spent: float = 0.0) -> ModelAnswers:
    """Ask every task once, as many at a time as ``--concurrency`` says; what fails is kept with
    its reason. ``spent`` dollars went to earlier sessions.

    Raises UserError for what ends the run as a whole (no key, no server, a full disk).
    """
    dialect = tasks.suite.dialect
    engines = handle.open_engines(spent)
    answers: dict[str, str | NoAnswer] = {}
    calls: list[Call] = []
    stop = StopSignal()

    async def one(task: AuditedTask) -> tuple[str, str | NoAnswer]:
        ask = handle.ask(engines, 0, refresh=())
        answer = await _answered(ask, task, dialect)
        calls.extend(ask.calls)
        return str(task.task_id), answer

    def record(pair: tuple[str, str | NoAnswer]) -> None:
        answers[pair[0]] = pair[1]
        show("tasks asked", len(answers), len(tasks.tasks))

    with graceful_interrupt(stop), stop.heard_by(engines.stop), progress_bar() as show:
        try:
            width = handle.calls.concurrency
            await judge_all(iter(tasks.tasks), one, width=width, record=record, stop=stop)
        finally:
            await engines.close()
    made = _asked(tasks, handle, answers, stop)
    paid = [call.cost for call in calls if not call.cached]
    made.manifest = {
        "tasks": tasks.path.name,
        "dialect": dialect,
        "prompt_hash": load_prompt("naive").hash,
        "calls": len(calls),
        "cached": sum(call.cached for call in calls),
        "paid": None if None in paid else spent + sum(cost or 0.0 for cost in paid),
        **handle.manifest,
    }
    return made


async def _answered(ask: ModelClient, task: AuditedTask, dialect: str) -> str | NoAnswer:
    try:
        return answer_of(await ask(messages(task, dialect), stage="naive"), dialect)
    except CallFailed as error:
        return NoAnswer(str(error))
    except NoAnswer as error:
        return error


def _asked(
    tasks: TaskSet, handle: ModelHandle, answers: dict[str, str | NoAnswer], stop: StopSignal
) -> ModelAnswers:
    """Separate answers from failures. Raises UserError if no task was answered: that is the
    run's failure, not the tasks'."""
    made = ModelAnswers(name=f"model:{handle.model}", halted=stop.reason)
    for task in tasks.tasks:
        answer = answers.get(str(task.task_id))
        if isinstance(answer, str):
            made.answers[str(task.task_id)] = answer
        elif answer is not None:
            made.failures[str(task.task_id)] = str(answer)
    if not made.answers and made.failures and stop.reason is None:
        raise UserError(f"no task was answered: {next(iter(made.failures.values()))}")
    return made
