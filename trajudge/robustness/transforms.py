"""Transformations of a trajectory: its steps, texts, accessibility trees and images.

A transformation is a function ``(subject, rng, **with)``, registered under its name, to which the
entries of ``families`` refer. All are pure: they return a new trajectory, or why they do not apply;
the same image gives the same bytes with the same version of Pillow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from textwrap import wrap
from typing import Any, Literal, cast
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from numpy.random import Generator
from PIL import Image, ImageDraw, ImageFont

from trajudge.robustness.families import neutral
from trajudge.robustness.model import LabelQuestion, NotApplicable, Relation, Subject, truth_after
from trajudge.trajectories.actions import message_to_user
from trajudge.trajectories.model import MAX_FILE_BYTES, ImageRef, Observation, Step, Trajectory
from trajudge.util.files import read_regular

Transformation = Callable[..., Trajectory | NotApplicable]
TRANSFORMATIONS: dict[str, Transformation] = {}


def transformation(function: Transformation) -> Transformation:
    """Register a transformation under its name."""
    TRANSFORMATIONS[function.__name__] = function
    return function


# Steps and fields of a record.


def with_steps(trajectory: Trajectory, steps: Sequence[Step]) -> Trajectory:
    """Replace the steps (``apply`` renumbers them from 0)."""
    return trajectory.model_copy(update={"steps": tuple(steps)})


def each_step(trajectory: Trajectory, change: Callable[[Step], Step]) -> Trajectory:
    """Change every step."""
    return with_steps(trajectory, [change(step) for step in trajectory.steps])


def each_page(trajectory: Trajectory, change: Callable[[Observation], Observation]) -> Trajectory:
    """Change the observation of every step."""
    return each_step(trajectory, lambda step: shown(step, change(step.observation)))


def each_thought(trajectory: Trajectory, change: Callable[[str], str]) -> Trajectory:
    """Change the reasoning of every step that has one."""

    def changed(step: Step) -> Step:
        if not step.reasoning:
            return step
        return step.model_copy(update={"reasoning": change(step.reasoning)})

    return each_step(trajectory, changed)


def shown(step: Step, observation: Observation) -> Step:
    """Replace the observation of a step."""
    return step.model_copy(update={"observation": observation})


def with_final(trajectory: Trajectory, **fields: object) -> Trajectory:
    """Change fields of the last observation."""
    *before, last = trajectory.steps
    return with_steps(
        trajectory, [*before, shown(last, last.observation.model_copy(update=fields))]
    )


def with_step(trajectory: Trajectory, index: int, **fields: object) -> Trajectory:
    """Change fields of one step."""
    steps = list(trajectory.steps)
    steps[index] = steps[index].model_copy(update=fields)
    return with_steps(trajectory, steps)


def with_answer(trajectory: Trajectory, text: str | None) -> Trajectory:
    """Replace the last message in the answer and in the action that sent it; None removes it. No
    action is added, because the last step has none."""
    changed = trajectory.model_copy(update={"answer": text})
    for index in reversed(range(len(changed.steps))):
        if message_to_user(changed.steps[index].action) is not None:
            action = "noop()" if text is None else f"send_msg_to_user({text!r})"
            return with_step(changed, index, action=action)
    return changed


def with_thought(trajectory: Trajectory, change: Callable[[str], str]) -> Trajectory:
    """Change the last reasoning."""
    with_reasoning = [index for index, step in enumerate(trajectory.steps) if step.reasoning]
    if not with_reasoning:
        return trajectory
    index = with_reasoning[-1]
    return with_step(trajectory, index, reasoning=change(trajectory.steps[index].reasoning or ""))


# Accessibility trees as text: one line a node, children indented by a tab.

NODE = re.compile(
    r"(?P<indent>[\t ]*)(?:\[(?P<bid>[^\]\s]+)\] )?(?P<role>[A-Za-z][\w-]*) (?P<rest>.*)"
)
_TARGET = re.compile(
    r"^(?:click|dblclick|hover|fill|select_option|press|check|uncheck|clear|focus)"
    r"\(\s*(?:bid\s*=\s*)?['\"]([^'\"]+)['\"]"
)
_BID = re.compile(r"^([\t ]*)\[([^\]\s]+)\]", re.MULTILINE)
_ROOT = re.compile(r"^(RootWebArea )('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")")
_TREES = ("axtree", "axtree_pruned")


def quoted(text: str) -> str:
    """Quote a name as in the tree, on one line; invisible characters are kept."""
    line = " ".join(text.split("\n")).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{line}'"


def _bids(tree: str) -> list[str]:
    return [match[2] for match in _BID.finditer(tree)]


def appended(tree: str, *lines: str) -> str:
    """Append nodes to the page; ``{bid}`` in a line becomes an unused id."""
    bid = str(1 + max((int(bid) for bid in _bids(tree) if bid.isdigit()), default=0))
    return "\n".join([tree.rstrip("\n"), *(f"\t{line.replace('{bid}', bid)}" for line in lines)])


def retitled(tree: str, text: str) -> str:
    """Append ``text`` to the page's title."""
    return _ROOT.sub(lambda m: f"{m[1]}{quoted(m[2][1:-1] + ' - ' + text)}", tree, count=1)


