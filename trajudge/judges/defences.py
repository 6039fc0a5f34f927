"""Defences of a judge against what it reads, as options that every judge takes.

Each changes the messages or checks the record or the reply; ``defended`` puts those that are named
around a judge.
"""

from __future__ import annotations

import ast
import asyncio
import re
from base64 import b32encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from hashlib import sha256
from itertools import pairwise
from typing import Any, Literal, NamedTuple
from urllib.parse import urldefrag

import numpy as np
from pydantic import Field, ValidationError, field_validator

from trajudge.judges.answers import with_field
from trajudge.judges.judging import CallArgs, ChangedClient
from trajudge.judges.model import REPAIR, Judge, Message, Model, Part, Reply, Text, Verdict
from trajudge.judges.replies import ReplyParseError, check_reply, gather_bounded
from trajudge.prompts.render import Prompt, load_prompt
from trajudge.trajectories.actions import message_to_user
from trajudge.trajectories.images import grey_levels, picture_size
from trajudge.trajectories.model import ImageRef, Observation, Record, Step, Trajectory
from trajudge.trajectories.thoughts import split_thoughts
from trajudge.trajectories.truncate import cut_middle
from trajudge.util.errors import ImageUnreadable, UserError
from trajudge.util.validation import refused_value

PARTS = ("answer", "reasoning")

"""What an agent says of itself."""


class Defences(Record):
    """Options that every judge takes.

    ``hide``: what of the agent's own words is not shown; ``two_pass``: what is not shown in a
    second pass, which must come to the same verdict. Of judges that ask a model: ``datamark``
    marks untrusted text, ``sandwich`` repeats the goal behind it, ``nonce`` is the seed of what the
    tags around it end in, ``canary`` that of the word that a reply must hold. ``cross_modal``: what
    becomes of a run whose record contradicts itself, which is then not asked about.
    """

    hide: tuple[str, ...] = ()
    two_pass: tuple[str, ...] = ()
    datamark: bool = False
    sandwich: bool = False
    nonce: int | None = Field(default=None, ge=0)
    canary: int | None = Field(default=None, ge=0)
    cross_modal: Literal["abstain", "fail"] | None = None

    @field_validator("hide", "two_pass", mode="before")
    @classmethod
    def _known_parts(cls, given: object) -> tuple[str, ...]:
        if given is None:
            return ()
        words = given.split(",") if isinstance(given, str) else given
        parts = tuple(sorted(set(map(str, words)))) if isinstance(words, list | tuple) else ()
        if not parts or not set(parts) <= set(PARTS):
            raise ValueError(f"name {', '.join(PARTS)}, or both with a comma")
        return parts

    @property
    def given(self) -> dict[str, Any]:
        """Those that are on, as a manifest has them and as they can be given again."""
        return self.model_dump(mode="json", exclude_defaults=True)

    @property
    def of_prompts(self) -> dict[str, Any]:
        """Those that change a prompt, and are for judges that ask a model."""
        return {name: value for name, value in self.given.items() if name in OF_PROMPTS}

    @property
    def suffix(self) -> str:
        """What they add to a judge's id."""
        hidden = f"-no-{'-'.join(self.hide)}" if self.hide else ""
        twice = f"-two-pass-{'-'.join(self.two_pass)}" if self.two_pass else ""
        checked = f"-cross-modal-{self.cross_modal}" if self.cross_modal else ""
        return hidden + "".join(f"-{name}" for name in self.of_prompts) + twice + checked


DEFENCES = tuple(Defences.model_fields)

OF_EVERY = (*DEFENCES, REPAIR)
"""The options that every judge takes."""

OF_PROMPTS = ("datamark", "sandwich", "nonce", "canary")


def read_defences(name: str, kind: type[Record], options: Mapping[str, Any]) -> Defences:
    """Read the defences among the options of the judge ``name``; an option of that name that its
    own class ``kind`` has is not one. Raises UserError."""
    own = own_options(kind, options)
    try:
        given = {k: v for k, v in options.items() if k in DEFENCES and k not in own}
        return Defences.model_validate(given)
    except ValidationError as error:
        option, value, why, _ = refused_value(error)
        raise UserError(f"judge {name}: {option} = {value!r}: {why}") from error


