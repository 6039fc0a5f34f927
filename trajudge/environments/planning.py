"""What is to be generated: which scenarios, and in which words beside their own.

A model may be asked: it chooses among the scenarios and words their goals, and whatever breaks a
rule is dropped with its reason; ground truth and verification are never a model's.
"""

from __future__ import annotations

import asyncio
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trajudge.environments.apps import load_app
from trajudge.environments.checks.difficulty import DIMENSIONS
from trajudge.environments.model.axes import generator
from trajudge.environments.model.case import Case, Vector
from trajudge.environments.model.spec import App, Scenario
from trajudge.judges.adapters.errors import CallFailed
from trajudge.judges.calls.handle import ModelHandle
from trajudge.judges.engine.budget import BudgetSpent
from trajudge.judges.model import Message, Model, Reply, Text
from trajudge.prompts.render import load_prompt
from trajudge.trajectories.model import Record, Seed
from trajudge.util.commands import MOST_CASES
from trajudge.util.errors import UserError, did_you_mean
from trajudge.util.validation import refused_value

Template = tuple[str, str]  # application and scenario


class SuiteSpecification(Record):
    """Specification of a suite: ``count`` cases of these applications (and one scenario of theirs,
    of a ``level`` or of exactly one ``vector``). ``noise`` lets configurations have noise."""

    apps: tuple[str, ...]
    scenario: str | None = None
    level: int | None = Field(default=None, ge=1, le=3)
    vector: Vector | None = None
    count: int = Field(default=20, ge=1, le=MOST_CASES)
    seed: Seed = 0
    noise: bool = False

    def wants(self, case: Case) -> bool:
        """Tell whether the measured difficulty is the one asked for."""
        return self.level in (None, case.level) and self.vector in (None, case.vector)


class Proposal(Record):
    """Something that a model proposed and that was dropped, or why it proposed nothing."""

    app: str
    scenario: str
    text: str
    reason: str


class GenerationPlan(NamedTuple):
    """Scenarios to draw from, in order, and the wordings that were accepted beside theirs."""

    templates: tuple[Template, ...]
    wordings: Mapping[Template, tuple[str, ...]]
    dropped: tuple[Proposal, ...] = ()


def planned(specification: SuiteSpecification, model: ModelHandle | None) -> GenerationPlan:
    """Plan, with a model if one is given."""
    rng = generator("plan", specification.seed)
    if model is None:
        return asyncio.run(plan(specification, rng))

    async def run() -> GenerationPlan:
        engines = model.open_engines(0.0)
        try:
            return await plan(specification, rng, model.ask(engines, 0, refresh=()))
        finally:
            await engines.close()

    return asyncio.run(run())


WORDINGS = 4  # accepted for one scenario
_SHOWN = 80  # characters of a dropped text that are kept


class _Proposed(BaseModel):
    model_config = ConfigDict(frozen=True)

    id: str
    goals: list[str] = Field(default_factory=list)


class _Reply(BaseModel):
    model_config = ConfigDict(frozen=True)

    scenarios: list[_Proposed]


async def plan(
    specification: SuiteSpecification, rng: np.random.Generator, ask: Model | None = None
) -> GenerationPlan:
    """Return the scenarios in a drawn order, the applications in turn; with a model those that it
    chose (all where it chose none) and the wordings of its that keep to the rules. Raises UserError
    for a scenario that no application has, and what stops every call (no key, no server)."""
    templates: list[Template] = []
    wordings: dict[Template, tuple[str, ...]] = {}
    dropped: list[Proposal] = []
    for name in specification.apps:
        app = load_app(name)
        scenarios = [
            s
            for s in app.scenarios
            if specification.scenario in (None, s.id) and specification.level in (None, s.demand)
        ]
        if ask is not None and scenarios:
            proposed, refused = await _proposals(specification, app, scenarios, ask)
            dropped += refused
            wordings |= {(name, described): texts for described, texts in proposed.items() if texts}
            scenarios = [s for s in scenarios if s.id in proposed] or scenarios
        templates += [(name, scenario.id) for scenario in scenarios]
    if not templates:
        known = _known(specification.apps)
        if specification.scenario in (None, *known):
            raise UserError(
                f"--level {specification.level}: no such scenario has this level: name another one"
            )
        close = did_you_mean(str(specification.scenario), known)
        raise UserError(
            f"no scenario of {', '.join(specification.apps)} is called {specification.scenario!r}"
            + (close or f": choose from {', '.join(known)}")
        )
    drawn = [templates[n] for n in rng.permutation(len(templates))]
    return GenerationPlan(tuple(_in_turn(drawn)), wordings, tuple(dropped))


def _in_turn(templates: Sequence[Template]) -> list[Template]:
    """Let the applications take turns, so that a few cases spread over all of them."""
    turns: Counter[str] = Counter()
    placed: list[tuple[int, Template]] = []
    for template in templates:
        placed.append((turns[template[0]], template))
        turns[template[0]] += 1
    return [template for _, template in sorted(placed, key=lambda place: place[0])]


