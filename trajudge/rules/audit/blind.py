"""Blind agents, which look at no page: their score is what a rule gives away.

Source: WebArena Verified, Tables 13 and 16, for ``empty`` to ``numbers_only``; the others are
trajudge's. An agent answers with text for rules that read text, and with a response object for
rules that read one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from trajudge.rules.files import first, write_csv, write_json
from trajudge.rules.verdict import Evaluator, Outcome
from trajudge.rules.verified.answers import STATUSES
from trajudge.util.errors import UserError
from trajudge.util.tables import Table, first_screen

TASK_TYPES = ("RETRIEVE", "MUTATE", "NAVIGATE")
PATTERNS = (".*", "^.*$", "^[\\s\\S]*$", "*")
_LONGEST = 1_000


class AuditedTask(Protocol):
    """The fields of a task that the audits need, in any dialect."""

    @property
    def task_id(self) -> int | str:
        """Unique in its file."""
        ...

    @property
    def intent(self) -> str:
        """What the agent is asked."""
        ...


class NoAnswer(Exception):
    """An agent has no answer for a task: its score there is unknown."""


class BlindAgent(msgspec.Struct, frozen=True):
    """A name, and a function that returns the answer to a task: text, a JSON value, or None.

    ``answer`` raises NoAnswer. An agent that ``opens_start_page`` loads the task's start pages
    without looking at them; other agents do not use the browser.
    """

    name: str
    answer: Callable[[AuditedTask], object]
    opens_start_page: bool = False


def constant(name: str, answer: object) -> BlindAgent:
    """Return an agent that always gives the same answer."""
    return BlindAgent(name, lambda task: answer)


def knowledge(name: str, answer: Callable[[str], object]) -> BlindAgent:
    """Return an agent that answers from the intent alone, such as a model without a browser."""
    return BlindAgent(name, lambda task: answer(task.intent))


def recorded(name: str, answers: Mapping[str, object]) -> BlindAgent:
    """Return an agent with recorded answers by task id. Raises UserError for a task without an
    answer."""

    def answer(task: AuditedTask) -> object:
        if str(task.task_id) not in answers:
            raise UserError(
                f"the answers of {name} hold none for task {task.task_id}: add it, null for none"
            )
        return answers[str(task.task_id)]

    return BlindAgent(name, answer)


def opening(agent: BlindAgent) -> BlindAgent:
    """Return an agent with the same answers that first opens the start page."""
    name = f"start_page:{agent.name.removeprefix('status:')}"
    return BlindAgent(name, agent.answer, opens_start_page=True)


def numbers_of(intent: str) -> list[str]:
    """Return every run of digits in the intent, or "0" without one."""
    return re.findall(r"\d+", intent) or ["0"]


def quoted(intent: str) -> list[str]:
    """Return the texts in double quotes in the intent, such as the keys of requested objects."""
    return list(dict.fromkeys(re.findall(r'"([^"\n]{1,60})"', intent)))


def _everything(intent: str) -> str:
    """Return one answer with as much as possible: yes, no, the intent, and the numbers up to
    1,000."""
    numbers = ", ".join(map(str, range(_LONGEST + 1)))
    return f"Yes, no, N/A, none, true, false, {intent}, {numbers}"


PUBLISHED_AGENTS = (
    constant("empty", ""),
    constant("na", "N/A"),
    constant("yes_no", "Yes/No"),
    constant("zero", "0"),
    constant("yes", "Yes"),
    constant("no", "No"),
    knowledge("echo_intent", lambda intent: intent),
    knowledge("numbers_only", lambda intent: " ".join(numbers_of(intent))),
)

TEXT_AGENTS = (
    *PUBLISHED_AGENTS,
    *(constant(f"status:{status}", status) for status in STATUSES),
    *(constant(f"pattern:{pattern}", pattern) for pattern in PATTERNS),
    constant("wildcard_object", '{"*": "*"}'),
    knowledge("long_list", _everything),
    opening(constant("empty", "")),
)


def response(task_type: str, status: str, data: object) -> dict[str, Any]:
    """Return a response object of WebArena Verified's protocol."""
    return {"task_type": task_type, "status": status, "retrieved_data": data, "error_details": None}


def _retrieves(name: str, data: Callable[[str], object]) -> BlindAgent:
    return knowledge(name, lambda intent: response("RETRIEVE", "SUCCESS", data(intent)))


def _response_agents() -> Iterator[BlindAgent]:
    for task_type in TASK_TYPES:
        for status in STATUSES:
            name = f"status:{task_type.lower()}:{status}"
            yield constant(name, response(task_type, status, None))
    constants: dict[str, object] = {
        "nothing": [],
        "empty": [""],
        "na": ["N/A"],
        "zero": [0],
        "yes": ["yes"],
        "no": ["no"],
        "true": [True],
        "false": [False],
        "infinity": ["inf m"],
        "alternatives": [[str(number) for number in range(_LONGEST + 1)]],
        "long_list": list(range(_LONGEST + 1)),
    }
    for name, data in constants.items():
        yield constant(name, response("RETRIEVE", "SUCCESS", data))
    yield _retrieves("echo_intent", lambda intent: [intent])
    yield _retrieves("numbers_only", numbers_of)
    yield _retrieves("numbers_as_numbers", lambda intent: [float(n) for n in numbers_of(intent)])
    yield _retrieves("quoted_words", quoted)
    for pattern in PATTERNS:
        yield from _patterns(pattern)