def own_options(kind: type[Record], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options without those that every judge takes."""
    return {k: v for k, v in options.items() if k not in OF_EVERY or k in kind.model_fields}


# Tokens that a defence adds to a prompt, which the judge must leave free; nonces also take a share,
# for a prompt of many steps has many tags: a fourth more where steps are short.
# What goes beyond is cut as any prompt that a server finds too long.
_TOKENS = {"datamark": 100, "sandwich": 500, "nonce": 100, "canary": 150}
_NONCE_SHARE = 0.15


def with_room(options: Record, on: Defences) -> Record:
    """Return a judge's options with as much less room for its prompt as the defences take."""
    limit = getattr(options, "max_prompt_tokens", None)
    if not on.of_prompts or limit is None:
        return options
    share = 1 - _NONCE_SHARE if on.nonce is not None else 1.0
    room = int(limit * share) - sum(_TOKENS[name] for name in on.of_prompts)
    return options.model_copy(update={"max_prompt_tokens": room})


def defended(judge: Judge, on: Defences, tags: frozenset[str] = frozenset()) -> Judge:
    """Wrap a judge in the defences that are on; ``tags`` are those of its prompts."""
    words = _notices()
    if on.hide:
        judge = DefendedJudge(
            judge, "hide", ",".join(on.hide), shown=lambda run: without(run, on.hide)
        )
    if on.sandwich:
        judge = DefendedJudge(judge, "sandwich", words.hash, change=_sandwich)
    if on.nonce is not None:
        change = partial(_with_nonces, on.nonce, _tag_pattern(tags))
        judge = DefendedJudge(judge, "nonce", str(on.nonce), words.hash, change=change)
    if on.canary is not None:
        judge = CanaryJudge(judge, on.canary)
    if on.datamark:
        identity = ("datamark", MARK, words.hash)
        judge = DefendedJudge(judge, *identity, shown=_marked_run, change=_with_mark_notice)
    if on.two_pass:
        judge = TwoPassJudge(judge, on.two_pass)
    if on.cross_modal:
        judge = CrossModalJudge(judge, on.cross_modal)
    return judge


def _notices() -> Prompt:
    """Return the templates of the defences' own words."""
    return load_prompt("defences")


class DefendedJudge:
    """A judge behind one defence, which changes what it is ``shown``, or each call of it;
    everything else is the judge's own."""

    def __init__(
        self,
        judge: Judge,
        *identity: str,
        shown: Callable[[Trajectory], Trajectory] = lambda trajectory: trajectory,
        change: Callable[[Trajectory, CallArgs], CallArgs] | None = None,
    ) -> None:
        """``identity`` is the defence with all that decides its bytes: a part of the prompt's
        hash."""
        self._judge, self._shown, self._change = judge, shown, change
        if own := getattr(judge, "prompt_hash", None):
            self.prompt_hash = sha256("\0".join((own, *identity)).encode()).hexdigest()

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Judge as the judge does, and raise what it raises."""
        if self._change is not None:
            ask = ChangedClient(ask, partial(self._change, trajectory))
        return await self._judge(self._shown(trajectory), ask)

    def __getattr__(self, name: str) -> Any:
        if name == "_judge":  # not set yet: a copy is being made
            raise AttributeError(name)
        return getattr(self._judge, name)


# Messages


def in_system(messages: Sequence[Message], text: str) -> list[Message]:
    """Add to the end of the system message; without one, before the first turn of the user."""
    index = _first(messages, "system")
    if index is None:
        return before_material(messages, text)
    return _with(messages, index, _appended(messages[index].parts, text))


def before_material(messages: Sequence[Message], text: str) -> list[Message]:
    """Add to the beginning of the user's first turn."""
    index = _first(messages, "user")
    if index is None:
        return [*messages, Message(role="user", parts=(Text(text=text),))]
    first, *rest = messages[index].parts or (Text(text=""),)
    new: tuple[Part, ...] = (Text(text=text), first)
    if isinstance(first, Text):
        new = (Text(text=f"{text}\n\n{first.text}"),)
    return _with(messages, index, (*new, *rest))


def after_material(messages: Sequence[Message], text: str) -> list[Message]:
    """Add to the end of the user's last turn."""
    backwards = _first(messages[::-1], "user")
    if backwards is None:
        return before_material(messages, text)
    index = len(messages) - 1 - backwards
    return _with(messages, index, _appended(messages[index].parts, text))


def _first(messages: Sequence[Message], role: str) -> int | None:
    return next((index for index, message in enumerate(messages) if message.role == role), None)


def _with(messages: Sequence[Message], index: int, parts: tuple[Part, ...]) -> list[Message]:
    changed = messages[index].model_copy(update={"parts": parts})
    return [*messages[:index], changed, *messages[index + 1 :]]


def _appended(parts: tuple[Part, ...], text: str) -> tuple[Part, ...]:
    """Add to the last text, so that no provider is sent more parts than the judge made."""
    last = parts[-1] if parts else None
    if isinstance(last, Text):
        return (*parts[:-1], Text(text=f"{last.text}\n\n{text}"))
    return (*parts, Text(text=text))


# Sandwich: the goal and the task again, behind the material

_GOAL_TOKENS = 400
_OPENING = 40  # characters by which a goal is recognised in a prompt


def _sandwich(trajectory: Trajectory, call_args: CallArgs) -> CallArgs:
    """Repeat the goal in calls that show it: some stages must not know it."""
    opening = trajectory.goal.strip()[:_OPENING]
    parts = (part for m in call_args.messages if m.role == "user" for part in m.parts)
    shows_goal = any(opening in part.text for part in parts if isinstance(part, Text))
    if call_args.stage != "verdict" and not shows_goal:
        return call_args
    goal = cut_middle(trajectory.goal, _GOAL_TOKENS)
    text = _notices().render("sandwich", goal=goal)
    return call_args._replace(messages=after_material(call_args.messages, text))


# Nonce: tags of the prompt that no page can know

_NONCE_BYTES = 5  # 8 letters in base 32


def nonce_of(purpose: str, seed: int, messages: Sequence[Message]) -> str:
    """Derive eight letters and digits from the messages up to the user's first turn."""
    digest = sha256(f"{purpose}\0{seed}".encode())
    for message in messages:
        for part in message.parts:
            content = part.text if isinstance(part, Text) else part.sha256
            digest.update(b"\0" + content.encode(errors="surrogatepass"))
        if message.role == "user":
            break
    return b32encode(digest.digest()[:_NONCE_BYTES]).decode().lower()


def _tag_pattern(tags: frozenset[str]) -> re.Pattern[str]:
    names = "|".join(sorted(tags, key=lambda tag: (-len(tag), tag)))
    return re.compile(rf"(</?(?:{names}))(?![\w-])")


def _with_nonces(
    seed: int, pattern: re.Pattern[str], trajectory: Trajectory, call_args: CallArgs
) -> CallArgs:
    """End the tags in the user's turns in a nonce. Untrusted text has no tag of the prompt, for it
    was neutralised: all that are left are ours."""
    nonce = nonce_of("nonce", seed, call_args.messages)
    changed = [
        message.model_copy(
            update={
                "parts": tuple(
                    Text(text=pattern.sub(rf"\1-{nonce}", part.text))
                    if isinstance(part, Text)
                    else part
                    for part in message.parts
                )
            }
        )
        if message.role == "user"
        else message
        for message in call_args.messages
    ]
    notice = _notices().render("nonce", nonce=nonce)
    return call_args._replace(messages=before_material(changed, notice))


# Canary: a word that the reply must hold, and a planted one that it must not

_LINE = re.compile(
    r"^[^\w\n]{0,8}check[^\w\n]{1,8}(\w{1,40})[^\w\n]{0,8}$\n?", re.IGNORECASE | re.MULTILINE
)
_FIELD = re.compile(r'(?<!\\)"check"\s{0,8}:\s{0,8}"(\w{1,40})"')


class CanaryJudge(DefendedJudge):
    """A judge whose replies are checked before they are parsed: a ReplyParseError is raised for a
    reply without its word, or with the planted one."""

    def __init__(self, judge: Judge, seed: int) -> None:
        super().__init__(judge, "canary", str(seed), _notices().hash)
        self._seed = seed

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Judge as the judge does, and raise what it raises."""
        return await self._judge(trajectory, ChangedClient(ask, self._asked, self._checked))

    def _words(self, messages: Sequence[Message]) -> tuple[str, str]:
        return nonce_of("canary", self._seed, messages), nonce_of("planted", self._seed, messages)

    def _asked(self, call_args: CallArgs) -> CallArgs:
        word, planted = self._words(call_args.messages)
        text = _notices().render("canary", word=word, planted=planted)
        return call_args._replace(
            messages=before_material(call_args.messages, text),
            assume=call_args.assume and f"{call_args.assume}\nCheck: {word}",
            parameters=with_field(call_args.parameters, "check"),
        )

    def _checked(self, call_args: CallArgs, reply: Reply) -> Reply:
        """Return the reply without its word. ``call_args`` are the judge's own."""
        word, planted = self._words(call_args.messages)
        check_reply(reply)
        text = split_thoughts(reply.text, reasoning=True).answer
        words = {found.lower() for found in _LINE.findall(text)}
        if "response_format" in call_args.parameters:
            words |= {found.lower() for found in _FIELD.findall(text)}
        if planted in words:
            raise ReplyParseError("canary: the reply follows an instruction in the material", reply)
        if words != {word}:
            raise ReplyParseError("canary: the reply lacks the word that was asked for", reply)
        return reply.model_copy(update={"text": _LINE.sub("", reply.text)})


# Datamark: a mark in place of the blanks of untrusted text

MARK = "\u02c6"
# Lines of trees are short, and most stand in every step's: so many take some megabytes.
_SHORT, _REMEMBERED = 200, 2**14
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)


