"""From a model's reply to a verdict.

A *mark* is what a judge's prompt asks for: a tag, a line ``Status:`` or ``Score:``, a JSON object.
One rule holds for all of them: the marks outside of the model's thoughts must all be readable and
agree. A mark that cannot be read contradicts the others, so that no draft or quotation passes for
the verdict that a reply ends with. Every function is linear in the length of the text.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from trajudge.judges.adapters.errors import CallFailed, Refused
from trajudge.judges.model import Reply, Verdict
from trajudge.trajectories.model import checked, defaults_of
from trajudge.trajectories.thoughts import SplitText, split_thoughts, without_thoughts

T = TypeVar("T")


class ParseFailure(Exception):
    """The reply holds no verdict, contradicting ones, or one that cannot be read. One sentence that
    says which."""


class MissingMark(ParseFailure):
    """The reply holds no mark at all: another form of reply may be tried."""


class ReplyParseError(ParseFailure):
    """A ``reply`` without what its prompt asked for; ``others`` of the same judgment lack it, too,
    and are asked for again with it."""

    def __init__(self, message: str, reply: Reply, others: Sequence[Reply] = ()) -> None:
        super().__init__(message)
        self.reply, self.others = reply, others


def _agreed(values: Sequence[T | None], *, contradiction: str, unreadable: str) -> T:
    """Return the value of all marks, None being one that cannot be read; ``values`` is not empty.
    Raises ParseFailure."""
    known = [value for value in values if value is not None]
    if any(value != known[0] for value in known) or (known and len(known) < len(values)):
        raise ParseFailure(contradiction)
    if not known:
        raise ParseFailure(unreadable)
    return known[0]


# Replies as a whole

_EMPTY = (
    "the answer is empty, all of it is in reasoning_content: check the server's reasoning parser "
    "(vLLM and SGLang: --reasoning-parser, llama.cpp: --reasoning-format)"
)
# Calls of one judgment that wait at once, each with its prompt and pictures in memory.
AT_ONCE = 16


def check_reply(reply: Reply) -> SplitText:
    """Split a reply that has an answer. Raises Refused, and ReplyParseError for one that was cut
    inside its reasoning or has nothing else."""
    if reply.finish == "refused":
        raise Refused("the model declined to answer")
    split = split_thoughts(reply.text, reasoning=True)
    is_empty = not split.answer.strip() and bool(reply.thoughts.strip())
    if reply.finish == "length" and (split.open or is_empty):
        raise ReplyParseError("the reply ran out of output tokens inside its reasoning", reply)
    if is_empty and not split.reasoning:
        raise ReplyParseError(_EMPTY, reply)
    return split


def parse_reply(reply: Reply, parse: Callable[[str], T]) -> T:
    """Return what ``parse`` reads in a reply.

    A reply that was cut at its token limit counts if its reasoning is closed, or if it ends with
    what was asked for: else the marks in it may be thoughts. Raises Refused, and ReplyParseError
    for such a reply and if ``parse`` raises ParseFailure.
    """
    split = check_reply(reply)
    try:
        result = parse(reply.text)
    except ParseFailure as failure:
        raise ReplyParseError(str(failure), reply) from failure
    if reply.finish == "length" and not split.closed and _is_early(reply.text, parse):
        raise ReplyParseError("the reply ran out of output tokens after a draft", reply)
    return result


def _is_early(text: str, parse: Callable[[str], object]) -> bool:
    """Return True if the text says the same already without its last line, or without what follows
    its last tag or object."""
    text = text.rstrip().removesuffix("```").rstrip()
    ends = {text.rfind("\n"), text.rfind(">") + 1, text.rfind("}") + 1} - {len(text), -1}
    for end in ends:
        with suppress(ParseFailure):
            parse(text[:end])
            return True
    return False


def parse_complete_reply(reply: Reply, parse: Callable[[str], T]) -> T:
    """Parse a reply of which no part may be missing. Raises ReplyParseError also for one that was
    cut off."""
    if reply.finish == "length":
        raise ReplyParseError("the reply ran out of output tokens", reply)
    return parse_reply(reply, parse)


def nonempty_text(text: str) -> str:
    """Return a reply that is plain text, without its thoughts. Raises ParseFailure if it is
    empty."""
    answer = without_thoughts(text).strip()
    if not answer:
        raise ParseFailure("the reply is empty")
    return answer


def text_as_it_came(text: str) -> str:
    """Return a reply unchanged. Raises ParseFailure if it is empty."""
    nonempty_text(text)
    return text


@contextmanager
def error_context(part: str) -> Iterator[None]:
    """Prefix the message of failures inside with ``part`` ("screenshot 3")."""
    try:
        yield
    except CallFailed as failure:
        raise type(failure)(f"{part}: {failure}") from failure
    except ReplyParseError as failure:
        raise ReplyParseError(f"{part}: {failure}", failure.reply, failure.others) from failure
    except ParseFailure as failure:
        raise ParseFailure(f"{part}: {failure}") from failure


async def gather_bounded(
    works: Sequence[Callable[[], Awaitable[T]]], at_once: int = AT_ONCE
) -> list[T]:
    """Run all works, at most ``at_once`` at a time, and return their results in order.

    If one fails, the others still finish, so that what was paid for is kept and the ledger is the
    same every time; then the first failure in the order of the works is raised. An error that ends
    the run as a whole is raised before failures of single calls.
    """
    turn = asyncio.Semaphore(at_once)

    async def bounded(work: Callable[[], Awaitable[T]]) -> T:
        async with turn:
            return await work()

    ended = await asyncio.gather(*map(bounded, works), return_exceptions=True)
    failures = [result for result in ended if isinstance(result, BaseException)]
    failures.sort(key=lambda failure: isinstance(failure, CallFailed | ParseFailure))
    if failures:
        raise failures[0]
    return [result for result in ended if not isinstance(result, BaseException)]


# Words

_MARKUP = re.compile(r"</?[a-z][^<>]{0,60}>", re.IGNORECASE)
_NOT_WORD = re.compile(r"[\W_]+")


def normalise(value: str) -> str:
    """Reduce to lower-case words and numbers with single blanks between: markup, quotes and other
    punctuation are removed."""
    if value.isalnum():
        return value.casefold()
    return _NOT_WORD.sub(" ", _MARKUP.sub(" ", value)).strip().casefold()


# Tags

_SUCCESS = {
    **dict.fromkeys(("successful", "success", "succeeded", "yes", "true"), True),
    **dict.fromkeys(
        ("unsuccessful", "unsuccesful", "not successful", "failure", "failed", "no", "false"), False
    ),
}
_YES_NO = {"yes": True, "true": True, "no": False, "false": False}
_GRADES = ("complete failure", "suboptimal", "somewhat optimal", "completely optimal")
_OPTIMALITY = {
    spelling: grade
    for grade, name in enumerate(_GRADES, start=1)
    for spelling in (str(grade), name, f"{grade} {name}")
}
_TAG = re.compile(
    r"(<\s{0,3}(/?)\s{0,3}(reasoning|success|side|optimal|loop)(?:\s[^<>]{0,200})?/?>)",
    re.IGNORECASE,
)
_BLANK = defaults_of(Verdict)


def parse_tags(text: str) -> Verdict:
    """Parse the verdict in ``<success>``, ``<side>``, ``<optimal>`` and ``<loop>``, in any order.

    Tags inside ``<reasoning>...</reasoning>`` do not count; a reasoning block that is never closed
    hides nothing. A label other than success that is missing or unknown (``Unsure``) is None.
    Raises ParseFailure if success is missing or not a verdict, or if a label contradicts itself.
    """
    split = split_thoughts(text, reasoning=True)
    pieces = _TAG.split(split.answer)
    names, closes, texts = [name.lower() for name in pieces[3::4]], pieces[2::4], pieces[::4]
    values = _tag_values(names, closes, texts)
    success = values.get("success")
    if not success:
        raise MissingMark("the reply holds no <success> verdict outside of its reasoning")
    first = next((index for index, name in enumerate(names) if name != "reasoning"), len(names))
    labels: dict[str, Any] = {
        "success": _agreed(
            [_SUCCESS.get(value) for value in success],
            contradiction="the reply contradicts itself about <success>",
            unreadable=f"the reply's <success> says {success[0][:40]!r}, which is neither verdict",
        ),
        "side_effect": _label("side", values, _YES_NO),
        "repetition": _label("loop", values, _YES_NO),
        "optimality": _label("optimal", values, _OPTIMALITY),
        "scores": {},
        "reasoning": split.reasoning or "".join(texts[: first + 1]).strip(),
    }
    return checked(Verdict, _BLANK | labels)


def _tag_values(
    names: Sequence[str], closes: Sequence[str], texts: Sequence[str]
) -> dict[str, list[str]]:
    """Return the normalised value of every opening tag by name, up to the next tag; ``texts`` are
    what stands between the tags, the first before all of them. One that is not closed by its own
    ends with its line, and is no mark if no word follows."""
    values: dict[str, list[str]] = {}
    for index, name in enumerate(names):
        if closes[index] or name == "reasoning":
            continue
        value = texts[index + 1]
        is_closed = names[index + 1 : index + 2] == [name] and bool(closes[index + 1])
        if not is_closed:
            value = value.lstrip().split("\n", 1)[0]
        words = normalise(value[:200])
        if words or is_closed:
            values.setdefault(name, []).append(words or value.strip())
    return values


def _label(name: str, values: Mapping[str, list[str]], meanings: Mapping[str, T]) -> T | None:
    """Return the meaning of all values of a label; None if there is none, or one without a
    meaning. Raises ParseFailure if two contradict each other."""
    labels = [meanings.get(value) for value in values.get(name, ())]
    known = {label for label in labels if label is not None}
    if len(known) > 1:
        raise ParseFailure(f"the reply contradicts itself about <{name}>")
    return None if None in labels else next(iter(known), None)


# Lines

# A value and what decorates it take no more characters than this.
_REACH = 120
# One character for one, so that positions stay: full-width forms, blanks, line breaks.
_FOLDS: dict[int, int | str] = {
    **{code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)},
    **dict.fromkeys(map(ord, "\xa0\u1680\u202f\u205f\u3000\u200b\u2060\ufeff"), " "),
    **dict.fromkeys(range(0x2000, 0x200B), " "),
    **dict.fromkeys(map(ord, "\r\v\f\x85\u2028\u2029"), "\n"),
    **dict.fromkeys(map(ord, "\ufe55\u2236\ua789"), ":"),
    **dict.fromkeys(map(ord, "\u2018\u2019\u201c\u201d\xab\xbb\u300c\u300d"), '"'),
    **dict.fromkeys(map(ord, "\u2010\u2011"), "-"),
    **dict.fromkeys(map(ord, "\u3002"), "."),
    **dict.fromkeys(map(ord, "\u3001"), ","),
}
_THOUGHTS = re.compile(r"\A[\s*_#>\"'`]*(?:thoughts?|reasoning)[*_\"'` ]{0,4}:", re.IGNORECASE)
# What may stand before the name of a line.
_PREFIX = re.compile(r"(?:\d{1,2} ?)?(?:(?:final|overall|task|evaluation) ?)*")
_HTML = re.compile(r"</?(?:b|i|u|em|strong|code|span|mark|p|br|font)\b[^<>]{0,60}>", re.IGNORECASE)
_BEFORE_WORD = re.compile(r"(?:[\W_]|(?<=\\)(?:text|textbf|mathbf|boxed)(?=\{))*")
_SUCCEEDED = r"(?P<success>success(?:ful)?|succeeded)"
_FAILED = (
    r"(?P<failure>(?:not(?:\s+a)?|non)[\s-]+success(?:ful)?|un-?success?ful|fail(?:ure|ed|s)?)"
)
_STATUS = re.compile(rf"(?:{_FAILED}|{_SUCCEEDED})(?![^\W_]|-\w)", re.IGNORECASE)
# What separates a value from words that explain it; an infinitive goes with "failed" alone.
_EXPLAINED = re.compile(
    r"[\s*_\"'`)\]}>]*(?:[.,;:!…–—({\[-]|\b(?:because|since|as|due|given|with)\b)", re.IGNORECASE
)
_INFINITIVE = re.compile(r"\s+to\b", re.IGNORECASE)
# What takes a value back: the other verdict as an alternative, a hedge.
_ALTERNATIVE = re.compile(rf"[\W_]*(?:\b(?:or|and|vs)\b[\W_]*)?{_STATUS.pattern}", re.IGNORECASE)
_HEDGE = re.compile(
    r"[\W_]*(?:partial|mostly|probabl|likely|possibl|maybe|perhaps|unclear|uncertain|unverif|"
    r"almost|nearly|but\b|if\b|however\b|except\b|only\b)",
    re.IGNORECASE,
)
_GRADE = re.compile(
    r"(?P<number>\d{1,3}(?:\.\d{1,3})?)"
    r"(?: ?\(?(?:/|(?:out )?of) ?(?P<scale>\d{1,3})\)?(?![\d.]\d))?"
    r"(?: ?(?:points?|stars?))?(?![^\W_]|[.,]\d)",
    re.IGNORECASE,
)
_OTHER_NUMBER = re.compile(r"[\W_]*(?:(?:or|to|and)\b[\W_]*)?[\d%]", re.IGNORECASE)
_SCALE = re.compile(r"(?:out of|scale)\D{0,20}(?:\d{1,3}\s*(?:-|–|to)\s*)?(\d{1,3})", re.IGNORECASE)


_NO_STATUS = "the reply's line  Status:  says neither success nor failure"


class Grade(NamedTuple):
    """A number on a judge's scale, and the reasoning before it."""

    value: float
    reasoning: str