def _known(apps: Sequence[str]) -> list[str]:
    return [scenario.id for name in apps for scenario in load_app(name).scenarios]


async def _proposals(
    specification: SuiteSpecification, app: App, scenarios: Sequence[Scenario], ask: Model
) -> tuple[dict[str, tuple[str, ...]], list[Proposal]]:
    """Return the wordings by scenario that the model chose, and what of its reply was dropped."""
    try:
        reply = await ask(_messages(specification, app, scenarios), stage="plan")
    except (CallFailed, BudgetSpent) as error:
        return {}, [_dropped(app, "", "", f"no reply: {error}")]
    return _read(app, scenarios, reply)


def _read(
    app: App, scenarios: Sequence[Scenario], reply: Reply
) -> tuple[dict[str, tuple[str, ...]], list[Proposal]]:
    if reply.finish != "stop":
        reason = "the model refused" if reply.finish == "refused" else "the reply was cut off"
        return {}, [_dropped(app, "", reply.text, reason)]
    try:
        reply_fields = _Reply.model_validate(_parsed(reply.text))
    except ValidationError as error:
        where = refused_value(error).field
        return {}, [_dropped(app, "", reply.text, f"not the JSON that was asked for ({where})")]
    except ValueError:
        return {}, [_dropped(app, "", reply.text, "not JSON")]
    return _sorted_out(app, {s.id: s for s in scenarios}, reply_fields)


def _parsed(text: str) -> object:
    """Return the JSON object of a reply, whatever stands around it. Raises ValueError."""
    start, end = text.find("{"), text.rfind("}")
    try:
        return json.loads(text[start : end + 1])
    except RecursionError:
        raise ValueError("nested too deep") from None


def _sorted_out(
    app: App, known: dict[str, Scenario], reply: _Reply
) -> tuple[dict[str, tuple[str, ...]], list[Proposal]]:
    accepted: dict[str, tuple[str, ...]] = {}
    dropped: list[Proposal] = []
    for one in reply.scenarios:
        scenario = known.get(one.id)
        if scenario is None:
            dropped.append(_dropped(app, one.id, "", "no such scenario"))
            continue
        kept = accepted.get(one.id, ())
        for text in one.goals:
            reason = fault(scenario, text)
            if not reason and text in (*kept, *scenario.goals):
                reason = "said already"
            if not reason and len(kept) == WORDINGS:
                reason = f"more than {WORDINGS}"
            if reason:
                dropped.append(_dropped(app, one.id, text, reason))
            else:
                kept = (*kept, text)
        accepted[one.id] = kept
    return accepted, dropped


def _dropped(app: App, scenario: str, text: str, reason: str) -> Proposal:
    return Proposal(app=app.id, scenario=scenario[:_SHOWN], text=text[:_SHOWN], reason=reason)


def _messages(
    specification: SuiteSpecification, app: App, scenarios: Sequence[Scenario]
) -> tuple[Message, ...]:
    prompt = load_prompt("goals")
    user = prompt.render(
        "user",
        title=app.title,
        domain=app.domain,
        wish=_wish(specification),
        scenarios=scenarios,
        most=WORDINGS,
    )
    return (
        Message(role="system", parts=(Text(text=prompt.render("system")),)),
        Message(role="user", parts=(Text(text=user),)),
    )


def _wish(specification: SuiteSpecification) -> str:
    if specification.vector is not None:
        dimensions = zip(DIMENSIONS, specification.vector, strict=True)
        return "difficulty from 1 to 3: " + ", ".join(f"{n} {grade}" for n, grade in dimensions)
    if specification.level is not None:
        return f"difficulty {specification.level} of 1 to 3"
    return "a wide variety"


_UNPRINTED = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
SHORTEST, LONGEST = 10, 400
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_DIGITS = re.compile(r"\d+")
_ADDRESS = re.compile(r"://|www\.|```|</?[a-z]", re.IGNORECASE)


def fault(scenario: Scenario, text: str) -> str:
    """Tell why this is no wording of the scenario's goal; "" if it is one."""
    bare = _PLACEHOLDER.sub("", text)
    stated = {number for goal in scenario.goals for number in _numbers(goal)}
    added = [number for number in _numbers(text) if number not in stated]
    faults = {
        f"{len(text)} characters: {SHORTEST} to {LONGEST} are allowed": not (
            SHORTEST <= len(text) <= LONGEST
        ),
        "not one line of plain text": any(
            unicodedata.category(character) in _UNPRINTED for character in text
        ),
        "other placeholders than the scenario's goal": _places(text)
        not in [_places(goal) for goal in scenario.goals],
        "a stray brace": "{" in bare or "}" in bare,
        "a link or markup": bool(_ADDRESS.search(bare)),
        f"a number that the scenario does not state: {''.join(added[:1])[:20]}": bool(added),
    }
    return next((reason for reason, broken in faults.items() if broken), "")


def _places(text: str) -> Counter[str]:
    return Counter(_PLACEHOLDER.findall(text))


def _numbers(goal: str) -> list[str]:
    return _DIGITS.findall(_PLACEHOLDER.sub("", goal))
