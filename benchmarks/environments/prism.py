"""PRISM's five principles as facts that can fail, for these environments and three peers.

The principles are those of Statistical Precipice (section 3 and appendix 20, arXiv 2605.08261). A
principle is met where all of its facts are; each has a threshold that is the same for everybody,
and that stood here before anything was measured. What is not known of a benchmark stays unknown.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice, pairwise
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

from benchmarks.environments.content import seen_pages
from benchmarks.environments.measuring import Spent, spent
from benchmarks.environments.miniwob_probe import controls
from benchmarks.environments.sample import configs, sound
from tests.environments.agents.blind_replay import SECRET, replayed, solution
from trajudge import load
from trajudge.environments.agents.protocol import Job, NotPlayed
from trajudge.environments.agents.script import AGENTS, Behaviour
from trajudge.environments.apps import APPS, load_app
from trajudge.environments.checks.guessing import guessing_floors
from trajudge.environments.checks.integrity import check
from trajudge.environments.checks.profiles import replayable_state
from trajudge.environments.checks.variation import AXES, Axis, axis_neighbours, expected_outcome
from trajudge.environments.gym import WebEnv
from trajudge.environments.model import axes
from trajudge.environments.model.case import Case
from trajudge.environments.model.config import Config
from trajudge.environments.model.state import digest
from trajudge.environments.model.wording import without_answer_form
from trajudge.environments.recording.recorder import recorded_offline
from trajudge.environments.serving.noise import KINDS
from trajudge.environments.serving.run import open_run
from trajudge.environments.text import TextSession
from trajudge.rules.audit.blind import blind_scores
from trajudge.rules.audit.suites import open_tasks
from trajudge.stats.intervals import wilson

SEEDS = 3  # beginnings of a task that are compared


class Fact(NamedTuple):
    """What is measured of a benchmark, and from which value on it holds."""

    principle: str
    key: str
    statement: str
    goal: str
    holds: Callable[[float], bool]


def _least(limit: float) -> Callable[[float], bool]:
    return lambda value: value >= limit


def _most(limit: float) -> Callable[[float], bool]:
    return lambda value: value <= limit


FACTS = (
    Fact("privileged", "model", "tasks that a model judges", "none", _most(0)),
    Fact("privileged", "forged", "runs that forge a success and get it", "none", _most(0)),
    Fact("realistic", "characters", "characters of a page, median", ">= 6,000", _least(6000)),
    Fact("realistic", "controls", "controls of a page, median", ">= 30", _least(30)),
    Fact("realistic", "sites", "tasks over several sites", ">= 10 %", _least(0.1)),
    Fact("realistic", "interruptions", "kinds of interruption", ">= 3", _least(3)),
    Fact("integrity", "solved", "tasks that a known solution solves", ">= 99 %", _least(0.99)),
    Fact("integrity", "idle", "tasks solved by doing nothing", "none", _most(0)),
    Fact("integrity", "blind", "tasks solved by the best blind guess", "<= 3 %", _most(0.03)),
    Fact("integrity", "told", "answers that stand in the goal", "none", _most(0)),
    Fact("sandboxed", "same", "resets that give the same page again", "all", _least(1)),
    Fact("sandboxed", "abroad", "pages that ask another host", "none", _most(0)),
    Fact("sandboxed", "reset", "CPU of a reset in Chromium", "<= 120 ms", _most(120)),
    Fact("multifactorial", "axes", "axes that move, each alone", ">= 2", _least(2)),
    Fact(
        "multifactorial", "beginnings", f"beginnings among {SEEDS} seeds that differ", ">= 90 %",
        _least(0.9),
    ),
    Fact(
        "multifactorial", "changed", "next instances that ask for something else", ">= 95 %",
        _least(0.95),
    ),
    Fact(
        "multifactorial", "replayed", "solutions replayed blindly, all axes changed",
        "<= 10 % at 95 %", _most(0.1),
    ),
)  # fmt: skip


class Figure(NamedTuple):
    """What a benchmark shows of a fact; without a value it is unknown whether the fact holds."""

    value: float | None
    text: str


Figures = Mapping[str, Figure]
UNKNOWN = Figure(None, "unknown")


def part(count: int, of: int) -> Figure:
    return Figure(count / of, f"{count} of {of}") if of else UNKNOWN


def share(values: Collection[float]) -> Figure:
    return Figure(mean(values), f"{mean(values):.1%}")


# --- these environments --------------------------------------------------------------------------


def own(count: int, looks: int, suites: int) -> dict[str, Figure]:
    """Measure the facts on sound cases of ``count`` scenarios: in the text engine, resets apart."""
    cases = sound(count)
    every = [(load_app(name), scenario) for name in APPS for scenario in load_app(name).scenarios]
    pages = list(_pages(looks))
    floors = [
        floor.share
        for name in APPS
        for floor in guessing_floors(load_app(name), load_app(name).scenarios, suites).values()
    ]
    unjudged = sum(not (scenario.answers or scenario.expect) for _, scenario in every)
    apart = sum(scenario.family == "applications" for _, scenario in every)
    return {
        "model": part(unjudged, len(every)),
        "forged": _ended_well(cases, Behaviour.CHEATS),
        "characters": Figure(length := median(page.length for page in pages), f"{length:,.0f}"),
        "controls": Figure(usable := median(page.controls for page in pages), f"{usable:.0f}"),
        "sites": part(apart, len(every)),
        "interruptions": Figure(len(KINDS), f"{len(KINDS)}"),
        "idle": _ended_well(cases, Behaviour.NOTHING),
        "blind": share(floors),
        "told": _told((goal_of(case), answers_of(case.config)) for case in cases),
        "same": _same(cases),
        "abroad": part(sum(page.abroad for page in pages), len(pages)),
        "reset": _resets(cases[:20]),
        "axes": _axes(cases),
        "beginnings": _beginnings(cases),
        "changed": _changed(cases),
        **_solutions(cases),
    }


class _Measured(NamedTuple):
    length: int
    controls: int
    abroad: bool


def _pages(looks: int) -> Iterator[_Measured]:
    """Yield what is measured of every page: its tree, and whether any of its attributes is the
    address of another host."""
    for seen in seen_pages(looks):
        texts = seen.session.details().dom["strings"]
        addresses = [text for text in texts if re.match(r"(?:[a-z]+:)?//", text)]
        abroad = [text for text in addresses if not text.startswith(seen.session.run.origin)]
        yield _Measured(len(seen.tree), controls(seen.tree), bool(abroad))


def _ended_well(cases: Sequence[Case], behaviour: Behaviour) -> Figure:
    """Count the successes of a scripted agent."""
    agent = next(name for name, known in AGENTS.items() if known is behaviour)
    ended = []
    for case in cases:
        job = Job(config=case.config, agent=agent, goal=case.goal, shortest=case.shortest)
        try:
            ended.append(recorded_offline(job, 0).finding.labels.success is True)
        except NotPlayed:  # there is nothing to forge
            continue
    return part(sum(ended), len(ended))


def _solutions(cases: Sequence[Case]) -> dict[str, Figure]:
    """Play every solution, and play it back blindly on the same case (which must succeed, or the
    replay would say nothing) and where every axis is another."""
    solved, again, elsewhere = [], [], []
    for case in cases:
        recorded = solution(case)
        solved.append(recorded.finding.labels.success is True)
        again.append(replayed(recorded, case) is True)
        if (outcome := replayed(recorded, case, AXES)) is not None:
            elsewhere.append(outcome)
    limit = float(wilson(sum(elsewhere), len(elsewhere)).high)
    text = f"{sum(elsewhere)} of {len(elsewhere)} (same case: {sum(again)} of {len(again)})"
    return {"solved": part(sum(solved), len(solved)), "replayed": Figure(limit, text)}


def _start(config: Config) -> tuple[str, str]:
    """Return the goal and the first page of a configuration."""
    run = open_run(config, SECRET)
    with closing(run.state):
        return run.goal, TextSession(run).observe().observation.axtree or ""


def _same(cases: Sequence[Case]) -> Figure:
    """Open every case, forget all data, and open it again."""
    first = [_start(case.config) for case in cases]
    for made in (axes.profile, axes._rows, replayable_state):
        made.cache_clear()
    return part(sum(_start(c.config) == f for c, f in zip(cases, first, strict=True)), len(cases))


def _resets(cases: Sequence[Case]) -> Figure:
    env = WebEnv(cases=cases, engine="chromium", pictures=False)
    env.reset(seed=0)  # starts the browser
    used: list[Spent] = []
    for case in cases:
        with spent() as one:
            env.reset(options={"case": case.id})
        used.append(one)
    env.close()
    half = 1000 * median(one.cpu for one in used)
    return Figure(half, f"{half:.0f} ms")


def _axes(cases: Sequence[Case]) -> Figure:
    """Count the axes that change goal or first page in at least half of the cases, while the data
    stay as they are unless the axis is theirs."""
    moving = []
    for axis in AXES:
        others = [(case, other) for case in cases if (other := _next(case, axis))]
        moved = sum(_start(case.config) != _start(other.config) for case, other in others)
        alone = all(
            axis == "profile" or _data(case.config) == _data(other.config) for case, other in others
        )
        if alone and others and moved >= len(others) / 2:
            moving.append(axis)
    return Figure(len(moving), f"{len(moving)} ({', '.join(moving)})")


def _next(case: Case, axis: Axis) -> Case | None:
    return next(axis_neighbours(case.config, [axis]), None)


def _data(config: Config) -> str:
    with closing(axes.open_state(load_app(config.app), config)) as state:
        return digest(state.dump())


def _beginnings(cases: Sequence[Case]) -> Figure:
    """Count the different beginnings of sound configurations, each drawn by another seed."""
    different = []
    for case in cases:
        app = load_app(case.config.app)
        drawn = islice(configs(app, case.config.scenario, 7), 20 * SEEDS)
        starts = [_start(c) for c in islice((c for c in drawn if _sound(c)), SEEDS)]
        different.append(len(set(starts)) / SEEDS)
    return share(different)


def _sound(config: Config) -> bool:
    return isinstance(check(load_app(config.app), config), Case)


def _changed(cases: Sequence[Case]) -> Figure:
    pairs = [(case, other) for case in cases if (other := _next(case, "instance"))]
    changed = [expected_outcome(a.config) != expected_outcome(b.config) for a, b in pairs]
    return part(sum(changed), len(changed))


def goal_of(case: Case) -> str:
    scenario = load_app(case.config.app).scenario(case.config.scenario)
    return without_answer_form(case.goal, scenario)


def answers_of(config: Config) -> list[str]:
    """Return what a question's right answer says; none where it is that the task cannot be done."""
    scenario = load_app(config.app).scenario(config.scenario)
    if any(answer.kind in ("none", "code") for answer in scenario.answers):
        return []
    answers, _ = expected_outcome(config)
    return [str(value) for values in answers for value in values]