def parse_status_line(text: str) -> Verdict:
    """Parse the verdict in ``Status: success`` (AER, WebVoyager, WebJudge), decorated or not, with
    words that explain it or without.

    Lines that begin with it decide; a ``Status:`` in the middle of an earlier line is a quotation.
    Where no line begins so, one whose verdict ends a line of reasoning counts. Raises ParseFailure
    if there is no verdict, one that cannot be read, or contradicting ones.
    """
    lines = _read_lines("status", _mark("status"), text, _status)
    success = _agreed(
        lines.values,
        contradiction="the reply gives two contradicting statuses, or one that cannot be read",
        unreadable=_NO_STATUS,
    )
    return Verdict(success=success, reasoning=lines.reasoning)


def status_of(word: str) -> bool:
    """Return the verdict in a word or two. Raises ParseFailure if it is neither."""
    success = _status(word, True)
    if success is None:
        raise ParseFailure(_NO_STATUS)
    return success


def parse_grade_line(text: str, name: str, low: float, high: float) -> Grade:
    """Parse the number in ``Score: 4`` (``name`` score), also ``4/5``, ``4 out of 5`` and
    decorated.

    Which line counts is as with ``parse_status_line``. A reply without such a line may have
    ``Score 4``, or the number on the line below a heading ``## Score``. Raises MissingMark if there
    is neither, ParseFailure if a number cannot be read, is not in ``low`` to ``high`` or on another
    scale, or if two differ.
    """

    def grade(line: str, begins: bool) -> float | None:
        return _grade(line, begins, high)

    title = name.capitalize()
    bare: _Lines | None = None
    with suppress(MissingMark):
        bare = _read_lines(name, _bare_mark(name), text, grade)
    try:
        lines = _read_lines(name, _mark(name), text, grade)
        if bare:
            lines.values.extend(value for value in bare.values if value is not None)
    except MissingMark:
        if bare is None:
            raise
        lines = bare
    value = _agreed(
        lines.values,
        contradiction=f"the reply gives contradicting numbers for  {title}: , or one that cannot "
        "be read",
        unreadable=f"the reply's line  {title}:  holds no number up to {high:g} that can be read",
    )
    if not low <= value <= high:
        raise ParseFailure(f"the reply says  {title}: {value:g} , not {low:g} to {high:g}")
    return Grade(value, lines.reasoning)


