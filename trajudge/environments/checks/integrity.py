"""Is a configuration a fair task? Checked offline, for every configuration, before any browser.

Feasible: the slots have candidates, the oracle's plan walks, does what is expected and nothing
else. Coherent: nothing unfilled, every word and chart that is needed exists. Non-trivial: whoever
does nothing, says yes or no, or the most common value, fails. Unique: one answer, no ties.
Distinct: for every slot there is a decoy that asks for something else. Leak-free: neither goal nor
start page nor an address gives the answer away, and no key sorts by a value. A configuration that
fails is a Reject with its reason, never an exception.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from trajudge.environments.checks import profiles
from trajudge.environments.checks.difficulty import measure, vector
from trajudge.environments.checks.near_miss import near_miss
from trajudge.environments.checks.profiles import ReplayableState
from trajudge.environments.checks.walk import ControlNotFound, Walk
from trajudge.environments.kit.listing import PART
from trajudge.environments.kit.reading import charts, texts
from trajudge.environments.kit.words import WORDS
from trajudge.environments.model.axes import instance, ui
from trajudge.environments.model.binding import Infeasible, bind, filled, parameters
from trajudge.environments.model.case import Case
from trajudge.environments.model.config import Config
from trajudge.environments.model.operation_codes import operation_code
from trajudge.environments.model.page import Notice, Word
from trajudge.environments.model.site import Site
from trajudge.environments.model.spec import AnswerSpec, App, Bound, Scenario
from trajudge.environments.model.wording import (
    declared_line,
    with_answer_form,
    without_answer_form,
    worded,
)
from trajudge.environments.verify.answers import answered, only_value
from trajudge.environments.verify.frame import ChangeReport, report_changes
from trajudge.environments.verify.truth import ResolvedAnswer, code_answer, query_answer, reply
from trajudge.trajectories.model import Record

MOST_ACTIONS = 50
CONSTANTS = ("", "yes", "no", "0", "1", "N/A")
_UNSEALED = b""  # offline codes are shown to nobody

Reason = Literal[
    "feasible",
    "coherent",
    "non-trivial",
    "unique",
    "distinct",
    "leak-free",
    "theme",
    "browser",
]


class Reject(Record):
    """Which promise a configuration breaks, and how; ``theme`` and ``browser`` are found by the
    later stages. ``detail`` is the same for the same fault."""

    reason: Reason
    detail: str


class _Rejected(Exception):
    def __init__(self, reason: Reason, detail: str) -> None:
        self.reject = Reject(reason=reason, detail=detail)


class _Task(NamedTuple):
    """A bound configuration. ``asked`` are the answers that the state before gives."""

    app: App
    scenario: Scenario
    config: Config
    bound: Bound
    goal: str
    state: ReplayableState
    asked: tuple[ResolvedAnswer, ...]

    def code(self, table: str, key: str) -> str:
        return operation_code(_UNSEALED, self.scenario.id, table, dict(self.state.row(table, key)))


def check(app: App, config: Config, wording: str | None = None) -> Case | Reject:
    """Return the case, or why the configuration is none. ``wording`` is a goal (with placeholders)
    in place of the scenario's own. Raises KeyError for an unknown scenario."""
    scenario = app.scenario(config.scenario)
    state = profiles.replayable_state(app, config.profile, config.seed)
    try:
        with state.rollback():
            return _checked(app, scenario, config, state, wording)
    except _Rejected as rejected:
        return rejected.reject


def _checked(
    app: App, scenario: Scenario, config: Config, state: ReplayableState, wording: str | None
) -> Case:
    task = _task(app, scenario, config, state, wording)
    _unique(task)
    _distinct(task)
    _nontrivial(task)
    walk = _walked(task)
    _leak_free(task, walk)
    return Case(
        config=config,
        goal=task.goal,
        domain=app.domain,
        vector=vector(measure(scenario, walk)),
        level=scenario.demand,
        shortest=walk.moved + 1,
    )


def _task(
    app: App,
    scenario: Scenario,
    config: Config,
    state: ReplayableState,
    wording: str | None = None,
) -> _Task:
    places = instance(app.id, scenario.id, tuple(scenario.slots), config.instance, config.seed)
    try:
        bound = bind(scenario, places, state)
    except Infeasible as error:
        reason: Reason = "unique" if str(error).endswith("a tie") else "feasible"
        raise _Rejected(reason, f"slot {error}") from None
    try:
        goal = (
            with_answer_form(filled(wording, bound), scenario)
            if wording
            else worded(scenario, config, bound)
        )
    except KeyError as error:
        raise _Rejected("coherent", f"the goal names {error}, which is no slot") from None
    if "{" in goal or "}" in goal:
        raise _Rejected("coherent", "a placeholder of the goal is not filled")
    if not scenario.answers and not scenario.expect:
        raise _Rejected("coherent", "the scenario asks for nothing")
    values = parameters(bound)
    answers = tuple(
        query_answer(answer, state, values) for answer in scenario.answers if _early(answer)
    )
    return _Task(app, scenario, config, bound, goal, state, answers)


def _early(answer: AnswerSpec) -> bool:
    return answer.kind != "code" and answer.when == "before"


# --- unique, distinct, non-trivial ---------------------------------------------------------------


def _unique(task: _Task) -> None:
    for answer, resolved in zip(filter(_early, task.scenario.answers), task.asked, strict=True):
        if resolved.values:
            continue
        alternatives = profiles.answers(task.state, answer, task.bound)
        if alternatives:
            raise _Rejected("unique", f"the {answer.kind} has {len(alternatives)} answers")
        raise _Rejected("feasible", f"the {answer.kind} has no answer")