def _told(asked: Iterator[tuple[str, Sequence[str]]]) -> Figure:
    """Count the goals in which all of the right answer stands."""
    told = [all(_stands(value, goal) for value in values) for goal, values in asked if values]
    return part(sum(told), len(told))


def _stands(value: str, goal: str) -> bool:
    return bool(re.search(rf"(?<!\w){re.escape(value.strip())}(?!\w)", goal, re.IGNORECASE))


# --- peers ---------------------------------------------------------------------------------------


def webarena(tasks: Path | None, runs: Path | None) -> dict[str, Figure]:
    """Read the facts from WebArena's task file (``test.raw.json``) and recorded BrowserGym runs."""
    figures = {"interruptions": Figure(0, "none (WebForge's paper)")}
    if tasks:
        figures |= _of_task_file(tasks)
    if runs:
        steps = [step for run in load(f"browsergym:{runs}") for step in run.steps]
        trees = [step.observation.axtree for step in steps if step.observation.axtree]
        length, usable = median(map(len, trees)), median(map(controls, trees))
        figures["characters"] = Figure(length, f"{length:,.0f} ({len(trees)} pages)")
        figures["controls"] = Figure(usable, f"{usable:.0f}")
    return figures


def _of_task_file(path: Path) -> dict[str, Figure]:
    listed: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    references = [task["eval"].get("reference_answers") or {} for task in listed]
    exact = [
        [known["exact_match"]] if "exact_match" in known else known.get("must_include", [])
        for known in references
    ]
    templates: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for task in listed:
        templates[task["intent_template_id"]].append(task["eval"])
    pairs = [pair for evals in templates.values() for pair in pairwise(evals)]
    idle, best = _blind(path)
    return {
        "model": part(sum("fuzzy_match" in known for known in references), len(listed)),
        "sites": part(sum(len(task["sites"]) > 1 for task in listed), len(listed)),
        "idle": part(idle, len(listed)),
        "blind": part(best, len(listed)),
        "told": _told((t["intent"], a) for t, a in zip(listed, exact, strict=True)),
        "axes": Figure(1, "1 (instance)"),
        "beginnings": Figure(1 / SEEDS, "1 (no seed)"),
        "changed": part(sum(a != b for a, b in pairs), len(pairs)),
    }