class _Lines(NamedTuple):
    """What the lines with a name say, None for one that cannot be read; the reasoning before
    them."""

    values: list[Any]
    reasoning: str


@cache
def _mark(name: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?<![a-z0-9]){re.escape(name)}(?:</[a-z]{{1,6}}>|[*_\"'` \t]){{0,6}}"
        rf"(?:\([^()\n]{{0,30}}\)[*_\"'` \t]{{0,6}})?:",
        re.IGNORECASE,
    )


@cache
def _bare_mark(name: str) -> re.Pattern[str]:
    """Compile what stands before a number at the end of a line, or on the next one, without a
    colon. The name begins a line."""
    return re.compile(
        rf"^[^\w\n]{{0,12}}(?:\d{{1,2}}[.)] ?)?[*_\"'` \t]{{0,6}}{re.escape(name)}"
        rf"(?:</[a-z]{{1,6}}>|[*_\"'` \t=-]){{0,8}}(?:\n[\s*_\"'`#>-]{{0,12}})?(?=\d)",
        re.IGNORECASE | re.MULTILINE,
    )


def _read_lines(
    name: str, mark: re.Pattern[str], text: str, meaning: Callable[[str, bool], object]
) -> _Lines:
    """Read the marks of a name; ``meaning`` gets the rest of the line, and whether the line begins
    with the mark. Raises MissingMark if there is none."""
    split = split_thoughts(text, reasoning=True)
    folded = split.answer if split.answer.isascii() else split.answer.translate(_FOLDS)
    folded = folded.replace("\r", "\n")
    own: list[object] = []
    trailing: list[object] = []
    last = len(folded)
    for found in mark.finditer(folded):
        rest = folded[found.end() : found.end() + _REACH].lstrip().split("\n", 1)[0]
        begins = _begins_line(folded, found.start())
        value = meaning(rest, begins)
        last = found.start()
        if begins:
            own.append(value)
            trailing.clear()
        elif value is not None or (trailing and not own):
            trailing.append(value)
    values = own + trailing
    if not values:
        raise MissingMark(f"the reply holds no line  {name.capitalize()}:  outside of its thoughts")
    before = split.answer[:last].strip().rstrip("*_#\"'` \n")
    return _Lines(values, _THOUGHTS.sub("", before).strip() or split.reasoning)


def _begins_line(text: str, start: int) -> bool:
    """Return True if nothing but markup and a word such as "Final" stands before ``start`` on its
    line."""
    before = text[max(0, start - _REACH) : start]
    return _PREFIX.fullmatch(normalise(before.rpartition("\n")[2])) is not None


def _status(line: str, begins: bool) -> bool | None:
    """Return the verdict at the beginning of the line, None if there is none or it is taken back.
    Words may explain it where the line ``begins`` with the name."""
    line = _HTML.sub(" ", line)
    before = _BEFORE_WORD.match(line)
    match = _STATUS.match(line, before.end() if before else 0)
    if match is None:
        return None
    success, rest = match["success"] is not None, line[match.end() :]
    if not normalise(rest):
        return None if "?" in rest else success
    explained = _EXPLAINED.match(rest) or (None if success else _INFINITIVE.match(rest))
    if not begins or explained is None:
        return None
    other = _ALTERNATIVE.match(rest)
    if other is not None and (other["success"] is not None) is not success:
        return None
    return None if success and _HEDGE.match(rest, explained.end()) else success


def _grade(line: str, begins: bool, high: float) -> float | None:
    """Return the number at the beginning of the line; None if there is none, another one follows,
    or it is of another scale. Words may explain it where the line ``begins`` with the name."""
    line = _HTML.sub(" ", line).lstrip("*_\"'`([{#= \t")
    if re.match(r"<\s*\d+(?:\.\d+)?\s*>", line):
        line = line[1:].lstrip()
    match = _GRADE.match(line)
    if match is None:
        return None
    rest = line[match.end() :]
    scale = match["scale"] or (elsewhere[1] if (elsewhere := _SCALE.search(rest)) else None)
    if (scale and float(scale) != high) or _OTHER_NUMBER.match(rest) or "?" in rest[:3]:
        return None
    if normalise(rest) and not (begins and _EXPLAINED.match(rest)):
        return None
    return float(match["number"])


# JSON

FALLBACK = "JSON with small mistakes"
# So many braces may begin no strict JSON: each takes a look at the whole text.
_BRACES = 100
_DEPTH = 60
_BEGINS_OBJECT = re.compile(r"\{(?=\s*(?:[\"'“}\w/#]))")
_BEGUN = re.compile(r"\{\s*[\"'“]")
_VALUE = r"\s*(?:[\"'“{\[\d-]|(?:true|false|null|none)\b)"


class ParsedObject(NamedTuple):
    """An object of a reply; ``fallback`` says what was mended to read it, "" if nothing."""

    fields: Mapping[str, Any]
    fallback: str


def parse_json(text: str, keys: Collection[str]) -> ParsedObject:
    """Parse the one object in the reply that has all of ``keys``; its thoughts are ignored.

    Strict JSON first; what is none is read as JSON5 with the words of Python: comments, trailing
    commas, single quotes, names without quotes, line breaks in strings. What was cut off is not
    completed. Raises MissingMark if there is no object, ParseFailure if one cannot be read, if two
    differ, or if one names a key twice with different values.
    """
    answer = split_thoughts(text, reasoning=True).answer
    objects: list[_Object] = []
    marks, position, unreadable = _json_marks(tuple(keys)), 0, False
    for one in _objects(answer):
        unreadable |= _begun(answer, position, one.start, marks)
        position = one.end
        if one.fields and one.fields.keys() >= set(keys):
            objects.append(one)
        elif keys:
            unreadable |= marks.search(answer, one.start, one.end) is not None
    unreadable |= _begun(answer, position, len(answer), marks)
    wanted = f"JSON object with {', '.join(keys)}" if keys else "JSON object"
    if not objects and not unreadable:
        raise MissingMark(f"the reply holds no {wanted}")
    fields = _agreed(
        [*(one.fields for one in objects), *([None] if unreadable else ())],
        contradiction="the reply holds two contradicting JSON objects"
        + (", one of which cannot be read" if unreadable else ""),
        unreadable=f"the reply holds no {wanted} that can be read",
    )
    return ParsedObject(fields, FALLBACK if any(one.mended for one in objects) else "")


class _Object(NamedTuple):
    fields: dict[str, Any]
    start: int
    end: int
    mended: bool


@cache
def _json_marks(keys: tuple[str, ...]) -> re.Pattern[str]:
    """Compile what shows a field with one of the keys."""
    names = "|".join(map(re.escape, keys))
    return re.compile(
        rf"(?:[\"'“](?:{names})[\"'”]|,\s*(?:{names}))\s*:{_VALUE}|\{{\s*(?:{names})\s*:",
        re.IGNORECASE,
    )


def _begun(text: str, start: int, end: int, marks: re.Pattern[str]) -> bool:
    """Return True if an object was begun, or a field written, where no object can be read."""
    return any(pattern.search(text, start, end) for pattern in (_BEGUN, marks))


def _objects(text: str) -> Iterator[_Object]:
    """Yield the outermost objects that can be read, in order. Raises ParseFailure."""
    position = failures = 0
    while begins := _BEGINS_OBJECT.search(text, position):
        found = _object(text, begins.start())
        position = begins.end() if found is None else found.end
        failures += found is None or found.mended
        if found is not None:
            yield found
        if failures > _BRACES:
            raise ParseFailure("the reply holds no JSON object among its many braces")


def _object(text: str, start: int) -> _Object | None:
    """Decode the object that begins at ``start``, None if none does. Raises ParseFailure if it
    contradicts itself."""
    try:
        value, end = _STRICT.raw_decode(text, start)
    except (ValueError, RecursionError):
        try:
            value, end = _Json5(text).value(start, 0)
        except (ValueError, RecursionError):
            return None
        return _Object(value, start, end, mended=True)
    return _Object(value, start, end, mended=False)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if fields.setdefault(name, value) != value:
            raise ParseFailure(f"the reply contradicts itself about {name[:40]!r}")
    return fields


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_STRICT = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_constant)