def _distinct(task: _Task) -> None:
    if any(answer.kind == "none" for answer in task.asked):  # nothing makes it possible
        return
    for slot in task.scenario.mistakable:
        if near_miss(task.scenario, task.bound, slot, task.state) is None:
            raise _Rejected("distinct", f"no decoy of slot {slot} makes a difference")


def _nontrivial(task: _Task) -> None:
    """With an expectation, whoever changes nothing fails; else the answer has to be found."""
    if task.scenario.expect or all(answer.kind == "none" for answer in task.asked):
        return
    common = profiles.most_common(task.app, task.config, task.scenario, task.bound, task.state)
    for message in (*CONSTANTS, *common):
        facts = answered(task.asked, declared_line([message]))
        if all(fact.right for fact in facts):
            raise _Rejected("non-trivial", f"the answer is {message!r} for everybody")


# --- feasible, coherent: the oracle's walk -------------------------------------------------------


def _walked(task: _Task) -> Walk:
    walk = _plan_walked(task)
    if walk.moved > MOST_ACTIONS:
        raise _Rejected("feasible", f"the plan takes more than {MOST_ACTIONS} actions")
    if sum(charts(visit.page) for visit in walk.visits) < task.scenario.charts:
        raise _Rejected("coherent", "the plan does not come to the charts")
    _solved(task, walk)
    return walk


def _plan_walked(task: _Task) -> Walk:
    interface = ui(task.app, task.config.ui, task.config.seed)
    walk = Walk(Site(task.app, task.state, interface, task.code))
    walk.open(interface.start, {})
    try:
        moves = task.scenario.plan(task.bound)
        for move in moves:
            _worded(task.app, move.label, move.text)
            pages = len(walk.visits)
            walk.do(move)
            if len(walk.visits) > pages:
                _answered_as_meant(walk, move.refused)
    except ControlNotFound as lost:
        raise _Rejected("feasible", f"the plan is lost: {lost}") from None
    return walk


def _worded(app: App, *labels: object) -> None:
    for label in labels:
        if isinstance(label, Word) and label.key not in app.words and label.key not in WORDS:
            raise _Rejected("coherent", f"the word {label.key!r} has no wording")


def _answered_as_meant(walk: Walk, refused: bool) -> None:
    """Check that the page is a refusal where the plan says so, and nowhere else."""
    first = walk.page.blocks[0] if walk.page.blocks else None
    if (isinstance(first, Notice) and first.error) != refused:
        meant = "is not refused" if refused else "is refused"
        raise _Rejected("feasible", f"the plan {meant} on page {walk.visits[-1].name!r}")


def _solved(task: _Task, walk: Walk) -> None:
    """Check that plan and honest last message are a success without a side effect."""
    reading = report_changes(task.scenario, task.bound, task.state.changes())
    for predicate in reading.predicates:
        if not predicate.holds:
            raise _Rejected("feasible", f"the plan does not do: {predicate.name}")
    outside = [fact for fact in reading.changes if not fact.inside]
    if outside:
        raise _Rejected("feasible", f"the plan has a side effect on table {outside[0].table}")
    _told(task, walk, reading)


def _right(task: _Task, reading: ChangeReport) -> tuple[ResolvedAnswer, ...]:
    """Return all answers, now that the plan was carried out."""
    early, values = iter(task.asked), parameters(reading.bound)
    return tuple(
        code_answer(answer, reading.rows, task.code)
        if answer.kind == "code"
        else next(early)
        if answer.when == "before"
        else query_answer(answer, task.state, values)
        for answer in task.scenario.answers
    )


def _told(task: _Task, walk: Walk, reading: ChangeReport) -> None:
    """Check that an honest last message is right, and the code can be read."""
    right = _right(task, reading)
    for template in task.scenario.replies if task.scenario.answers else ():
        try:
            sentence = reply(template, reading.bound, right)
        except KeyError as error:
            raise _Rejected("coherent", f"a reply names {error}, which is no slot") from None
        values = [value for answer in right for value in answer.values]
        for fact in answered(right, f"{sentence}\n{declared_line(values)}"):
            if not fact.right:
                raise _Rejected("coherent", f"a declared {fact.kind} is not right: {fact.reason}")
    for answer in right:
        if answer.kind == "code" and not any(
            answer.values[0] in text
            for visit in reversed(walk.visits)
            for text in texts(visit.page)
        ):
            raise _Rejected("coherent", "the operation code is not shown")


# --- leak-free -----------------------------------------------------------------------------------


def _leak_free(task: _Task, walk: Walk) -> None:
    if ordered := profiles.ordered_key(task.app, task.config.profile, task.config.seed):
        raise _Rejected("leak-free", f"the keys of {ordered}")
    if not task.asked:
        return
    if _given_away(task.asked, without_answer_form(task.goal, task.scenario)):
        raise _Rejected("leak-free", "the goal says the answer")
    if _given_away(task.asked, " | ".join(texts(walk.visits[0].page))):
        raise _Rejected("leak-free", "the start page says the answer and nothing else of its kind")
    typed_in = {str(move.text) for move in task.scenario.plan(task.bound)}
    shown = {
        value for visit in walk.visits for name, value in visit.args.items() if name != PART
    } - typed_in
    answers = {value for answer in task.asked for value in answer.values}
    if shown & answers:
        raise _Rejected("leak-free", "an address says the answer")


def _given_away(answers: tuple[ResolvedAnswer, ...], text: str) -> bool:
    """Tell whether somebody who recites the text is right."""
    return all(only_value(answer, text) for answer in answers)