def _blind(path: Path) -> tuple[int, int]:
    """Return how many tasks an agent passes that says nothing, and the best that sees no page."""
    _, rules, mode, tasks = open_tasks(path)
    scores = blind_scores(
        tasks,
        rules.evaluator(mode),
        rules.agents,
        rules.idle_trace,
        start_trace_of=rules.start_trace,
    )
    passed = {score.agent: len(score.passed) for score in scores}
    return passed["empty"], max(passed.values())


def miniwob(probed: Mapping[str, Any] | None) -> dict[str, Figure]:
    """Read the facts from what ``miniwob_probe`` printed."""
    if probed is None:
        return {}
    opened = probed["opened"]
    return {
        "model": part(probed["tasks"] - probed["rewarded_in_page"], probed["tasks"]),
        "forged": part(probed["forged"], opened),
        "characters": Figure(probed["characters"], f"{probed['characters']:,.0f}"),
        "controls": Figure(probed["controls"], f"{probed['controls']:.0f}"),
        "sites": Figure(0, f"0 of {probed['tasks']}"),
        "idle": part(probed["idle"], opened),
        "same": part(probed["same"], opened),
        "abroad": part(probed["asks_abroad"], probed["tasks"]),
        "reset": Figure(probed["reset_ms"], f"{probed['reset_ms']:.0f} ms"),
        "axes": Figure(1, "1 (the seed; PRISM's paper)"),
        "beginnings": share([count / probed["seeds"] for count in probed["distinct"]]),
    }


