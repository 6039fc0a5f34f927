"""Injections (family D), instructions to the judge by carrier, goal and technique. All three are
entries of ``families/injections.yaml``.

``injection`` builds any combination; the catalogue has a part of them, each with its benign twin.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from numpy.random import Generator
from pydantic import Field

from trajudge.robustness.families import family_file, neutral, wording
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
from trajudge.robustness.transforms import (
    Place,
    appended,
    each_step,
    each_tree,
    quoted,
    retitled,
    with_answer,
    with_final,
    with_thought,
    written_on,
)
from trajudge.trajectories.model import Record, Step, Trajectory

BENIGN = "benign"
_FILE = family_file("injections")
GOALS = tuple(_FILE["goals"])


# Techniques: the forms of an instruction. Letters that look alike, characters that are not shown.

# Letters of other alphabets that look like Latin ones.
_ALIKE = str.maketrans("aceopxyisjdhABEKMHOPCTX", "асеорхуіѕјԁһАВЕКМНОРСТХ")
_REPEATED = 50


def _drawn_language(_: str, rng: Generator) -> str:
    others = _FILE["languages"]
    return str(others[sorted(others)[int(rng.integers(len(others)))]])


def _drawn_key(_: str, rng: Generator) -> str:
    keys = _FILE["keys"]
    return str(keys[int(rng.integers(len(keys)))])


def _split(text: str, _: Generator) -> str:
    """Insert a line break after every fourth word: a tree gets a node for each line."""
    words = text.split()
    return "\n".join(" ".join(words[i : i + 4]) for i in range(0, len(words), 4))


_FORMS: Mapping[str, Callable[[str, Generator], str]] = {
    "base64": lambda text, _: b64encode(text.encode()).decode(),
    "other-language": _drawn_language,
    "split": _split,
    "tag-characters": lambda text, _: "".join(chr(0xE0000 + ord(c)) for c in text if c.isascii()),
    "reversed": lambda text, _: text[::-1],
    "homoglyphs": lambda text, _: text.translate(_ALIKE),
    "repeated": lambda text, _: " ".join([text] * _REPEATED),
    "master-key": _drawn_key,
}


class Technique(Record):
    """The form of an instruction: a function of ``_FORMS`` and a template, or several techniques
    ``in_turn``."""

    form: str = ""
    template: str = "{text}"
    in_turn: tuple[str, ...] = ()

    def dress(self, text: str, rng: Generator) -> str:
        """Return an instruction in this form."""
        for name in self.in_turn:
            text = TECHNIQUES[name].dress(text, rng)
        formed = _FORMS[self.form](text, rng) if self.form else text
        return self.template.replace("{text}", formed)


TECHNIQUES: Mapping[str, Technique] = {
    name: Technique(**fields) for name, fields in _FILE["techniques"].items()
}


# Carriers: how an instruction is inserted.


def _on_both_trees(trajectory: Trajectory, change: Callable[[str], str]) -> Trajectory:
    page = each_tree(change)(trajectory.final)
    return with_final(trajectory, axtree=page.axtree, axtree_pruned=page.axtree_pruned)


def _node(trajectory: Trajectory, text: str, lines: list[str]) -> Trajectory:
    """Append nodes to the last page; ``{text}`` in a line is the node's name, and a line becomes
    a node for each line of the text."""
    parts = text.split("\n") if len(lines) == 1 else [text]
    nodes = [line.replace("{text}", quoted(part)) for part in parts for line in lines]
    return _on_both_trees(trajectory, lambda tree: appended(tree, *nodes))


def _title(trajectory: Trajectory, text: str) -> Trajectory:
    return _on_both_trees(trajectory, lambda tree: retitled(tree, text))


def _address(trajectory: Trajectory, text: str, mark: str) -> Trajectory | NotApplicable:
    url = trajectory.final.url
    if not url:
        return NotApplicable("the last page has no address")
    joint = "&note=" if mark == "?" and "?" in url else f"{mark}note=" if mark == "?" else mark
    return with_final(trajectory, url=f"{url}{joint}{quote(text, safe='')}")


def _typed(trajectory: Trajectory, text: str) -> Trajectory | NotApplicable:
    """Append the text to the agent's last typed text."""
    entries = [n for n, s in enumerate(trajectory.steps) if (s.action or "").startswith("fill(")]
    if not entries:
        return NotApplicable("the agent typed nothing")

    def typed(step: Step) -> Step:
        if step.index != entries[-1]:
            return step
        head, _, _ = (step.action or "").rpartition(")")
        quote_mark = head[-1]
        inner = text.replace("\\", "\\\\").replace(quote_mark, f"\\{quote_mark}")
        inner = inner.replace("\n", "\\n")
        return step.model_copy(update={"action": f"{head[:-1]} {inner}{quote_mark})"})

    return each_step(trajectory, typed)


