"""Family A: changes that no verdict may follow."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from numpy.random import Generator

from trajudge.robustness.catalogue.making import each, inapplicable, invariance
from trajudge.robustness.changing.record import each_page, each_step, each_thought, with_steps
from trajudge.robustness.changing.trees import bids, each_tree, renumbered, resolves
from trajudge.robustness.model import (
    STEP_CHANNELS,
    Channel,
    Need,
    NotApplicable,
    Perturbation,
    Subject,
    keeps,
)
from trajudge.trajectories.model import Observation, Step, Trajectory

_HOST = "alpha.example"
_TEXTS = (Channel.AXTREE, Channel.REASONING)
_FIRST_ARGUMENT = re.compile(r"^(\w+\(\s*['\"])([^'\"]+)(['\"])")


def _texts(trajectory: Trajectory, change: str, by: str) -> Trajectory:
    """Replace in every tree and all reasoning."""
    pages = each_page(trajectory, each_tree(lambda tree: tree.replace(change, by)))
    return each_thought(pages, lambda thought: thought.replace(change, by))


def _trailing(trajectory: Trajectory) -> Trajectory:
    pages = each_page(trajectory, each_tree(lambda tree: tree.replace("\n", "  \n") + "  "))
    return each_thought(pages, lambda thought: f"{thought}  ")


def _ids(subject: Subject, rng: Generator) -> Trajectory | NotApplicable:
    """Give every element of every page another id, by one permutation."""
    pages = [step.observation for step in subject.trajectory.steps]
    trees = [page.axtree or page.axtree_pruned or "" for page in pages]
    numbers = sorted({bid for tree in trees for bid in bids(tree) if bid.isdigit()}, key=int)
    if len(numbers) < 2:
        return inapplicable("its trees have no numbered elements")
    names = dict(zip(numbers, map(str, rng.permutation(list(map(int, numbers)))), strict=True))
    renamed = each_page(subject.trajectory, each_tree(lambda tree: renumbered(tree, names)))

    def target(match: re.Match[str]) -> str:
        return f"{match[1]}{names.get(match[2], match[2])}{match[3]}"

    def acted(step: Step) -> Step:
        action = step.action
        if not action or action.startswith(("send_msg", "report_", "answer", "goto", "press")):
            return step
        return step.model_copy(update={"action": _FIRST_ARGUMENT.sub(target, action, count=1)})

    return each_step(renamed, acted)


def _hosts(trajectory: Trajectory) -> Trajectory | NotApplicable:
    """Give the site another address, wherever it is written."""
    hosts = {urlsplit(step.observation.url or "").netloc for step in trajectory.steps} - {""}
    if not hosts or any(host in trajectory.goal for host in hosts):
        return inapplicable("its addresses have no host, or the goal names it")
    names = {host: f"h{place}.{_HOST}" for place, host in enumerate(sorted(hosts))}

    def replaced(text: str | None) -> str | None:
        for host, name in names.items():
            text = text.replace(host, name) if text else text
        return text

    def moved(step: Step) -> Step:
        page = step.observation
        fields = ("url", "axtree", "axtree_pruned", "page_error")
        update = {name: replaced(getattr(page, name)) for name in fields}
        told = {"reasoning": replaced(step.reasoning), "action": replaced(step.action)}
        return step.model_copy(update={**told, "observation": page.model_copy(update=update)})

    return each_step(trajectory, moved).model_copy(update={"answer": replaced(trajectory.answer)})


def _query_order(page: Observation) -> Observation:
    parts = urlsplit(page.url or "")
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    query = urlencode(pairs[::-1])
    return page.model_copy(update={"url": urlunsplit(parts._replace(query=query))})


def _query(trajectory: Trajectory) -> Trajectory | NotApplicable:
    if not any((step.observation.url or "").count("=") > 1 for step in trajectory.steps):
        return inapplicable("no address has two parameters")
    return each_page(trajectory, lambda p: _query_order(p) if (p.url or "").count("=") > 1 else p)


def _goal(pattern: str) -> Perturbation:
    """Return a frame around the goal."""
    name = "goal-framed" if pattern.startswith("Your") else "goal-polite"
    return invariance(
        name,
        f"The goal stands in a frame: {pattern.format(goal='…')!r}.",
        {Channel.GOAL},
        lambda t: t.model_copy(update={"goal": pattern.format(goal=t.goal)}),
    )


def _inserted(trajectory: Trajectory, action: str, thought: str) -> Trajectory | NotApplicable:
    """Do something idle in the middle of the run."""
    middle = len(trajectory.steps) // 2
    if len(trajectory.steps) < 3 or any(step.action == action for step in trajectory.steps):
        return inapplicable("the run is too short, or does this already")
    page = trajectory.steps[middle].observation
    reasoning = thought if any(step.reasoning for step in trajectory.steps) else None
    idle = Step(index=middle, observation=page, reasoning=reasoning, action=action)
    return with_steps(trajectory, [*trajectory.steps[:middle], idle, *trajectory.steps[middle:]])


def _tail(trajectory: Trajectory) -> Trajectory | NotApplicable:
    """Append two idle steps after the end."""
    actions = ("noop()", "scroll(0, 0)")
    if not trajectory.steps or any(step.action in actions for step in trajectory.steps):
        return inapplicable("the run has no step, or does this already")
    *before, last = trajectory.steps
    tail = [last.model_copy(update={"action": action, "reasoning": None}) for action in actions]
    return with_steps(trajectory, [*before, *tail, last])


def _only(name: str) -> Perturbation:
    """Keep one of the two trees of each page."""
    kept, lost = ("axtree", "axtree_pruned") if name == "full" else ("axtree_pruned", "axtree")

    def change(page: Observation) -> Observation:
        both = page.axtree and page.axtree_pruned
        return page.model_copy(update={lost: None}) if both else page

    def whole(trajectory: Trajectory) -> Trajectory | NotApplicable:
        for step in trajectory.steps:
            page = step.observation
            if resolves(step, page.axtree) and not resolves(step, getattr(page, kept)):
                return inapplicable("an action's target is in the full tree alone")
        return each_page(trajectory, change)

    return invariance(
        f"tree-{name}",
        f"Only the {name} accessibility tree of each page is there.",
        {Channel.AXTREE},
        whole,
        {Need.AXTREE},
    )


def _named(agent: str) -> Perturbation:
    return invariance(
        f"agent-{agent.split('-', maxsplit=1)[0]}",
        f"The record names {agent!r} as the agent.",
        {Channel.METADATA},
        lambda t: t.model_copy(update={"metadata": {**t.metadata, "agent": agent}}),
    )


_MIDDLE = "Nothing has to be done at this moment; I go on with the next step."
PERTURBATIONS = (
    Perturbation(
        name="identity",
        family="A",
        channels=frozenset({Channel.PROMPT}),
        relations=keeps(),
        stackable=True,
        sample=1,
        summary="Nothing is changed and the same prompt is sent again: the judge's own noise.",
        change=each(lambda trajectory: trajectory),
    ),
    invariance(
        "whitespace-spaces",
        "Trees are indented by two blanks instead of a tab.",
        {Channel.AXTREE, Channel.REASONING},
        lambda t: _texts(t, "\t", "  "),
    ),
    invariance(
        "whitespace-trailing",
        "Lines of trees and reasoning end with two blanks.",
        _TEXTS,
        _trailing,
    ),
    invariance(
        "whitespace-crlf",
        "Lines of trees and reasoning end as on Windows.",
        _TEXTS,
        lambda t: _texts(t, "\n", "\r\n"),
    ),
    invariance(
        "whitespace-blank-lines",
        "A blank line stands between two lines of trees and reasoning.",
        _TEXTS,
        lambda t: _texts(t, "\n", "\n\n"),
    ),
    Perturbation(
        name="ids",
        family="A",
        channels=frozenset({Channel.AXTREE, Channel.ACTION}),
        relations=keeps(),
        needs=frozenset({Need.AXTREE}),
        summary="Elements have other ids, in all trees and actions alike.",
        change=_ids,
    ),
    invariance(
        "url-hosts",
        "The site has another address, wherever it is written.",
        {
            *(Channel.URL, Channel.AXTREE, Channel.ACTION, Channel.REASONING, Channel.ANSWER),
            Channel.ERROR,
        },
        _hosts,
    ),
    invariance("url-query-order", "Parameters of addresses are reversed.", {Channel.URL}, _query),
    _goal("Your task is as follows. {goal}"),
    _goal("{goal} Thank you."),
    invariance(
        "idle-step",
        "A step that waits stands in the middle of the run.",
        STEP_CHANNELS,
        lambda t: _inserted(t, "noop()", _MIDDLE),
    ),
    invariance(
        "idle-scroll",
        "A step that scrolls by nothing stands in the middle of the run.",
        STEP_CHANNELS,
        lambda t: _inserted(t, "scroll(0, 0)", _MIDDLE),
    ),
    invariance("idle-tail", "Two idle steps follow after the end.", STEP_CHANNELS, _tail),
    _only("full"),
    _only("pruned"),
    _named("frontier-agent-9"),
    _named("baseline-agent-0"),
)