def marked(text: str) -> str:
    """Write a mark for the blanks between words, and at the end of every line but the last; a line
    of a tree keeps its indentation, which says where it belongs."""
    *lines, last = text.split("\n")
    whole = [
        _marked_short_line(line) if len(line) <= _SHORT else _marked_line(line, MARK)
        for line in lines
    ]
    return "\n".join([*whole, _marked_line(last, "")])


@lru_cache(maxsize=_REMEMBERED)
def _marked_short_line(line: str) -> str:
    return _marked_line(line, MARK)


def _marked_line(line: str, end: str) -> str:
    words = line.split()
    indent = line[: len(line) - len(line.lstrip())]
    return f"{indent}{MARK.join(words)}{end}" if words else line


def _marked_run(trajectory: Trajectory) -> Trajectory:
    """Return the run with observations, thoughts, typed texts and answer marked."""

    def changed(record: Step | Observation | Trajectory, *names: str) -> dict[str, Any]:
        texts = ((name, getattr(record, name)) for name in names)
        return {name: text and marked(text) for name, text in texts}

    steps = []
    for step in trajectory.steps:
        seen = step.observation
        page = seen.model_copy(update=changed(seen, "axtree", "axtree_pruned", "page_error"))
        action = step.action and _QUOTED.sub(lambda match: marked(match[0]), step.action)
        update = {**changed(step, "reasoning"), "observation": page, "action": action}
        steps.append(step.model_copy(update=update))
    update = {**changed(trajectory, "answer"), "steps": tuple(steps)}
    return trajectory.model_copy(update=update)