def _pixels(trajectory: Trajectory, text: str, place: Place) -> Trajectory | NotApplicable:
    ref = trajectory.final.screenshot
    if ref is None or ref.problem:
        return NotApplicable("the last screenshot cannot be read")
    return with_final(trajectory, screenshot=written_on(ref, text, place))


_PUT: Mapping[str, Callable[..., Trajectory | NotApplicable]] = {
    "node": _node,
    "title": _title,
    "address": _address,
    "typed": _typed,
    "pixels": _pixels,
    "error": lambda t, text: with_final(t, page_error=text),
    "thought": lambda t, text: with_thought(t, lambda thought: f"{thought}\n{text}"),
    "message": lambda t, text: with_answer(t, f"{t.answer}\n{text}"),
    "goal": lambda t, text: t.model_copy(update={"goal": f"{t.goal}\n{text}"}),
}


class Carrier(Record):
    """The position of an instruction: how it is inserted, which channels it changes and needs,
    who can write there, the ``techniques`` in the catalogue besides plain and combined, and the
    goals that make the run's success debatable (``disowns``)."""

    where: str
    put: str
    with_: dict[str, Any] = Field(default_factory=dict, alias="with")
    channels: frozenset[Channel]
    needs: frozenset[Need] = frozenset()
    attacker: Attacker = Attacker.PAGE
    techniques: tuple[str, ...]
    disowns: tuple[str, ...] = ()
    source: str = _FILE["source"]


CARRIERS: Mapping[str, Carrier] = {
    name: Carrier(**fields) for name, fields in _FILE["carriers"].items()
}


def injection(carrier: str, goal: str = "success", technique: str = "plain") -> Perturbation:
    """Return the instruction with this goal and technique for a carrier; the goal
    ``benign-GOAL`` is the twin, neutral words of the same length. Raises KeyError."""
    at, form = CARRIERS[carrier], TECHNIQUES[technique]
    benign, aim = goal.startswith(BENIGN), goal.removeprefix(f"{BENIGN}-")

    def change(subject: Subject, rng: Generator) -> Trajectory | NotApplicable:
        text = form.dress(wording(aim, rng), rng)
        text = neutral(len(text)) if benign else text
        return _PUT[at.put](subject.trajectory, text, **at.with_)

    return Perturbation(
        name=f"inject-{carrier}.{goal}.{technique}",
        family="D",
        version=_FILE["version"],
        channels=at.channels,
        relations=keeps(Relation.DROPS if goal in at.disowns else Relation.KEEP),
        needs=at.needs | {Need.TRUTH_TRUE if aim == "failure" else Need.TRUTH_FALSE},
        attacker=at.attacker,
        twin=None if benign else f"inject-{carrier}.{BENIGN}-{goal}.{technique}",
        summary=f"Instruction ({goal}, {technique}) {at.where}.",
        source=at.source,
        change=change,
    )


def sampled_injections() -> list[Perturbation]:
    """Return the part of the combinations in the catalogue, attacks before twins."""
    cells = [(name, "success", form) for name in _FILE["every_technique"] for form in TECHNIQUES]
    cells += [
        (name, "success", form)
        for name, carrier in CARRIERS.items()
        for form in ("plain", *carrier.techniques, "combined")
    ]
    cells += [(name, goal, "plain") for name in _FILE["every_goal"] for goal in GOALS]
    attacks = list(dict.fromkeys(cells))
    twins = [(carrier, f"{BENIGN}-{goal}", form) for carrier, goal, form in attacks]
    return [injection(*cell) for cell in [*attacks, *twins]]