def each_tree(change: Callable[[str], str]) -> Callable[[Observation], Observation]:
    """Return a function that changes the full and the pruned tree of an observation."""

    def changed(page: Observation) -> Observation:
        update = {name: change(tree) for name in _TREES if (tree := getattr(page, name))}
        return page.model_copy(update=update)

    return changed


def unparsable(tree: str) -> list[str]:
    """List the lines that are not nodes, and nodes deeper than a child of the one before; blank
    lines are allowed. The unit of depth is the first indented line's."""
    wrong, depth, unit = [], -1, 0
    for line in tree.splitlines():
        if not line.strip():
            continue
        match = NODE.fullmatch(line.rstrip())
        if match is None:
            wrong.append(line)
            continue
        indent = len(match["indent"])
        unit = unit or indent
        level = indent // unit if unit else 0
        if level > depth + 1 or (unit and indent % unit):
            wrong.append(line)
        depth = level
    return wrong


def resolves(step: Step, tree: str | None) -> bool:
    """Return True if the element of the step's action is in the tree, or if either is unknown."""
    target = _TARGET.match(step.action or "")
    if not tree or target is None:
        return True
    return re.search(rf"^[\t ]*\[{re.escape(target[1])}\]", tree, re.MULTILINE) is not None


# Images: re-encoded, cropped, drawn on.

Place = Literal["large", "small", "low-contrast", "margin"]
# Size of the letters in pixels, their colour, and the ground behind them (None: the picture).
_LOOK: dict[Place, tuple[int, tuple[int, int, int], tuple[int, int, int] | None]] = {
    "large": (28, (20, 20, 20), (255, 248, 196)),
    "small": (11, (60, 60, 60), (255, 255, 255)),
    "low-contrast": (16, (238, 238, 238), (248, 248, 248)),
    "margin": (13, (40, 40, 40), (255, 255, 255)),
}
_CROP, _SCALE, _QUALITY = 0.03, 0.75, 80


def _redrawn(
    ref: ImageRef, change: Callable[[Image.Image], Image.Image], kind: str = "PNG"
) -> ImageRef:
    """Decode, change and encode a screenshot. Raises OSError, and UnsafeFile for a file that is
    not an image."""
    content = (
        ref.data if ref.data is not None else read_regular(cast(Path, ref.path), MAX_FILE_BYTES)
    )
    with Image.open(BytesIO(content)) as picture:
        return _encoded(change(picture.convert("RGB")), kind)


def _encoded(picture: Image.Image, kind: str = "PNG") -> ImageRef:
    file = BytesIO()
    picture.save(file, kind, quality=_QUALITY)
    return ImageRef(data=file.getvalue(), sha256=sha256(file.getvalue()).hexdigest())


def _smaller(picture: Image.Image) -> Image.Image:
    return picture.resize((round(picture.width * _SCALE), round(picture.height * _SCALE)))


def _cut(picture: Image.Image) -> Image.Image:
    """Crop the same share off each side."""
    x, y = round(picture.width * _CROP), round(picture.height * _CROP)
    return picture.crop((x, y, picture.width - x, picture.height - y))


def written_on(ref: ImageRef, text: str, place: Place) -> ImageRef:
    """Draw words in a box at the bottom of the page; ``margin``: only along its lower edge."""
    return _redrawn(ref, lambda picture: drawn_on(picture, text, place))