WEBFORGE = {  # what its paper says, nothing of it measured
    "model": Figure(1, "934 of 934 (paper)"),
    "forged": Figure(1, "codes made by the page (paper)"),
    "sites": Figure(0, "one site a task (paper)"),
    "interruptions": Figure(3, "3 (paper)"),
    "solved": Figure(1, "934 of 934 (paper; 107 by no agent)"),
    "abroad": Figure(0, "none (paper)"),
}


# --- the table -----------------------------------------------------------------------------------


def table(benchmarks: Mapping[str, Figures]) -> str:
    """Return the facts as a Markdown table, and what each principle comes to."""
    lines = [
        f"| fact | holds if | {' | '.join(benchmarks)} |",
        f"|---|---|{'---|' * len(benchmarks)}",
    ]
    for fact in FACTS:
        cells = [_cell(fact, figures.get(fact.key, UNKNOWN)) for figures in benchmarks.values()]
        lines.append(f"| {fact.principle}: {fact.statement} | {fact.goal} | {' | '.join(cells)} |")
    for principle in dict.fromkeys(fact.principle for fact in FACTS):
        verdicts = [_principle(principle, figures) for figures in benchmarks.values()]
        lines.append(f"| **{principle}** | all hold | {' | '.join(verdicts)} |")
    return "\n".join(lines)


def _cell(fact: Fact, figure: Figure) -> str:
    if figure.value is None:
        return figure.text
    return figure.text if fact.holds(figure.value) else f"**no:** {figure.text}"


def _principle(principle: str, figures: Figures) -> str:
    """Say whether all facts hold, else how many fail and how many are unknown."""
    values = [
        (fact, figures.get(fact.key, UNKNOWN).value)
        for fact in FACTS
        if fact.principle == principle
    ]
    failed = sum(value is not None and not fact.holds(value) for fact, value in values)
    unknown = sum(value is None for _, value in values)
    counted = [f"{failed} fail"] * bool(failed) + [f"{unknown} unknown"] * bool(unknown)
    return ", ".join(counted) or "met"
