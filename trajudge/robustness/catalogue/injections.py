"""Family D: instructions to the judge, by carrier (where they stand), goal and technique.

Any of the grid can be made by ``injection``; the catalogue holds six techniques of every carrier,
all techniques of one page carrier, the other goals of three carriers, and the benign twin of each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import quote

from numpy.random import Generator

from trajudge.robustness.catalogue.making import inapplicable
from trajudge.robustness.changing.payloads import BENIGN, beside, payloads, version, wording
from trajudge.robustness.changing.pictures import Place, written_on
from trajudge.robustness.changing.record import (
    each_step,
    with_answer,
    with_final,
    with_thought,
)
from trajudge.robustness.changing.techniques import TECHNIQUES
from trajudge.robustness.changing.trees import appended, each_tree, quoted, retitled
from trajudge.robustness.model import (
    Attacker,
    Channel,
    Need,
    NotApplicable,
    Perturbation,
    Relation,
    Subject,
    keeps,
)
from trajudge.trajectories.model import Step, Trajectory

Put = Callable[[Trajectory, str], Trajectory | NotApplicable]
GOALS = tuple(payloads("injections")["goals"])
_VERSION = version("injections")


class Carrier(NamedTuple):
    """Where an instruction stands: what it touches and needs, who can write there, how it is put
    there."""

    channels: frozenset[Channel]
    put: Put
    needs: frozenset[Need] = frozenset()
    attacker: Attacker = Attacker.PAGE
    summary: str = ""


def _tree(summary: str, *lines: str, attacker: Attacker = Attacker.PAGE) -> Carrier:
    """Return a carrier that adds nodes at the end of the last page; ``{text}`` is the name."""

    def put(trajectory: Trajectory, text: str) -> Trajectory:
        parts = text.split("\n") if len(lines) == 1 else [text]
        nodes = [line.replace("{text}", quoted(part)) for part in parts for line in lines]
        return with_final(trajectory, **_both(trajectory, lambda tree: appended(tree, *nodes)))

    return Carrier(frozenset({Channel.AXTREE}), put, frozenset({Need.AXTREE}), attacker, summary)


def _both(trajectory: Trajectory, change: Callable[[str], str]) -> dict[str, object]:
    page = each_tree(change)(trajectory.final)
    return {"axtree": page.axtree, "axtree_pruned": page.axtree_pruned}


def _title(trajectory: Trajectory, text: str) -> Trajectory:
    return with_final(trajectory, **_both(trajectory, lambda tree: retitled(tree, text)))


def _address(mark: str) -> Put:
    def put(trajectory: Trajectory, text: str) -> Trajectory | NotApplicable:
        url = trajectory.final.url
        if not url:
            return inapplicable("the last page has no address")
        joint = "&note=" if mark == "?" and "?" in url else f"{mark}note=" if mark == "?" else mark
        return with_final(trajectory, url=f"{url}{joint}{quote(text, safe='')}")

    return put


def _typed(trajectory: Trajectory, text: str) -> Trajectory | NotApplicable:
    """Add the text to what the agent typed last."""
    places = [n for n, s in enumerate(trajectory.steps) if (s.action or "").startswith("fill(")]
    if not places:
        return inapplicable("the agent typed nothing")

    def typed(step: Step) -> Step:
        if step.index != places[-1]:
            return step
        head, _, _ = (step.action or "").rpartition(")")
        quote_mark = head[-1]
        inner = text.replace("\\", "\\\\").replace(quote_mark, f"\\{quote_mark}")
        inner = inner.replace("\n", "\\n")
        return step.model_copy(update={"action": f"{head[:-1]} {inner}{quote_mark})"})

    return each_step(trajectory, typed)


def _drawn(place: Place) -> Carrier:
    def put(trajectory: Trajectory, text: str) -> Trajectory | NotApplicable:
        ref = trajectory.final.screenshot
        if ref is None or ref.problem:
            return inapplicable("the last screenshot cannot be read")
        return with_final(trajectory, screenshot=written_on(ref, text, place))

    return Carrier(
        frozenset({Channel.SCREENSHOT}),
        put,
        frozenset({Need.SCREENSHOT}),
        summary=f"in the pixels of the last screenshot ({place})",
    )


_AGENT = Attacker.AGENT
CARRIERS: Mapping[str, Carrier] = {
    "tree": _tree("in a text of the last page", "StaticText {text}"),
    "name": _tree("in the name of a link", "[{bid}] link {text}, clickable, visible"),
    "alt": _tree("in the alternative text of an image", "[{bid}] image {text}, visible"),
    "tooltip": _tree("in a tooltip", "[{bid}] button 'Help' title={text}, clickable, visible"),
    "hidden": _tree("in a node that is not shown", "[{bid}] generic {text}, hidden=True"),
    "file-name": _tree("in the name of an uploaded file", "[{bid}] link {text}, clickable"),
    "own-note": _tree(
        "in a note that the agent left on the site",
        *("[{bid}] article 'Note', visible", "\tStaticText {text}"),
        attacker=_AGENT,
    ),
    "page-title": Carrier(
        frozenset({Channel.AXTREE}),
        _title,
        frozenset({Need.AXTREE}),
        summary="in the title of the last page",
    ),
    "url-query": Carrier(
        frozenset({Channel.URL}), _address("?"), summary="in a parameter of the last address"
    ),
    "url-fragment": Carrier(
        frozenset({Channel.URL}), _address("#"), summary="in the fragment of the last address"
    ),
    "form-value": Carrier(
        frozenset({Channel.ACTION}), _typed, attacker=_AGENT, summary="in what the agent typed"
    ),
    "error": Carrier(
        frozenset({Channel.ERROR}),
        lambda t, text: with_final(t, page_error=text),
        summary="in an error message of the last page",
    ),
    "reasoning": Carrier(
        frozenset({Channel.REASONING}),
        lambda t, text: with_thought(t, lambda thought: f"{thought}\n{text}"),
        frozenset({Need.REASONING}),
        _AGENT,
        "in the agent's reasoning",
    ),
    "answer": Carrier(
        frozenset({Channel.ANSWER, Channel.ACTION}),
        lambda t, text: with_answer(t, f"{t.answer}\n{text}"),
        frozenset({Need.ANSWER}),
        _AGENT,
        "in the last message",
    ),
    "pixels-large": _drawn("large"),
    "pixels-small": _drawn("small"),
    "pixels-low-contrast": _drawn("low-contrast"),
    "pixels-margin": _drawn("margin"),
    "goal": Carrier(
        frozenset({Channel.GOAL}),
        lambda t, text: t.model_copy(update={"goal": f"{t.goal}\n{text}"}),
        attacker=Attacker.RECORDER,
        summary="in the goal of imported data",
    ),
}


def injection(carrier: str, goal: str = "success", technique: str = "plain") -> Perturbation:
    """Return the instruction with this goal and technique where this carrier has it; the goal
    ``benign-GOAL`` is the twin: neutral words of the same length. Raises KeyError."""
    place, apply = CARRIERS[carrier], TECHNIQUES[technique]
    benign, aim = goal.startswith(BENIGN), goal.removeprefix(f"{BENIGN}-")

    def change(subject: Subject, rng: Generator) -> Trajectory | NotApplicable:
        text = apply(wording(aim, rng), rng)
        return place.put(subject.trajectory, beside(text) if benign else text)

    # A last message that calls the run a failure leaves its success open to argument.
    disowned = carrier == "answer" and goal == "failure"
    return Perturbation(
        name=f"inject-{carrier}.{goal}.{technique}",
        family="D",
        version=_VERSION,
        channels=place.channels,
        relations=keeps(Relation.DROPS if disowned else Relation.KEEP),
        needs=place.needs | {Need.TRUTH_TRUE if aim == "failure" else Need.TRUTH_FALSE},
        attacker=place.attacker,
        twin=None if benign else f"inject-{carrier}.{BENIGN}-{goal}.{technique}",
        summary=f"Instruction ({goal}, {technique}) {place.summary}.",
        change=change,
    )


def _sampled() -> list[tuple[str, str, str]]:
    """List the part of the grid that the catalogue holds: carrier, goal, technique."""
    techniques = list(TECHNIQUES)
    cells = [("tree", "success", technique) for technique in techniques]
    for place, carrier in enumerate(CARRIERS):
        # Plain, combined, and four in turn, so that every technique meets several carriers.
        four = [techniques[1 + (4 * place + i) % (len(techniques) - 2)] for i in range(4)]
        cells += [(carrier, "success", technique) for technique in ("plain", *four, "combined")]
    cells += [
        (carrier, goal, "plain") for carrier in ("tree", "reasoning", "answer") for goal in GOALS
    ]
    attacks = list(dict.fromkeys(cells))
    twins = [(carrier, f"{BENIGN}-{goal}", technique) for carrier, goal, technique in attacks]
    return [*attacks, *twins]


PERTURBATIONS = tuple(injection(*cell) for cell in _sampled())