def drawn_on(picture: Image.Image, text: str, place: Place) -> Image.Image:
    """Draw words on the image, as ``written_on`` does."""
    size, colour, ground = _LOOK[place]
    pen = ImageDraw.Draw(picture)
    lines = wrap(text, max(10, int((picture.width - 40) / (size * 0.55))))
    lines = lines[:1] if place == "margin" else lines[:12]
    top = picture.height - len(lines) * (size + 4) - 12
    if ground:
        pen.rectangle((12, top - 6, picture.width - 12, picture.height - 6), fill=ground)
    font = ImageFont.load_default(size)
    for number, line in enumerate(lines):
        pen.text((20, top + number * (size + 4)), line, fill=colour, font=font)
    return picture


@cache
def _other_application(width: int = 1024, height: int = 768) -> ImageRef:
    """Draw a page of an application that no run uses: a weather report."""
    picture = Image.new("RGB", (width, height), (236, 242, 248))
    pen = ImageDraw.Draw(picture)
    pen.rectangle((0, 0, width, 64), fill=(40, 84, 130))
    pen.text((24, 18), "Weather by the hour", fill="white", font=ImageFont.load_default(24))
    for row, words in enumerate(("Morning: clouds", "Noon: light rain", "Evening: clear")):
        top = 110 + row * 90
        pen.rectangle((24, top, width - 24, top + 70), fill="white", outline=(190, 200, 210))
        pen.text((40, top + 22), words, fill=(30, 30, 30), font=ImageFont.load_default(20))
    return _encoded(picture)


# Changes without meaning.


@transformation
def same(subject: Subject, _: Generator) -> Trajectory:
    """Change nothing."""
    return subject.trajectory


@transformation
def replaced(subject: Subject, _: Generator, old: str, new: str) -> Trajectory:
    """Replace a text in every tree and all reasoning."""
    pages = each_page(subject.trajectory, each_tree(lambda tree: tree.replace(old, new)))
    return each_thought(pages, lambda thought: thought.replace(old, new))


@transformation
def lines_ended(subject: Subject, _: Generator, ending: str) -> Trajectory:
    """Append ``ending`` to every line of trees, and to all reasoning."""

    def ended(tree: str) -> str:
        return tree.replace("\n", f"{ending}\n") + ending

    pages = each_page(subject.trajectory, each_tree(ended))
    return each_thought(pages, lambda thought: thought + ending)


_FIRST_ARGUMENT = re.compile(r"^(\w+\(\s*['\"])([^'\"]+)(['\"])")


@transformation
def elements_renumbered(subject: Subject, rng: Generator) -> Trajectory | NotApplicable:
    """Give every element of every page a new id, by one permutation."""
    pages = [step.observation for step in subject.trajectory.steps]
    trees = [page.axtree or page.axtree_pruned or "" for page in pages]
    numbers = sorted({bid for tree in trees for bid in _bids(tree) if bid.isdigit()}, key=int)
    if len(numbers) < 2:
        return NotApplicable("its trees have no numbered elements")
    names = dict(zip(numbers, map(str, rng.permutation(list(map(int, numbers)))), strict=True))

    def renumbered(tree: str) -> str:
        return _BID.sub(lambda m: f"{m[1]}[{names.get(m[2], m[2])}]", tree)

    def acted(step: Step) -> Step:
        action = step.action
        if not action or action.startswith(("send_msg", "report_", "answer", "goto", "press")):
            return step
        renamed = _FIRST_ARGUMENT.sub(
            lambda m: f"{m[1]}{names.get(m[2], m[2])}{m[3]}", action, count=1
        )
        return step.model_copy(update={"action": renamed})

    return each_step(each_page(subject.trajectory, each_tree(renumbered)), acted)


@transformation
def hosts_renamed(subject: Subject, _: Generator, domain: str) -> Trajectory | NotApplicable:
    """Change the site's address in all texts."""
    trajectory = subject.trajectory
    hosts = {urlsplit(step.observation.url or "").netloc for step in trajectory.steps} - {""}
    if not hosts or any(host in trajectory.goal for host in hosts):
        return NotApplicable("its addresses have no host, or the goal names it")
    names = {host: f"h{number}.{domain}" for number, host in enumerate(sorted(hosts))}

    def renamed(text: str | None) -> str | None:
        for host, name in names.items():
            text = text.replace(host, name) if text else text
        return text

    def moved(step: Step) -> Step:
        page = step.observation
        fields = ("url", *_TREES, "page_error")
        update = {name: renamed(getattr(page, name)) for name in fields}
        words = {"reasoning": renamed(step.reasoning), "action": renamed(step.action)}
        return step.model_copy(update={**words, "observation": page.model_copy(update=update)})

    return each_step(trajectory, moved).model_copy(update={"answer": renamed(trajectory.answer)})