def _patterns(pattern: str) -> Iterator[BlindAgent]:
    for items in (1, 2, 3, 5):
        name = f"pattern:{pattern}:{items}"
        yield constant(name, response("RETRIEVE", "SUCCESS", [pattern] * items))
    yield constant(f"pattern:{pattern}:status", response("RETRIEVE", pattern, None))
    yield constant(f"pattern:{pattern}:everywhere", response(pattern, pattern, [pattern]))
    yield _retrieves(
        f"wildcard_object:{pattern}", lambda intent: [dict.fromkeys(quoted(intent), pattern)]
    )


# A visit gains patterns nothing beyond what it gains plain answers.
RESPONSE_AGENTS = (
    *_response_agents(),
    *(
        opening(agent)
        for agent in _response_agents()
        if not agent.name.startswith(("pattern:", "wildcard_object:"))
    ),
)

TaskT = TypeVar("TaskT", bound=AuditedTask)
Progress = Callable[[str, int, int], None]


class BlindScore(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks that one agent passed, and the number of tasks that could not be judged."""

    agent: str
    tasks: int
    passed: tuple[int | str, ...]
    unknown: int

    @property
    def rate(self) -> float:
        """Return the share of passed tasks among all tasks; an unknown outcome counts as not
        passed."""
        return len(self.passed) / self.tasks if self.tasks else 0.0


def blind_scores(
    tasks: Sequence[TaskT],
    evaluator: Evaluator[TaskT, Any],
    agents: Iterable[BlindAgent],
    trace_of: Callable[[TaskT], Any] = lambda task: None,
    *,
    progress: Progress = lambda agent, done, of: None,
    start_trace_of: Callable[[TaskT], Any] = lambda task: None,
) -> tuple[BlindScore, ...]:
    """Score each agent on all tasks, in the order of the agents.

    ``trace_of`` returns the trace of a run without actions, ``start_trace_of`` that of a run which
    opened the start page; each is called once per task. ``progress`` is called after each task.
    """
    traces: dict[bool, list[Any]] = {}
    made = []
    for agent in agents:
        opens = agent.opens_start_page
        if opens not in traces:
            traces[opens] = [(start_trace_of if opens else trace_of)(task) for task in tasks]
        made.append(_score(tasks, evaluator, agent, traces[opens], progress))
    return tuple(made)


def _score(
    tasks: Sequence[TaskT],
    evaluator: Evaluator[TaskT, Any],
    agent: BlindAgent,
    traces: Sequence[Any],
    progress: Progress,
) -> BlindScore:
    passed: list[int | str] = []
    unknown = 0
    for done, (task, trace) in enumerate(zip(tasks, traces, strict=True), start=1):
        outcome = _outcome(task, evaluator, agent, trace)
        if outcome is Outcome.PASS:
            passed.append(task.task_id)
        unknown += outcome is Outcome.UNKNOWN
        progress(agent.name, done, len(tasks))
    return BlindScore(agent=agent.name, tasks=len(tasks), passed=tuple(passed), unknown=unknown)


def _outcome(
    task: TaskT,
    evaluator: Evaluator[TaskT, Any],
    agent: BlindAgent,
    trace: Any,
) -> Outcome:
    try:
        answer = agent.answer(task)
    except NoAnswer:
        return Outcome.UNKNOWN
    return evaluator.evaluate(task, answer, trace).outcome


def union(all_scores: Sequence[BlindScore]) -> BlindScore:
    """Return the tasks that any of the agents passed. ``unknown`` is the smallest of their
    numbers."""
    passed = dict.fromkeys(task_id for score in all_scores for task_id in score.passed)
    return BlindScore(
        agent="union",
        tasks=max((score.tasks for score in all_scores), default=0),
        passed=tuple(sorted(passed, key=_by_number)),
        unknown=min((score.unknown for score in all_scores), default=0),
    )


def _by_number(task_id: int | str) -> tuple[bool, int, str]:
    return (isinstance(task_id, str), 0 if isinstance(task_id, str) else task_id, str(task_id))


def blind_screen(
    path: Path, mode: str, listed: Sequence[BlindScore], out: Path | None, width: int | None = None
) -> str:
    """Lay out the scores in at most 40 lines; the union, last in ``listed``, is shown first."""
    together = listed[-1]
    least = "at least " if together.unknown else ""
    finding = (
        f"{path.name}, {mode} rules: agents that never see a page pass {least}"
        f"{len(together.passed)} of "
        f"{together.tasks} tasks ({100 * together.rate:.1f} %)"
    )
    rows = [
        (
            score.agent,
            first(score.passed),
            str(len(score.passed)),
            f"{100 * score.rate:.1f}",
            str(score.unknown),
        )
        for score in [together, *listed[:-1]]
    ]
    table = Table("", ("agent", "tasks passed", "passed", "%", "unknown"), rows)
    rest = f"All tasks: {out / 'naive.json'} and naive.csv" if out else "All tasks: --out DIR"
    return first_screen([finding], [table], rest=rest, more="--out DIR", width=width)


def write_scores(out: Path, dialect: str, mode: str, listed: Sequence[BlindScore]) -> None:
    """Write ``naive.json`` and ``naive.csv``. Raises UserError."""
    agents = [
        {**msgspec.structs.asdict(score), "rate": score.rate, "passed": list(score.passed)}
        for score in listed
    ]
    write_json(out / "naive.json", {"dialect": dialect, "mode": mode, "agents": agents})
    rows = [(score.agent, task_id) for score in listed for task_id in score.passed]
    write_csv(out / "naive.csv", ("agent", "task_id"), rows)
