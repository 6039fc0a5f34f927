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
from itertools import pairwise, takewhile
from typing import Any, Literal, NamedTuple
from urllib.parse import urldefrag

from pydantic import Field, JsonValue, ValidationError, field_validator

from trajudge.judges.entry import JudgeEntry
from trajudge.judges.judging import BaseClient, CallArgs, pass_on
from trajudge.judges.model import Judge, Message, ModelClient, Part, Reply, Text, Verdict
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
        return {
            name: value
            for name, value in self.model_dump(mode="json").items()
            if getattr(self, name) != type(self).model_fields[name].default
        }

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

OF_PROMPTS = ("datamark", "sandwich", "nonce", "canary")


def read_defences(name: str, kind: type[Record], options: Mapping[str, Any]) -> Defences:
    """Read the defences among the options of the judge ``name``; an option of that name that its
    own class ``kind`` has is not one. Raises UserError."""
    given = {
        option: options[option]
        for option in DEFENCES
        if option in options and option not in kind.model_fields
    }
    try:
        return Defences.model_validate(given)
    except ValidationError as error:
        option, value, why, _ = refused_value(error)
        raise UserError(f"judge {name}: {option} = {value!r}: {why}") from error


def own_options(kind: type[Record], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options without those that every judge takes."""
    return {
        option: value
        for option, value in options.items()
        if option not in DEFENCES or option in kind.model_fields
    }


# Tokens that a defence adds to a prompt, which the judge must leave free; nonces also take a share,
# for a prompt of many steps has many tags: a fourth more where steps are short.
# What goes beyond is cut as any prompt that a server finds too long.
_TOKENS = {"datamark": 100, "sandwich": 500, "nonce": 100, "canary": 150}

_NONCE_SHARE = 0.15


def defended(name: str, entry: JudgeEntry, judge: Judge, defences: Defences) -> Judge:
    """Put ``defences`` around a judge. Raises UserError where it cannot have one of them."""
    if defences.hide:
        judge = HidingJudge(judge, defences.hide)
    if defences.of_prompts and not entry.composed:
        judge = _asking(name, entry, judge, defences)
    if defences.two_pass:
        judge = TwoPassJudge(judge, defences.two_pass)
    if defences.cross_modal:
        judge = CrossModalJudge(judge, defences.cross_modal)
    return judge


def _asking(name: str, entry: JudgeEntry, judge: Judge, defences: Defences) -> Judge:
    """Put around the judge what changes its prompts."""

    for defence in defences.of_prompts:
        if why := unfit(entry, defence):
            raise UserError(f"judge {name}: {why}: leave {defence} out")
    if defences.sandwich:
        judge = SandwichedJudge(judge)
    if defences.nonce is not None:
        judge = NonceJudge(judge, defences.nonce, _tags(name, entry))
    if defences.canary is not None:
        judge = CanaryJudge(judge, defences.canary)
    return DatamarkedJudge(judge) if defences.datamark else judge


def _tags(name: str, entry: JudgeEntry) -> frozenset[str]:
    from trajudge.prompts.render import load_prompt  # noqa: PLC0415 - brings jinja2

    return load_prompt(entry.prompt or name).tags


def unfit(entry: JudgeEntry, defence: str) -> str:
    """Say why a judge cannot have a defence, "" if it can; of a composed judge its members have
    it."""
    if defence not in OF_PROMPTS or entry.composed:
        return ""
    if not entry.needs_model:
        return f"asks no model, and {defence} changes prompts"
    if defence == "canary" and entry.logprobs:
        return "answers with one word, which no canary fits"
    if defence == "nonce" and entry.label:
        return "which tags its prompts have is not known, and nonce ends them"
    return ""


def with_room(options: Record, defences: Defences) -> Record:
    """Return a judge's options with as much less room for its prompt as the defences take."""
    limit = getattr(options, "max_prompt_tokens", None)
    if not defences.of_prompts or limit is None:
        return options
    share = 1 - _NONCE_SHARE if "nonce" in defences.of_prompts else 1.0
    room = int(limit * share) - sum(_TOKENS[name] for name in defences.of_prompts)
    return options.model_copy(update={"max_prompt_tokens": room})


def with_defended_members(options: Any, defences: Defences, asks: Callable[[str], bool]) -> Any:
    """Return the options of a composed judge, whose members that ask a model (``asks`` tells by
    name) have its defences of prompts. Raises UserError if there is none."""
    if not defences.of_prompts:
        return options
    members = tuple(
        member.model_copy(update={"given": member.given | defences.of_prompts})
        if asks(member.name)
        else member
        for member in options.of.members
    )
    if members == options.of.members:
        first = next(iter(defences.of_prompts))
        raise UserError(f"{first}: changes prompts, and no member asks a model: leave it out")
    of = options.of.model_copy(update={"members": members})
    return options.model_copy(update={"of": of})


Change = Callable[[Sequence[Message]], Sequence[Message]]


def notices() -> Prompt:
    """Return the templates of the defences' own words."""
    return load_prompt("defences")


class ChangingClient(BaseClient):
    """Asks with changed messages; everything else of a call stays."""

    def __init__(self, ask: ModelClient, change: Change) -> None:
        self._ask, self._change = ask, change

    async def answer(self, call_args: CallArgs) -> Reply:
        """Raise what the model's own client raises."""
        changed = self._change(call_args.messages)
        return await pass_on(self._ask, call_args._replace(messages=changed))


def in_system(messages: Sequence[Message], text: str) -> list[Message]:
    """Add to the end of the system message; without one, before the first turn of the user."""
    place = _first(messages, "system")
    if place is None:
        return before_material(messages, text)
    return _with(messages, place, _after(messages[place].parts, text))


def before_material(messages: Sequence[Message], text: str) -> list[Message]:
    """Add to the beginning of the user's first turn."""
    place = _first(messages, "user")
    if place is None:
        return [*messages, Message(role="user", parts=(Text(text=text),))]
    first, *rest = messages[place].parts or (Text(text=""),)
    new: tuple[Part, ...] = (Text(text=text), first)
    if isinstance(first, Text):
        new = (Text(text=f"{text}\n\n{first.text}"),)
    return _with(messages, place, (*new, *rest))


def after_material(messages: Sequence[Message], text: str) -> list[Message]:
    """Add to the end of the user's last turn."""
    backwards = _first(messages[::-1], "user")
    if backwards is None:
        return before_material(messages, text)
    place = len(messages) - 1 - backwards
    return _with(messages, place, _after(messages[place].parts, text))


def _first(messages: Sequence[Message], role: str) -> int | None:
    return next((place for place, one in enumerate(messages) if one.role == role), None)


def _with(messages: Sequence[Message], place: int, parts: tuple[Part, ...]) -> list[Message]:
    changed = messages[place].model_copy(update={"parts": parts})
    return [*messages[:place], changed, *messages[place + 1 :]]


def _after(parts: tuple[Part, ...], text: str) -> tuple[Part, ...]:
    """Add to the last text, so that no provider is sent more parts than the judge made."""
    last = parts[-1] if parts else None
    if isinstance(last, Text):
        return (*parts[:-1], Text(text=f"{last.text}\n\n{text}"))
    return (*parts, Text(text=text))


class DefendedJudge:
    """A judge behind one defence, which changes what it is ``shown``, or the ``client`` that it
    asks; everything else is the judge's own."""

    def __init__(self, judge: Judge, *told: str) -> None:
        """``told`` is the defence with all that decides its bytes: a part of the prompt's hash."""
        self._judge = judge
        if own := getattr(judge, "prompt_hash", None):
            self.prompt_hash = sha256("\0".join((own, *told)).encode()).hexdigest()

    async def __call__(self, trajectory: Trajectory, ask: ModelClient) -> Verdict:
        """Judge as the judge does, and raise what it raises."""
        return await self._judge(self.shown(trajectory), self.client(trajectory, ask))

    def shown(self, trajectory: Trajectory) -> Trajectory:
        """Return the run as the judge is shown it."""
        return trajectory

    def client(self, trajectory: Trajectory, ask: ModelClient) -> ModelClient:
        """Return the client that the judge asks about this run."""
        return ask

    def __getattr__(self, name: str) -> Any:
        if name == "_judge":  # not set yet: a copy is being made
            raise AttributeError(name)
        return getattr(self._judge, name)


_BYTES = 5  # 8 letters in base 32


def nonce_of(purpose: str, seed: int, messages: Sequence[Message]) -> str:
    """Derive eight letters and digits from the messages up to the user's first turn."""
    digest = sha256(f"{purpose}\0{seed}".encode())
    for content in _contents(messages):
        digest.update(b"\0" + content.encode(errors="surrogatepass"))
    return b32encode(digest.digest()[:_BYTES]).decode().lower()


def _contents(messages: Sequence[Message]) -> Iterator[str]:
    before = list(takewhile(lambda one: one.role != "user", messages))
    for message in messages[: len(before) + 1]:
        for part in message.parts:
            yield part.text if isinstance(part, Text) else part.sha256


class NonceJudge(DefendedJudge):
    """A judge whose ``tags``, those of its prompts, carry a nonce around the material."""

    def __init__(self, judge: Judge, seed: int, tags: frozenset[str]) -> None:
        super().__init__(judge, "nonce", str(seed), notices().hash)
        self._seed = seed
        names = "|".join(sorted(tags, key=lambda tag: (-len(tag), tag)))
        self._tags = re.compile(rf"(</?(?:{names}))(?![\w-])")

    def client(self, trajectory: Trajectory, ask: ModelClient) -> ModelClient:
        """Return a client that ends the tags of every call in a nonce."""
        return ChangingClient(ask, self._ended)

    def _ended(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Change what the user's turns hold. Untrusted text has no tag of the prompt, for it was
        neutralised: all that are left are ours."""
        nonce = nonce_of("nonce", self._seed, messages)
        changed = [
            message.model_copy(
                update={"parts": tuple(self._ended_part(part, nonce) for part in message.parts)}
            )
            if message.role == "user"
            else message
            for message in messages
        ]
        return before_material(changed, notices().render("nonce", nonce=nonce))

    def _ended_part(self, part: Part, nonce: str) -> Part:
        if not isinstance(part, Text):
            return part
        return Text(text=self._tags.sub(rf"\1-{nonce}", part.text))


_LINE = re.compile(
    r"^[^\w\n]{0,8}check[^\w\n]{1,8}(\w{1,40})[^\w\n]{0,8}$\n?", re.IGNORECASE | re.MULTILINE
)

_FIELD = re.compile(r'(?<!\\)"check"\s{0,8}:\s{0,8}"(\w{1,40})"')


class CanaryJudge(DefendedJudge):
    """A judge whose replies are checked before they are parsed."""

    def __init__(self, judge: Judge, seed: int) -> None:
        super().__init__(judge, "canary", str(seed), notices().hash)
        self._seed = seed

    def client(self, trajectory: Trajectory, ask: ModelClient) -> ModelClient:
        """Return a client that asks for the word and checks it."""
        return _CanaryClient(ask, self._seed)


class _CanaryClient(BaseClient):
    def __init__(self, ask: ModelClient, seed: int) -> None:
        self._ask, self._seed = ask, seed

    async def answer(self, call_args: CallArgs) -> Reply:
        """Raise ReplyParseError for a reply without its word, or with the planted one, and what
        ``check_reply`` raises."""
        messages = call_args.messages
        word, planted = (nonce_of(name, self._seed, messages) for name in ("canary", "planted"))
        text = notices().render("canary", word=word, planted=planted)
        assume = call_args.assume and f"{call_args.assume}\nCheck: {word}"
        reply = await pass_on(
            self._ask,
            call_args._replace(messages=before_material(messages, text), assume=assume),
        )
        check_reply(reply)
        _check(reply, word, planted, call_args.parameters)
        return reply.model_copy(update={"text": _LINE.sub("", reply.text)})


def _check(reply: Reply, word: str, planted: str, parameters: Mapping[str, JsonValue]) -> None:
    """Raise ReplyParseError unless the reply outside of its reasoning holds the one word."""
    text = split_thoughts(reply.text, reasoning=True).answer
    words = {found.lower() for found in _LINE.findall(text)}
    if "response_format" in parameters:
        words |= {found.lower() for found in _FIELD.findall(text)}
    if planted in words:
        raise ReplyParseError("canary: the reply follows an instruction in the material", reply)
    if words != {word}:
        raise ReplyParseError("canary: the reply lacks the word that was asked for", reply)


_TITLE = re.compile(r"\s*RootWebArea ('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")")

_CALLED = re.compile(r"^\s*(\w+)\s*\(", re.MULTILINE)

_SAID = {"send_msg_to_user", "report_infeasible", "report_infeasible_instructions", "answer"}

_TYPED = {"fill", "select_option"}

_ACTED = {*_TYPED, "click", "dblclick", "press", "check", "uncheck", "clear"}

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
        titles = _title(page.axtree), _title(page.axtree_pruned)
        if None not in titles and titles[0] != titles[1]:
            yield _found("trees", step, "its full and its pruned tree have different titles")
    for step, following in pairwise(trajectory.steps):
        yield from _between(step, following)


def _found(check: str, step: Step, text: str) -> Contradiction:
    return Contradiction(check, step.index + 1, f"step {step.index + 1}: {text}")


def _between(step: Step, following: Step) -> Iterator[Contradiction]:
    before, after = step.observation, following.observation
    called = _called(step.action)
    stayed = _address(before) == _address(after)
    if called and called <= _SAID:
        yield from _after_message(following, before, after, stayed=stayed)
    elif not after.page_error and (call := _call(step.action)) is not None:
        yield from _after_call(following, call, before, after, stayed=stayed)


def _after_message(
    step: Step, before: Observation, after: Observation, *, stayed: bool
) -> Iterator[Contradiction]:
    only = "only a message to the user was sent, and"
    if not stayed:
        yield _found("moved", step, f"{only} the page has another address")
        return
    titles = _title(before.axtree), _title(after.axtree)
    if None not in titles and titles[0] != titles[1]:
        yield _found("title", step, f"{only} the page has another title")
    trees = (before.axtree, after.axtree)
    if None in trees:
        trees = (before.axtree_pruned, after.axtree_pruned)
    tree, next_tree = trees
    if not tree or not next_tree or not before.screenshot or not after.screenshot:
        return
    share = _pixels_changed(before.screenshot, after.screenshot)
    same_tree = tree.split() == next_tree.split()
    if share is not None and share <= _SAME and not same_tree:
        yield _found("page", step, f"{only} the tree is another behind the same picture")
    if share is not None and share >= _OTHER and same_tree:
        yield _found("picture", step, f"{only} the picture of the same tree is another")


class _Call(NamedTuple):
    name: str
    target: str
    value: str | None


def _after_call(
    step: Step, call: _Call, before: Observation, after: Observation, *, stayed: bool
) -> Iterator[Contradiction]:
    there = _line(before.axtree, call.target)
    if before.axtree and there is None and not stayed:
        yield _found("absent", step, f"{call.name} on what is not on the page led to another one")
    entry = _line(after.axtree, call.target) if stayed and call.value is not None else None
    if entry is None or there is None or call.value is None or _named(entry) != _named(there):
        return
    shown = _VALUE.search(entry)
    if shown is not None and not _alike(call.value, next(filter(None, shown.groups()), "")):
        yield _found("typed", step, f"the entry shows another value than {call.name} wrote")


def _called(action: str | None) -> set[str]:
    """Name what the lines of an action call."""
    return set(_CALLED.findall(action or ""))


def _call(action: str | None) -> _Call | None:
    """Read an action on one element; None for any other, and for several."""
    if not action or len(action) > _MAX_ACTION:
        return None
    try:
        call = ast.parse(action.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return None
    given = [one.value for one in call.args if isinstance(one, ast.Constant)]
    if call.func.id not in _ACTED or not given or not isinstance(given[0], str):
        return None
    value = given[1] if len(given) > 1 and call.func.id in _TYPED else None
    return _Call(call.func.id, given[0], value if isinstance(value, str) else None)


def _title(tree: str | None) -> str | None:
    match = _TITLE.match(tree or "")
    return match[1] if match else None


def _address(page: Observation) -> str:
    return urldefrag(page.url or "").url


def _line(tree: str | None, bid: str) -> str | None:
    """Return the line of an element, None where the tree has none."""
    match = re.search(rf"^[\t ]*\[{re.escape(bid)}\] .*$", tree or "", re.MULTILINE)
    return match[0] if match else None


def _named(line: str) -> str:
    """Return role and name of an element, which stay whatever is written into it."""
    return line.partition(" value=")[0].partition(", ")[0]


def _alike(written: str, shown: str) -> bool:
    """Say whether an entry shows what was written, in its own notation or cut short."""
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
    import numpy as np  # noqa: PLC0415 - slow to import

    levels = (np.frombuffer(content, np.uint8).astype(np.int16) for content in contents)
    changed = np.abs(np.subtract(*levels)) > _LEVELS
    return float(np.count_nonzero(changed) / changed.size)


_SHOWN = 3  # contradictions that the reasoning names


class CrossModalJudge(DefendedJudge):
    """A judge that is not asked about a record that contradicts itself."""

    def __init__(self, judge: Judge, then: Literal["abstain", "fail"]) -> None:
        super().__init__(judge, "cross_modal", then)
        self._then = then

    async def __call__(self, trajectory: Trajectory, ask: ModelClient) -> Verdict:
        """Judge as the judge does, and raise what it raises, where the record agrees."""
        found = await asyncio.to_thread(lambda: list(contradictions(trajectory)))
        if not found:
            return await self._judge(trajectory, ask)
        reasons = "; ".join(one.text for one in found[:_SHOWN])
        if self._then == "fail":
            return Verdict(
                success=False, score=0.0, reasoning=f"The record is not whole: {reasons}"
            )
        return Verdict(reasoning=f"Undecided, for the record contradicts itself: {reasons}")


MARK = "\u02c6"

# Lines of trees are short, and most stand in every step's: so many take some megabytes.
_SHORT, _REMEMBERED = 200, 2**14

_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)


def marked(text: str) -> str:
    """Put a mark in place of the blanks between words, and at the end of every line but the last; a
    line of a tree keeps its indentation, which says where it belongs."""
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


class DatamarkedJudge(DefendedJudge):
    """A judge that is shown marked text, and told what the mark says."""

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge, "datamark", MARK, notices().hash)
        self._notice = notices().render("datamark", mark=MARK)

    def shown(self, trajectory: Trajectory) -> Trajectory:
        """Return the run with observations, thoughts, typed texts and answer marked."""
        steps = tuple(map(_marked_step, trajectory.steps))
        answer = _marked(trajectory.answer)
        return trajectory.model_copy(update={"steps": steps, "answer": answer})

    def client(self, trajectory: Trajectory, ask: ModelClient) -> ModelClient:
        """Return a client that tells every call of the mark."""
        return ChangingClient(ask, lambda messages: in_system(messages, self._notice))


def _marked(text: str | None) -> str | None:
    return text and marked(text)


def _marked_step(step: Step) -> Step:
    action = step.action and _QUOTED.sub(lambda match: marked(match[0]), step.action)
    return step.model_copy(
        update={
            "observation": _marked_page(step.observation),
            "reasoning": _marked(step.reasoning),
            "action": action,
        }
    )


def _marked_page(page: Observation) -> Observation:
    texts = ("axtree", "axtree_pruned", "page_error")
    return page.model_copy(update={name: _marked(getattr(page, name)) for name in texts})


NOT_SHOWN = "[not shown]"


class HidingJudge(DefendedJudge):
    """A judge that is shown runs without some ``parts``."""

    def __init__(self, judge: Judge, parts: tuple[str, ...]) -> None:
        super().__init__(judge, "hide", ",".join(parts))
        self._parts = parts

    def shown(self, trajectory: Trajectory) -> Trajectory:
        """Return the run without the hidden parts."""
        return without(trajectory, self._parts)


def without(trajectory: Trajectory, parts: tuple[str, ...]) -> Trajectory:
    """Return the run without what the agent thought, or told the user, in any step."""
    answer = trajectory.answer
    if "answer" in parts and answer is not None:
        answer = NOT_SHOWN
    steps = tuple(_without(step, parts) for step in trajectory.steps)
    return trajectory.model_copy(update={"answer": answer, "steps": steps})


def _without(step: Step, parts: tuple[str, ...]) -> Step:
    update: dict[str, object] = {}
    if "reasoning" in parts and step.reasoning is not None:
        update["reasoning"] = NOT_SHOWN
    if "answer" in parts and message_to_user(step.action) is not None:
        update["action"] = f"send_msg_to_user({NOT_SHOWN!r})"
    return step.model_copy(update=update) if update else step


GOAL_TOKENS = 400

_OPENING = 40  # characters by which a goal is found in a prompt


class SandwichedJudge(DefendedJudge):
    """A judge whose prompts end with the goal and the task."""

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge, "sandwich", notices().hash)

    def client(self, trajectory: Trajectory, ask: ModelClient) -> ModelClient:
        """Return a client that repeats the goal of this run."""
        return _SandwichClient(ask, trajectory.goal)


class _SandwichClient(BaseClient):
    """Repeats the goal in calls that show it: some stages must not know it."""

    def __init__(self, ask: ModelClient, goal: str) -> None:
        self._ask = ask
        self._opening = goal.strip()[:_OPENING]
        self._text = notices().render("sandwich", goal=cut_middle(goal, GOAL_TOKENS))

    async def answer(self, call_args: CallArgs) -> Reply:
        messages = call_args.messages
        if call_args.stage == "verdict" or _shows(messages, self._opening):
            messages = after_material(messages, self._text)
        return await pass_on(self._ask, call_args._replace(messages=messages))


def _shows(messages: Sequence[Message], text: str) -> bool:
    parts = (part for one in messages if one.role == "user" for part in one.parts)
    return any(text in part.text for part in parts if isinstance(part, Text))


WITH, WITHOUT = "with_claims", "without_claims"

"""In ``scores``: what either pass said of success, its score or 0 or 1."""

_LABELS = (
    *("success", "side_effect", "repetition", "optimality"),
    *("process", "failure_step", "failure_type"),
)


class TwoPassJudge(DefendedJudge):
    """A judge that is asked twice, the second time without some ``parts`` of the agent's words."""

    def __init__(self, judge: Judge, parts: tuple[str, ...]) -> None:
        super().__init__(judge, "two_pass", ",".join(parts))
        self._parts = parts

    async def __call__(self, trajectory: Trajectory, ask: ModelClient) -> Verdict:
        """Judge as the judge does, and raise what it raises in either pass; a run without such
        words is judged once."""
        bare = without(trajectory, self._parts)
        if (bare.answer, bare.steps) == (trajectory.answer, trajectory.steps):
            return await self._judge(trajectory, ask)
        passes = [partial(self._judge, trajectory, ask), partial(self._judge, bare, _Second(ask))]
        return _merged(*await gather_bounded(passes))


class _Second(BaseClient):
    """Names the stages of the second pass, so that a recorded run tells the two apart."""

    def __init__(self, ask: ModelClient) -> None:
        self._ask = ask

    async def answer(self, call_args: CallArgs) -> Reply:
        return await pass_on(
            self._ask, call_args._replace(stage=f"without claims: {call_args.stage}")
        )


def _merged(first: Verdict, second: Verdict) -> Verdict:
    """Keep what both say; a label on which they differ is left open."""
    agreed = {name: getattr(first, name) for name in _LABELS}
    agreed = {n: value if getattr(second, n) == value else None for n, value in agreed.items()}
    scores = [score for one in (first, second) if (score := one.score) is not None]
    decided = agreed["success"] is not None and len(scores) == 2
    said = {WITH: _said(first), WITHOUT: _said(second)}
    differ = first.success != second.success
    return first.model_copy(
        update={
            **agreed,
            "score": sum(scores) / 2 if decided else None,
            "scores": {**first.scores, **{n: one for n, one in said.items() if one is not None}},
            "reasoning": _reasoning(first, second, differ=differ),
            "fallback": first.fallback or second.fallback,
        }
    )


def _said(verdict: Verdict) -> float | None:
    if verdict.score is not None or verdict.success is None:
        return verdict.score
    return float(verdict.success)


def _reasoning(first: Verdict, second: Verdict, *, differ: bool) -> str:
    undecided = "Undecided: the verdicts with and without the agent's words differ.\n"
    return (
        f"{undecided if differ else ''}{first.reasoning}\n"
        f"Without the agent's words: {second.reasoning}"
    )