@transformation
def parameters_reversed(subject: Subject, _: Generator) -> Trajectory | NotApplicable:
    """Reverse the query parameters of every address with at least two."""

    def several(page: Observation) -> bool:
        return (page.url or "").count("=") > 1

    def reordered(page: Observation) -> Observation:
        if not several(page):
            return page
        parts = urlsplit(page.url or "")
        query = urlencode(parse_qsl(parts.query, keep_blank_values=True)[::-1])
        return page.model_copy(update={"url": urlunsplit(parts._replace(query=query))})

    if not any(several(step.observation) for step in subject.trajectory.steps):
        return NotApplicable("no address has two parameters")
    return each_page(subject.trajectory, reordered)


@transformation
def goal_framed(subject: Subject, _: Generator, pattern: str) -> Trajectory:
    """Put a frame around the goal."""
    goal = pattern.format(goal=subject.trajectory.goal)
    return subject.trajectory.model_copy(update={"goal": goal})


@transformation
def step_inserted(
    subject: Subject, _: Generator, action: str, thought: str
) -> Trajectory | NotApplicable:
    """Insert an idle step in the middle of the run."""
    steps = subject.trajectory.steps
    middle = len(steps) // 2
    if len(steps) < 3 or any(step.action == action for step in steps):
        return NotApplicable("the run is too short, or does this already")
    reasoning = thought if any(step.reasoning for step in steps) else None
    page = steps[middle].observation
    idle = Step(index=middle, observation=page, reasoning=reasoning, action=action)
    return with_steps(subject.trajectory, [*steps[:middle], idle, *steps[middle:]])


@transformation
def steps_appended(
    subject: Subject, _: Generator, actions: Sequence[str]
) -> Trajectory | NotApplicable:
    """Append idle steps."""
    steps = subject.trajectory.steps
    if not steps or any(step.action in actions for step in steps):
        return NotApplicable("the run has no step, or does this already")
    *before, last = steps
    tail = [last.model_copy(update={"action": action, "reasoning": None}) for action in actions]
    return with_steps(subject.trajectory, [*before, *tail, last])


@transformation
def one_tree_kept(
    subject: Subject, _: Generator, kept: str, lost: str
) -> Trajectory | NotApplicable:
    """Keep one of the two trees of each page."""
    for step in subject.trajectory.steps:
        page = step.observation
        if resolves(step, page.axtree) and not resolves(step, getattr(page, kept)):
            return NotApplicable("an action's target is in the full tree alone")

    def changed(page: Observation) -> Observation:
        both = page.axtree and page.axtree_pruned
        return page.model_copy(update={lost: None}) if both else page

    return each_page(subject.trajectory, changed)


@transformation
def agent_named(subject: Subject, _: Generator, agent: str) -> Trajectory:
    """Change the agent's name in the record."""
    metadata = {**subject.trajectory.metadata, "agent": agent}
    return subject.trajectory.model_copy(update={"metadata": metadata})


@transformation
def picture_changed(
    subject: Subject, _: Generator, how: Literal["compressed", "scaled", "cropped"]
) -> Trajectory | NotApplicable:
    """Encode the last screenshot as JPEG, scale it down, or crop its sides."""
    ref = subject.trajectory.final.screenshot
    if ref is None or ref.problem:
        return NotApplicable("the last screenshot cannot be read")
    if how == "compressed":
        changed = _redrawn(ref, lambda picture: picture, "JPEG")
    else:
        changed = _redrawn(ref, _smaller if how == "scaled" else _cut)
    return with_final(subject.trajectory, screenshot=changed)