def _with_mark_notice(trajectory: Trajectory, call_args: CallArgs) -> CallArgs:
    notice = _notices().render("datamark", mark=MARK)
    return call_args._replace(messages=in_system(call_args.messages, notice))


# Hide, and two passes: without the agent's own words

NOT_SHOWN = "[not shown]"


def without(trajectory: Trajectory, parts: tuple[str, ...]) -> Trajectory:
    """Return the run without what the agent thought, or told the user, in any step."""
    answer = trajectory.answer
    if "answer" in parts and answer is not None:
        answer = NOT_SHOWN
    steps = []
    for step in trajectory.steps:
        update: dict[str, object] = {}
        if "reasoning" in parts and step.reasoning is not None:
            update["reasoning"] = NOT_SHOWN
        if "answer" in parts and message_to_user(step.action) is not None:
            update["action"] = f"send_msg_to_user({NOT_SHOWN!r})"
        steps.append(step.model_copy(update=update) if update else step)
    return trajectory.model_copy(update={"answer": answer, "steps": tuple(steps)})


WITH, WITHOUT = "with_claims", "without_claims"

"""In ``scores``: the opinion of either pass on success, its score or 0 or 1."""

_LABELS = (
    *("success", "side_effect", "repetition", "optimality"),
    *("process", "failure_step", "failure_type"),
)


