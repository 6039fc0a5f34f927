"""The steps of a trajectory: what was done, to what, where on the screen, and what stands out.

Agents write actions in many forms: BrowserGym's and pyautogui's calls, WebArena's ``click [12]``,
WebVoyager's ``Type [2]; text``, ``Click at (471, 22)``, computer use's JSON. What is in no form
known here has its first word for a verb and no target. Nothing is run.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

from trajudge.app.images import ImageShelf, KnownImage
from trajudge.app.trees import parse_tree, place_of
from trajudge.trajectories.model import ImageRef, Observation, Step, Trajectory
from trajudge.util.errors import ImageUnreadable
from trajudge.util.files import DataFolder

MAX_PARSED = 20_000

Point = tuple[float, float]


class ActionParts(NamedTuple):
    """``target`` is the element's id, ``point`` pixels from the left and the top of the
    screenshot, ``typed`` the text that was entered."""

    verb: str
    target: str | None = None
    point: Point | None = None
    typed: str | None = None


# Calls whose first argument names an element, and those of them whose second is text.
_ON_ELEMENT = frozenset(
    {
        *("click", "dblclick", "double_click", "right_click", "hover", "tap", "focus"),
        *("fill", "type", "input", "input_text", "press", "clear", "select_option"),
        *("check", "uncheck", "drag_and_drop", "upload_file"),
    }
)
_TYPES = frozenset({"fill", "type", "input", "input_text", "select_option", "press"})
_TARGET_NAMES = ("bid", "target_id", "input_field_id", "index", "element_id", "id", "ref")
_TEXT_NAMES = ("text", "value", "text_value", "options", "content")
# Whose two numbers are a distance or a time, not a place.
_NO_PLACE = re.compile(r"scroll|wait|sleep|noop|moveRel|drag(?:Rel)|hotkey|key|tab", re.IGNORECASE)
_NUMBER = r"(-?\d{1,6}(?:\.\d{1,6})?)"
_AT = re.compile(rf"\A\s*([A-Za-z][\w. -]{{0,40}}?)\s+at\s+\(\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\)")
_BRACKETS = re.compile(r"\A\s*([A-Za-z_]{1,40})\s*\[([^\]\s]{1,60})\](?:\s*;\s*|\s*\[)?(.*)", re.S)
_WORD = re.compile(r"\A\s*([\w.]{1,60})")
_JSON = re.compile(r"\A\s*([\w.]{1,60})[\s(]*(\{.*\})\s*\)?\s*\Z", re.S)


def action_parts(action: str | None) -> tuple[ActionParts, ...]:
    """Read every call of an action, in order; empty where there is none."""
    if not action or not action.strip():
        return ()
    if len(action) <= MAX_PARSED and (calls := _calls(action)):
        return tuple(_of_call(call) for call in calls)
    return (_of_text(action[:MAX_PARSED]),)


def _calls(action: str) -> list[ast.Call]:
    """Parse Python calls; empty where the action is anything else."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(action.strip())
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return []
    calls = [node.value for node in tree.body if isinstance(node, ast.Expr)]
    known = [node for node in calls if isinstance(node, ast.Call)]
    return known if len(known) == len(tree.body) else []


def _of_call(call: ast.Call) -> ActionParts:
    function = call.func
    verb = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "call")
    values = [_value(argument) for argument in call.args]
    named = {keyword.arg: _value(keyword.value) for keyword in call.keywords if keyword.arg}
    if len(values) == 1 and isinstance(values[0], dict):
        named, values = {**values[0], **named}, []
    return _parts(verb, values, named)