_SKIPPED = re.compile(r"(?:\s|//[^\n]*+|#[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+")
_TOKEN = re.compile(
    r"\"(?P<double>(?:[^\"\\]|\\.)*+)\"|'(?P<single>(?:[^'\\]|\\.)*+)'|“(?P<curly>[^”\\]*+)”"
    r"|(?P<number>-?(?:0|[1-9]\d{0,30})(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?)(?![\w.])"
    r"|(?P<word>[A-Za-z_$][\w$]*)",
    re.DOTALL,
)
_QUOTES = re.compile(r"\\(.)|(\")", re.DOTALL)
_CONSTANTS = {
    "true": True,
    "false": False,
    "null": None,
    "True": True,
    "False": False,
    "None": None,
}


class _Json5:
    """Reads JSON with small mistakes; every method raises ValueError for larger ones."""

    def __init__(self, text: str) -> None:
        self._text = text

    def value(self, position: int, depth: int) -> tuple[Any, int]:
        """Return the value at ``position`` and where it ends."""
        if depth > _DEPTH:
            raise ValueError("nested too deeply")
        if self._text.startswith("{", position):
            return self._object(position, depth)
        if self._text.startswith("[", position):
            return self._list(position, depth)
        kind, content, end = self._token(position)
        if kind == "word":
            if content not in _CONSTANTS:
                raise ValueError(content)
            return _CONSTANTS[content], end
        return json.loads(content) if kind == "number" else _string(kind, content), end

    def _object(self, position: int, depth: int) -> tuple[dict[str, Any], int]:
        pairs: list[tuple[str, Any]] = []
        position = self._skip(position + 1)
        while not self._text.startswith("}", position):
            kind, content, position = self._token(position)
            if kind == "number":
                raise ValueError(content)
            position = self._skip(position)
            if not self._text.startswith(":", position):
                raise ValueError("no colon")
            value, position = self.value(self._skip(position + 1), depth + 1)
            pairs.append((content if kind == "word" else _string(kind, content), value))
            position = self._after(position, "}")
        return _once(pairs), position + 1

    def _list(self, position: int, depth: int) -> tuple[list[Any], int]:
        values: list[Any] = []
        position = self._skip(position + 1)
        while not self._text.startswith("]", position):
            value, position = self.value(position, depth + 1)
            values.append(value)
            position = self._after(position, "]")
        return values, position + 1

    def _after(self, position: int, closing: str) -> int:
        """Step over the comma after an entry, which the last one may have."""
        position = self._skip(position)
        if self._text.startswith(",", position):
            return self._skip(position + 1)
        if not self._text.startswith(closing, position):
            raise ValueError("no comma")
        return position

    def _token(self, position: int) -> tuple[str, str, int]:
        match = _TOKEN.match(self._text, position)
        if match is None or match.lastgroup is None:
            raise ValueError("no value")
        return match.lastgroup, match[match.lastgroup], match.end()

    def _skip(self, position: int) -> int:
        match = _SKIPPED.match(self._text, position)
        return match.end() if match else position