@transformation
def repeats_dropped(subject: Subject, _: Generator, fields: Sequence[str]) -> Trajectory:
    """Drop observations that repeat the page of the step before; the last page is kept."""
    all_steps = subject.trajectory.steps
    steps: list[Step] = []
    for index, step in enumerate(all_steps):
        page, before = step.observation, all_steps[index - 1].observation
        is_same = page.axtree and (page.url, page.axtree) == (before.url, before.axtree)
        repeats = index and is_same and index < len(all_steps) - 1
        steps.append(shown(step, page.model_copy(update=dict.fromkeys(fields if repeats else ()))))
    return with_steps(subject.trajectory, steps)


# Changes of the truth.

# The fields of a trajectory that belong to the run, not to the task.
_RUN = ("steps", "answer", "official_reward", "terminated", "truncated", "telemetry")


def _shown_instead(source: Trajectory, other: Trajectory) -> Trajectory:
    """Replace the source by another run; task and key stay the source's."""
    return source.model_copy(update={name: getattr(other, name) for name in _RUN})


@transformation
def other_run(
    subject: Subject,
    _: Generator,
    success: bool,
    side_effect: bool,
    wrong_answer: bool = False,
) -> Trajectory | NotApplicable:
    """Replace the run by another agent's run of the same case with the given outcome."""
    for sibling in subject.facts.siblings:
        outcome = (sibling.success, sibling.side_effect, sibling.repetition)
        if outcome == (success, side_effect, False) and (
            not wrong_answer or sibling.answers_wrongly
        ):
            return _shown_instead(subject.trajectory, sibling.trajectory)
    return NotApplicable("no other run of the same case is of this kind")


@transformation
def other_goal(
    subject: Subject, rng: Generator, success: bool, side_effect: bool
) -> Trajectory | NotApplicable:
    """Replace the goal by that of another case, whose checker determines the truth."""
    wanted = (success, side_effect)
    known = subject.facts.goals
    goals = [one.goal for one in known if (one.success, one.side_effect) == wanted]
    if not goals:
        return NotApplicable("no goal of another case is known that its state decides so")
    goal = goals[int(rng.integers(len(goals)))]
    return subject.trajectory.model_copy(update={"goal": goal})


@transformation
def answer_of_another(subject: Subject, rng: Generator) -> Trajectory | NotApplicable:
    """Replace the message by another agent's, which the checker rejects."""
    messages = sorted(
        sibling.trajectory.answer
        for sibling in subject.facts.siblings
        if sibling.trajectory.answer and sibling.answers_wrongly
    )
    if not messages or not subject.facts.answers:
        return NotApplicable("no other run of the case gives a wrong answer")
    return with_answer(subject.trajectory, messages[int(rng.integers(len(messages)))])


@transformation
def answer_mended(subject: Subject, _: Generator) -> Trajectory | NotApplicable:
    """Give the right answer in a run whose only error is the answer."""
    answers = subject.facts.answers
    if subject.facts.missed or not answers or not all(one.expected for one in answers):
        return NotApplicable("its fault is not the answer alone")
    values = "; ".join("; ".join(one.expected) for one in answers)
    return with_answer(subject.trajectory, f"Answer: {values}")


@transformation
def answer_dropped(subject: Subject, _: Generator) -> Trajectory | NotApplicable:
    """Remove the last message, in a task that asks a question."""
    if not subject.facts.answers:
        return NotApplicable("the task asks no question")
    return with_answer(subject.trajectory, None)


@transformation
def steps_repeated(
    subject: Subject, _: Generator, actions: Sequence[str], times: int, thought: str
) -> Trajectory:
    """Repeat the same ineffective actions several times before the first step."""
    first, *rest = subject.trajectory.steps
    reasoning = thought if first.reasoning else None
    idle = [
        Step(index=0, observation=first.observation, reasoning=reasoning, action=action)
        for action in [*actions] * times
    ]
    return with_steps(subject.trajectory, [*idle, first, *rest])