class _JsonWords(ast.NodeTransformer):
    """Puts Python's constants in place of JSON's."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        words: dict[str, bool | None] = {"true": True, "false": False, "null": None}
        return ast.Constant(words[node.id]) if node.id in words else node


def _value(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(_JsonWords().visit(node))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _parts(verb: str, values: list[Any], named: dict[str, Any]) -> ActionParts:
    shown = str(named["action"]) if isinstance(named.get("action"), str) else verb
    point = _point(shown, values, named)
    target = next((named[name] for name in _TARGET_NAMES if _is_id(named.get(name))), None)
    typed = next((named[name] for name in _TEXT_NAMES if isinstance(named.get(name), str)), None)
    if point is None and target is None and verb.lower() in _ON_ELEMENT and values:
        target = values[0] if _is_id(values[0]) else None
        typed = typed or (_text(values[1]) if verb in _TYPES and len(values) > 1 else None)
    return ActionParts(shown, None if target is None else str(target), point, typed)


def _is_id(value: Any) -> bool:
    return (isinstance(value, str) and 0 < len(value) <= 60) or (
        isinstance(value, int) and not isinstance(value, bool)
    )


def _text(value: Any) -> str | None:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else None


def _point(verb: str, values: list[Any], named: dict[str, Any]) -> Point | None:
    if _NO_PLACE.search(verb):
        return None
    pairs = [named.get("coordinate"), [named.get("x"), named.get("y")], values[:2]]
    for pair in pairs:
        if isinstance(pair, list | tuple) and len(pair) == 2 and all(map(_is_number, pair)):
            return float(pair[0]), float(pair[1])
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e6


def _of_text(action: str) -> ActionParts:
    if match := _AT.match(action):
        return ActionParts(match[1], point=(float(match[2]), float(match[3])))
    if match := _JSON.match(action):
        try:
            fields = json.loads(match[2])
        except (ValueError, RecursionError):
            fields = None
        if isinstance(fields, dict):
            return _parts(match[1], [], fields)
    if match := _BRACKETS.match(action):
        rest = match[3].strip()
        typed = rest.split("]", 1)[0] if match[1].lower() == "type" and rest else None
        is_element = match[1].lower() in _ON_ELEMENT and match[2].upper() != "WINDOW"
        target = match[2] if is_element else None
        return ActionParts(match[1], target=target, typed=typed)
    match = _WORD.match(action)
    return ActionParts(match[1] if match else action.split(maxsplit=1)[0][:40])


_IDS = re.compile(r"\[[^\]\s]{1,60}\] ")
_LINE = 300


class StepSummary(NamedTuple):
    """``number`` counts from 1, as prompts do. ``target`` names what the action was about, "" for
    none; ``same_as`` is the number of the first step that saw the same page, None if this is the
    first; ``image`` or why there is none (``no_image``, "" where none was recorded)."""

    number: int
    verb: str
    target: str
    has_error: bool
    same_as: int | None
    page_changed: bool
    image: KnownImage | None
    no_image: str


class GoalPicture(NamedTuple):
    """A picture of the goal, or why it cannot be shown (``no_image``)."""

    image: KnownImage | None
    no_image: str


def goal_pictures(
    trajectory: Trajectory, shelf: ImageShelf, root: DataFolder | None
) -> tuple[GoalPicture, ...]:
    """Make the pictures of the goal known, in their order."""
    return tuple(GoalPicture(*_image(ref, shelf, root)) for ref in trajectory.goal_images)


def summarise(
    trajectory: Trajectory, shelf: ImageShelf, root: DataFolder | None
) -> tuple[StepSummary, ...]:
    """Summarise every step, and make its screenshot known."""
    summaries: list[StepSummary] = []
    seen: dict[Hashable, int] = {}
    url = None
    for number, step in enumerate(trajectory.steps, start=1):
        image, no_image = _image(step.observation.screenshot, shelf, root)
        state = _state(step.observation, image)
        first = seen.setdefault(state, number) if state is not None else number
        verb, target = _action(step)
        changed = number > 1 and step.observation.url != url
        url = step.observation.url
        summaries.append(
            StepSummary(
                number=number,
                verb=verb,
                target=target,
                has_error=bool(step.observation.page_error),
                same_as=first if first != number else None,
                page_changed=changed,
                image=image,
                no_image=no_image,
            )
        )
    return tuple(summaries)


def _image(
    ref: ImageRef | None, shelf: ImageShelf, root: DataFolder | None
) -> tuple[KnownImage | None, str]:
    if ref is None:
        return None, ""
    try:
        return shelf.put(ref, root), ""
    except ImageUnreadable as error:
        return None, str(error)


def _state(observation: Observation, image: KnownImage | None) -> Hashable | None:
    """Return what tells the page from others, element ids aside; None where nothing was seen."""
    if tree := observation.axtree or observation.axtree_pruned:
        return observation.url, _IDS.sub("", tree)
    return (observation.url, image.sha256) if image else None


def _action(step: Step) -> tuple[str, str]:
    parts = action_parts(step.action)
    if not parts:
        return "", ""
    verb = parts[0].verb + (f" and {len(parts) - 1} more" if len(parts) > 1 else "")
    return verb, _target(parts[0], step.observation)


def _target(parts: ActionParts, observation: Observation) -> str:
    if parts.target is not None:
        node = next(parse_tree(tree_line(observation, parts.target)).nodes(), None)
        return f"{node.role} {node.name}" if node else f"element {parts.target}"
    if parts.point is not None:
        return f"({parts.point[0]:g}, {parts.point[1]:g})"
    return parts.typed or ""


def tree_line(observation: Observation, bid: str) -> str:
    """Return the line of an element in the page's tree without its id, "" if it is not there."""
    for tree in (observation.axtree, observation.axtree_pruned):
        mark = f"[{bid}] "
        start = (tree or "").find(mark)
        while tree and start >= 0:
            if not tree[tree.rfind("\n", 0, start) + 1 : start].strip():
                return tree[start + len(mark) :].split("\n", 1)[0][:_LINE]
            start = tree.find(mark, start + 1)
    return ""