def _string(kind: str, content: str) -> str:
    """Decode what stands between quotes. Raises ValueError for an escape that is none."""
    if kind == "single":
        content = _QUOTES.sub(lambda m: "'" if m[1] == "'" else '\\"' if m[2] else m[0], content)
    elif kind == "curly":
        content = content.replace('"', '\\"')
    return str(json.loads(f'"{content}"', strict=False))


class ReplyFields(BaseModel):
    """Fields of a reply: of exactly these types, whatever else it holds. ``order`` is that in which
    they are asked for, where it is not that of the class."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)
    order: ClassVar[tuple[str, ...]] = ()


# Text, or whatever stands in its place.
AnyText = Annotated[str, BeforeValidator(str)]
K = TypeVar("K", bound=ReplyFields)


def validated(kind: type[K], fields: object, where: str = "") -> K:
    """Check fields. Raises ParseFailure that names the first one that is wrong."""
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        problem = error.errors()[0]
        name = ".".join(map(str, problem["loc"]))
        why = problem["msg"].removeprefix("Value error, ")
        raise ParseFailure(": ".join(filter(None, (where, name, why)))) from error


def parse_fields(kind: type[K], text: str) -> tuple[K, str]:
    """Parse the one object in the reply that has all required fields of ``kind``, and what was
    mended to read it ("" if nothing). Raises ParseFailure as ``parse_json`` does, and for a field
    of another type."""
    keys = [name for name, field in kind.model_fields.items() if field.is_required()]
    fields, fallback = parse_json(text, keys)
    return validated(kind, fields), fallback


def number_in(fields: Mapping[str, Any], name: str, low: float, high: float) -> float:
    """Return a number of the object, within limits. Raises ParseFailure."""
    value = fields[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ParseFailure(f"the reply says {name} = {str(value)[:40]}, not {low:g} to {high:g}")
    return float(value)


def whole_number_in(fields: Mapping[str, Any], name: str, low: int, high: int) -> int:
    """Return a whole number of the object, within limits. Raises ParseFailure."""
    value = number_in(fields, name, low, high)
    if value != int(value):
        raise ParseFailure(f"the reply says {name} = {value:g}, no whole number")
    return int(value)


def flag(fields: Mapping[str, Any], name: str) -> bool:
    """Return a true or false of the object. Raises ParseFailure for anything else."""
    value = fields[name]
    if not isinstance(value, bool):
        raise ParseFailure(f"the reply says {name} = {str(value)[:40]}, neither true nor false")
    return value
