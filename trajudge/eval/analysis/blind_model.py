"""A model that sees the words of a task alone: its answers, scored by the tasks' rules."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trajudge.eval.runs.jobs import (
    Interrupted,
    StopSignal,
    graceful_interrupt,
    judge_all,
    run_interruptible,
)
from trajudge.eval.runs.pricing import CostEstimate, priced
from trajudge.judges.adapters.errors import CallFailed
from trajudge.judges.calls.handle import ModelHandle
from trajudge.judges.model import Call, Message, ModelClient, Reply, Text
from trajudge.prompts.render import load_prompt
from trajudge.rules.audit.agents import TASK_TYPES, AuditedTask, BlindAgent, NoAnswer
from trajudge.rules.audit.scoring import BlindScore, compare
from trajudge.rules.audit.suites import TaskSet
from trajudge.rules.output import write_json
from trajudge.rules.reading import decode, read_bytes
from trajudge.rules.verified.answers import STATUSES
from trajudge.util.commands import FAILURES, INTERRUPTED, OK
from trajudge.util.errors import UserError
from trajudge.util.files import check_folder
from trajudge.util.terminal import one_line, progress_bar

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
        cache.close()
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


SUBSTRING = "response_substring"

_SHOWN = 3


def ask_and_score(tasks: TaskSet, handle: ModelHandle, out: Path) -> int:
    """Ask the model for every task, keep its answers in ``out`` and score them.

    Returns the exit code. Raises UserError for what ends the run as a whole.
    """
    check_folder(out, "--out")
    answers = run_interruptible(ask_all(tasks, handle, _paid(out / "manifest.json")))
    write_json(out / "answers.json", answers.answers)
    write_json(out / "manifest.json", answers.manifest)
    if isinstance(answers.halted, Interrupted):
        sys.stderr.write(
            f"interrupted: {len(answers.answers)} of {len(tasks.tasks)} tasks are answered; the "
            "same command goes on from there\n"
        )
        return INTERRUPTED
    *_, model, _union = compare(tasks, [answers.agent], out)
    _say_vulnerable(tasks, model)
    _say(answers, len(tasks.tasks), out)
    return OK if len(answers.answers) == len(tasks.tasks) else FAILURES


def _paid(manifest: Path) -> float:
    """Read what earlier sessions of this folder paid, in dollars: it counts for ``--max-cost``.
    Raises UserError for a damaged file."""

    if not manifest.exists():
        return 0.0
    earlier = decode(read_bytes(manifest), dict[str, Any], manifest).get("paid")
    return float(earlier) if isinstance(earlier, int | float) else 0.0


def _say_vulnerable(tasks: TaskSet, model: BlindScore) -> None:
    """Print the paper's second rate (Table 2), on tasks that look for a substring in the answer."""
    if SUBSTRING not in tasks.suite.categories:
        return
    guessable = {
        finding.task_id
        for finding in tasks.suite.lint(tasks.tasks)
        if finding.category == SUBSTRING
    }
    if guessable:
        won = len(guessable & set(model.passed))
        sys.stdout.write(
            f"{model.agent} wins {won} of the {len(guessable)} tasks whose answer is searched for "
            f"a substring ({won / len(guessable):.1%})\n"
        )


def _say(replies: ModelAnswers, tasks: int, out: Path) -> None:
    calls = replies.manifest
    cost = "unknown" if calls["paid"] is None else f"${calls['paid']:.4f}"
    sys.stdout.write(
        f"{len(replies.answers)} of {tasks} tasks answered, {calls['cached']} from the cache; paid "
        f"{cost}; answers: {one_line(str(out / 'answers.json'))}\n"
    )
    for task_id, reason in list(replies.failures.items())[:_SHOWN]:
        sys.stderr.write(f"task {task_id}: {one_line(reason)}\n")
    if replies.halted is not None:
        sys.stderr.write(f"{one_line(str(replies.halted))}\n")
    if len(replies.answers) < tasks:
        sys.stderr.write(
            f"{tasks - len(replies.answers)} answers were not obtained and count as unknown: the "
            "same command asks for them again\n"
        )