class TwoPassJudge(DefendedJudge):
    """A judge that is asked twice, the second time without some ``parts`` of the agent's words."""

    def __init__(self, judge: Judge, parts: tuple[str, ...]) -> None:
        super().__init__(judge, "two_pass", ",".join(parts))
        self._parts = parts

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Judge as the judge does, and raise what it raises in either pass; a run without such
        words is judged once."""
        bare = without(trajectory, self._parts)
        if (bare.answer, bare.steps) == (trajectory.answer, trajectory.steps):
            return await self._judge(trajectory, ask)
        second = ChangedClient(
            ask, lambda call: call._replace(stage=f"without claims: {call.stage}")
        )
        passes = [partial(self._judge, trajectory, ask), partial(self._judge, bare, second)]
        return _merged(*await gather_bounded(passes))


def _merged(first: Verdict, second: Verdict) -> Verdict:
    """Keep what both say; a label on which they differ is left open."""
    agreed = {
        name: value if getattr(second, name) == (value := getattr(first, name)) else None
        for name in _LABELS
    }
    scores = [score for one in (first, second) if (score := one.score) is not None]
    decided = agreed["success"] is not None and len(scores) == 2
    opinions = {WITH: _opinion(first), WITHOUT: _opinion(second)}
    undecided = "Undecided: the verdicts with and without the agent's words differ.\n"
    return first.model_copy(
        update={
            **agreed,
            "score": sum(scores) / 2 if decided else None,
            "scores": {**first.scores, **{n: o for n, o in opinions.items() if o is not None}},
            "reasoning": f"{undecided if first.success != second.success else ''}"
            f"{first.reasoning}\nWithout the agent's words: {second.reasoning}",
            "fallback": first.fallback or second.fallback,
        }
    )


def _opinion(verdict: Verdict) -> float | None:
    if verdict.score is not None or verdict.success is None:
        return verdict.score
    return float(verdict.success)


# Cross-modal: a record that contradicts itself is not judged

_REASONS = 3  # contradictions that the reasoning names


class CrossModalJudge(DefendedJudge):
    """A judge that is not asked about a record that contradicts itself."""

    def __init__(self, judge: Judge, then: Literal["abstain", "fail"]) -> None:
        super().__init__(judge, "cross_modal", then)
        self._then = then

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Judge as the judge does, and raise what it raises, where the record agrees."""
        contradicted = await asyncio.to_thread(lambda: list(contradictions(trajectory)))
        if not contradicted:
            return await self._judge(trajectory, ask)
        reasons = "; ".join(one.text for one in contradicted[:_REASONS])
        if self._then == "fail":
            return Verdict(
                success=False, score=0.0, reasoning=f"The record is not whole: {reasons}"
            )
        return Verdict(reasoning=f"Undecided, for the record contradicts itself: {reasons}")


_TITLE = re.compile(r"\s*RootWebArea ('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")")
_CALLED = re.compile(r"^\s*(\w+)\s*\(", re.MULTILINE)
_MESSAGES = {"send_msg_to_user", "report_infeasible", "report_infeasible_instructions", "answer"}
_TYPED = {"fill", "select_option"}
_ON_ELEMENTS = {*_TYPED, "click", "dblclick", "press", "check", "uncheck", "clear"}
_VALUE = re.compile(r" value=(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|([^\s,]+))")
_NOT_WORD = re.compile(r"[\W_]+")
_MAX_ACTION = 10_000  # characters
_SIZE = (160, 120)  # at which pictures are compared
_LEVELS = 24  # of 256, by which a pixel is another
_SAME, _OTHER = 0.0002, 0.02  # shares of the pixels: at most, at least


class Contradiction(NamedTuple):
    """``check`` names what was compared, ``step`` counts from 1, ``text`` is a sentence."""

    check: str
    step: int
    text: str


def contradictions(trajectory: Trajectory) -> Iterator[Contradiction]:
    """Yield where the record contradicts itself, in the order of the steps.

    - ``trees``: the full and the pruned tree of one page have different titles.
    - ``moved``, ``title``: nothing but a message to the user was sent, and the page after it has
      another address, or another title.
    - ``page``: after a message the picture is the same and the tree another; ``picture``: the other
      way round. Pictures are compared where they have the same size.
    - ``typed``: an entry shows another value than the one that was written into it.
    - ``absent``: an action on an element that the page does not have led to another address.
    """
    for step in trajectory.steps:
        page = step.observation
        if _differ(_title(page.axtree), _title(page.axtree_pruned)):
            yield _contradiction(
                "trees", step, "its full and its pruned tree have different titles"
            )
    for step, following in pairwise(trajectory.steps):
        before, after = step.observation, following.observation
        stayed = urldefrag(before.url or "").url == urldefrag(after.url or "").url
        called = set(_CALLED.findall(step.action or ""))
        if called and called <= _MESSAGES:
            yield from _after_message(following, before, after, stayed=stayed)
        elif not after.page_error:
            yield from _after_call(following, step.action, before, after, stayed=stayed)