@transformation
def second_half_cut(subject: Subject, _: Generator) -> Trajectory | NotApplicable:
    """Remove the second half of the run; the last message is kept."""
    steps = subject.trajectory.steps
    kept = steps[: (len(steps) + 1) // 2]
    if len(kept) < 2:
        return NotApplicable("the run is too short")
    last = kept[-1].model_copy(update={"action": None, "reasoning": None})
    return with_steps(subject.trajectory, [*kept[:-1], last])


# Claims of the agent.


@transformation
def answer_replaced(subject: Subject, _: Generator, text: str) -> Trajectory:
    """Replace the last message."""
    return with_answer(subject.trajectory, text)


@transformation
def thoughts_begun(subject: Subject, _: Generator, text: str) -> Trajectory:
    """Prepend a text to all reasoning."""
    return each_thought(subject.trajectory, lambda thought: f"{text} {thought}")


@transformation
def last_thought_continued(subject: Subject, _: Generator, text: str) -> Trajectory:
    """Append a text to the last reasoning."""
    return with_thought(subject.trajectory, lambda thought: f"{thought} {text}")


@transformation
def thoughts_restated(subject: Subject, _: Generator, text: str, times: int) -> Trajectory:
    """Append a text to all reasoning, several times."""
    return each_thought(subject.trajectory, lambda thought: " ".join([thought, *[text] * times]))


@transformation
def thoughts_shortened(subject: Subject, _: Generator) -> Trajectory:
    """Keep only the first sentence of all reasoning."""

    def first_sentence(thought: str) -> str:
        head, stop, _ = thought.partition(". ")
        return f"{head}." if stop else thought

    return each_thought(subject.trajectory, first_sentence)


@transformation
def neutral_answer(subject: Subject, _: Generator, as_long_as: str) -> Trajectory:
    """Prepend neutral words, as long as a text, to the last message, whose last line declares
    the answer."""
    answer = f"{neutral(len(as_long_as))}\n{subject.trajectory.answer}"
    return with_answer(subject.trajectory, answer)


@transformation
def neutral_thoughts(subject: Subject, _: Generator, as_long_as: str) -> Trajectory:
    """Prepend neutral words, as long as a text, to all reasoning."""
    words = neutral(len(as_long_as))
    return each_thought(subject.trajectory, lambda thought: f"{words} {thought}")


_CODE = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


@transformation
def outcome_stated(subject: Subject, rng: Generator) -> Trajectory | NotApplicable:
    """State exactly the outcome that the state does not have."""
    facts = subject.facts
    if not facts.missed:
        return NotApplicable("no expectation on its state is unmet")
    values = [
        ", ".join(one.expected)
        if one.expected
        else "".join(_CODE[int(letter)] for letter in rng.integers(len(_CODE), size=10))
        for one in facts.answers
    ]
    stated = f" What was asked for is {' and '.join(values)}." if values else ""
    goal = subject.trajectory.goal.rstrip(".")
    text = f"This is done and confirmed by the site: {goal}.{stated}"
    return with_answer(subject.trajectory, text)


@transformation
def progress_stated(subject: Subject, _: Generator, named: str, blank: str) -> Trajectory:
    """State in the last steps that each expectation on the state holds, one per step; ``blank``
    replaces an unknown one."""
    facts, changed = subject.facts, subject.trajectory
    wishes = [*facts.held, *facts.missed] if facts.source == "state" else []
    indices = [index for index, step in enumerate(changed.steps) if step.reasoning]
    count = max(len(wishes), min(3, len(indices)))
    for number, index in enumerate(indices[-count:], start=1):
        wish = wishes[number - 1] if number <= len(wishes) else ""
        pattern = named if wish else blank
        text = pattern.format(number=number, count=count, predicate=_without_values(wish))
        before = changed.steps[index].reasoning
        changed = with_step(changed, index, reasoning=f"{text} {before}")
    return changed


def _without_values(predicate: str) -> str:
    """Write an expectation without its values: ``added line: product, quantity``."""
    head, _, columns = predicate.partition(": ")
    names = ", ".join(pair.split(" = ")[0] for pair in columns.split(", ") if pair)
    return f"{head} ({names})" if names else head


# Fabricated evidence.

_ENTRY = re.compile(r"^(?P<head>(?:fill|select_option)\(\s*['\"][^'\"]+['\"],\s*)(?P<value>.+)\)$")


def _successes(subject: Subject) -> list[Trajectory]:
    """List the successful runs of the same case."""
    return [one.trajectory for one in subject.facts.siblings if one.success is True]


@transformation
def page_of_success(
    subject: Subject, _: Generator, fields: Sequence[str]
) -> Trajectory | NotApplicable:
    """Replace the last page by that of the successful run of the same case."""
    for other in _successes(subject):
        page = other.final
        if all(getattr(page, name) for name in fields if name != "axtree_pruned"):
            return with_final(subject.trajectory, **{name: getattr(page, name) for name in fields})
    return NotApplicable("no successful run of the case has such a last page")


@transformation
def page_visited(subject: Subject, _: Generator) -> Trajectory | NotApplicable:
    """Visit the last address of the successful run, without the operation."""
    others = _successes(subject)
    if not others or not others[0].final.url or not subject.trajectory.steps:
        return NotApplicable("no successful run of the case has an address")
    page, steps = others[0].final, subject.trajectory.steps
    *before, last = steps
    there = last.model_copy(update={"action": f"goto({page.url!r})"})
    return with_steps(subject.trajectory, [*before, there, Step(index=0, observation=page)])


@transformation
def entry_retargeted(subject: Subject, _: Generator) -> Trajectory | NotApplicable:
    """Write the successful run's text into an entry; the pages are kept."""
    mine = list(_entries(subject.trajectory))
    for other in _successes(subject):
        for (index, entry), (_index, right) in zip(mine, _entries(other), strict=False):
            if entry["value"] != right["value"]:
                action = f"{entry['head']}{right['value']})"
                return with_step(subject.trajectory, index, action=action)
    return NotApplicable("its entries are those of the successful run, or there are none")


def _entries(trajectory: Trajectory) -> Iterable[tuple[int, re.Match[str]]]:
    for index, step in enumerate(trajectory.steps):
        if match := _ENTRY.fullmatch(step.action or ""):
            yield index, match


@transformation
def click_removed(subject: Subject, _: Generator) -> Trajectory | NotApplicable:
    """Remove the last click."""
    steps = list(subject.trajectory.steps)
    clicks = [n for n, step in enumerate(steps) if (step.action or "").startswith("click")]
    if len(steps) < 4 or not clicks:
        return NotApplicable("the run has no click to leave out")
    del steps[clicks[-1]]
    return with_steps(subject.trajectory, steps)


@transformation
def steps_swapped(subject: Subject, _: Generator) -> Trajectory | NotApplicable:
    """Swap two adjacent steps with different actions."""
    steps = list(subject.trajectory.steps)
    for index in reversed(range(1, len(steps) - 2)):
        if steps[index].action != steps[index + 1].action:
            steps[index : index + 2] = steps[index + 1], steps[index]
            return with_steps(subject.trajectory, steps)
    return NotApplicable("the run has no two steps to swap")


@transformation
def foreign_screenshot(subject: Subject, _: Generator) -> Trajectory:
    """Replace the last screenshot by a page of another application."""
    return with_final(subject.trajectory, screenshot=_other_application())


@transformation
def first_page_at_the_end(subject: Subject, _: Generator) -> Trajectory:
    """Replace the last page by the first one."""
    first, last = subject.trajectory.steps[0].observation, subject.trajectory.final
    fields = ("url", *_TREES, "screenshot", "page_error")
    update: dict[str, Any] = {name: getattr(first, name) for name in fields}
    page = Observation.model_validate({**last.model_dump(), **update})
    *before, step = subject.trajectory.steps
    return with_steps(subject.trajectory, [*before, shown(step, page)])


# Runs that were re-recorded in a real browser with one thing changed: tree, pixels,
# addresses and state agree because nothing was edited (``trajudge env record --variants``).


def recorded_again(
    subject: Subject,
    _: Generator,
    variant: str,
    relations: Mapping[LabelQuestion, Relation],
    same_way: bool = False,
) -> Trajectory | NotApplicable:
    """Replace the source by its re-recorded variant, if the state confirms the relations;
    ``same_way``: and if it visited the same addresses."""
    other = subject.facts.again.get(variant)
    if other is None:
        return NotApplicable("it was not recorded so (trajudge env record --variants)")
    for question, relation in relations.items():
        wanted = truth_after(relation, getattr(subject.facts, question))
        if getattr(other, question) is not wanted:
            return NotApplicable(f"its state says otherwise of {question}")
    if same_way and _way(other.trajectory) != _way(subject.trajectory):
        return NotApplicable("it took another way")
    return _shown_instead(subject.trajectory, other.trajectory)


def _way(trajectory: Trajectory) -> list[str]:
    """Return the addresses of a run, without the host: themes show options differently, so that
    action names may differ."""
    urls = (step.observation.url or "" for step in trajectory.steps)
    return [url.partition("://")[2].partition("/")[2] for url in urls]