def neighbours(steps: Sequence[StepSummary], number: int) -> tuple[int | None, int | None]:
    """Return the numbers of the step before and the one after."""
    return number - 1 if number > 1 else None, number + 1 if number < len(steps) else None


class ScreenMark(NamedTuple):
    """A point (``width`` and ``height`` 0) or a box, in pixels of the screenshot from its left and
    top; ``label`` is the typed text."""

    x: float
    y: float
    width: float = 0
    height: float = 0
    label: str = ""


class ScreenMarks(NamedTuple):
    """What is drawn, and ``sentences`` about what cannot be."""

    marks: tuple[ScreenMark, ...]
    sentences: tuple[str, ...]


def marks_of(step: Step, image: KnownImage | None) -> ScreenMarks:
    """Place the targets of a step's action on its screenshot."""
    marks: list[ScreenMark] = []
    sentences: list[str] = []
    for parts in action_parts(step.action):
        place = _place(parts, step, sentences)
        if place is None:
            continue
        mark = _mark(place, parts.typed or "")
        if image is None:
            sentences.append(f"The action was at ({mark.x:g}, {mark.y:g}).")
        elif _is_inside(mark, image):
            marks.append(mark)
        else:
            sentences.append(
                f"The action was at ({mark.x:g}, {mark.y:g}), outside of the screenshot of "
                f"{image.width} × {image.height} pixels."
            )
    return ScreenMarks(tuple(marks), tuple(dict.fromkeys(sentences)))


def _place(parts: ActionParts, step: Step, sentences: list[str]) -> tuple[float, ...] | None:
    if parts.point is not None:
        return parts.point
    if parts.target is None:
        return None
    trees = [tree for tree in (step.observation.axtree, step.observation.axtree_pruned) if tree]
    for tree in trees:
        node = parse_tree(tree).with_id(parts.target)
        place = node and place_of(node)
        if place:
            return place
    line = tree_line(step.observation, parts.target)
    sentences.append(next(_why_no_place(parts.target, line, bool(trees))))
    return None


def _why_no_place(target: str, line: str, has_tree: bool) -> Iterator[str]:
    if line:
        yield f"Element {target} is {line}; where it was on the screen is not recorded."
    if has_tree:
        yield f"Element {target} is not in the recorded tree of this step."
    yield f"Element {target} was acted on; no tree of this step is recorded that would tell it."


def _mark(place: tuple[float, ...], label: str) -> ScreenMark:
    if len(place) == 2:
        return ScreenMark(place[0], place[1], label=label)
    left, top, right, bottom = place
    return ScreenMark(left, top, max(0, right - left), max(0, bottom - top), label)


def _is_inside(mark: ScreenMark, image: KnownImage) -> bool:
    right, bottom = mark.x + mark.width, mark.y + mark.height
    return right >= 0 and bottom >= 0 and mark.x <= image.width and mark.y <= image.height