def _contradiction(check: str, step: Step, text: str) -> Contradiction:
    return Contradiction(check, step.index + 1, f"step {step.index + 1}: {text}")


def _after_message(
    step: Step, before: Observation, after: Observation, *, stayed: bool
) -> Iterator[Contradiction]:
    only = "only a message to the user was sent, and"
    if not stayed:
        yield _contradiction("moved", step, f"{only} the page has another address")
        return
    if _differ(_title(before.axtree), _title(after.axtree)):
        yield _contradiction("title", step, f"{only} the page has another title")
    tree, next_tree = before.axtree, after.axtree
    if tree is None or next_tree is None:
        tree, next_tree = before.axtree_pruned, after.axtree_pruned
    if not tree or not next_tree or not before.screenshot or not after.screenshot:
        return
    share = _pixels_changed(before.screenshot, after.screenshot)
    same_tree = tree.split() == next_tree.split()
    if share is not None and share <= _SAME and not same_tree:
        yield _contradiction("page", step, f"{only} the tree is another behind the same picture")
    if share is not None and share >= _OTHER and same_tree:
        yield _contradiction("picture", step, f"{only} the picture of the same tree is another")


def _after_call(
    step: Step, action: str | None, before: Observation, after: Observation, *, stayed: bool
) -> Iterator[Contradiction]:
    call = _element_call(action)
    if call is None:
        return
    name, element, value = call
    line = _line(before.axtree, element)
    if before.axtree and line is None and not stayed:
        yield _contradiction(
            "absent", step, f"{name} on what is not on the page led to another one"
        )
    entry = _line(after.axtree, element) if stayed and value is not None else None
    if entry is None or line is None or value is None or _named(entry) != _named(line):
        return
    shown = _VALUE.search(entry)
    if shown is not None and not _alike(value, next(filter(None, shown.groups()), "")):
        yield _contradiction("typed", step, f"the entry shows another value than {name} wrote")


def _element_call(action: str | None) -> tuple[str, str, str | None] | None:
    """Read name, element and written value of an action on one element; None for any other, and for
    several."""
    if not action or len(action) > _MAX_ACTION:
        return None
    try:
        call = ast.parse(action.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return None
    name = call.func.id
    given = [one.value for one in call.args if isinstance(one, ast.Constant)]
    if name not in _ON_ELEMENTS or not given or not isinstance(given[0], str):
        return None
    value = given[1] if len(given) > 1 and name in _TYPED else None
    return name, given[0], value if isinstance(value, str) else None


def _title(tree: str | None) -> str | None:
    match = _TITLE.match(tree or "")
    return match[1] if match else None


def _differ(first: str | None, second: str | None) -> bool:
    return None not in (first, second) and first != second


def _line(tree: str | None, bid: str) -> str | None:
    """Return the line of an element, None where the tree has none."""
    match = re.search(rf"^[\t ]*\[{re.escape(bid)}\] .*$", tree or "", re.MULTILINE)
    return match[0] if match else None


def _named(line: str) -> str:
    """Return role and name of an element, which stay whatever is written into it."""
    return line.partition(" value=")[0].partition(", ")[0]


def _alike(written: str, shown: str) -> bool:
    """Return True if an entry shows what was written, in its own notation or cut short."""
    one, other = (_NOT_WORD.sub("", text.casefold()) for text in (written, shown))
    return not one or not other or one in other or other in one


def _pixels_changed(first: ImageRef, second: ImageRef) -> float | None:
    """Return the share of the pixels that differ, None where the two cannot be compared."""
    if first == second:
        return 0.0
    try:
        if picture_size(first) != picture_size(second):
            return None
        contents = [grey_levels(ref, _SIZE) for ref in (first, second)]
    except ImageUnreadable:
        return None
    levels = (np.frombuffer(content, np.uint8).astype(np.int16) for content in contents)
    changed = np.abs(np.subtract(*levels)) > _LEVELS
    return float(np.count_nonzero(changed) / changed.size)
