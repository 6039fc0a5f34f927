"""What pages, agents and models wrote, made harmless for a prompt without hiding that it was there.

Three things are changed, each to plain characters that a reader sees:

- The first character of what could pass for structure becomes ``(``: a tag of the prompt, the
  marks of chat templates (``<|im_start|>``, ``[INST]``, ``<<SYS>>``, ``</s>``), also escaped
  (``&lt;``, ``%3C``, ``\\u003c``), in full-width or look-alike letters, or with invisible
  characters inside.
- The colon after a role at the beginning of a line (``Human:``) becomes ``(``.
- An invisible character becomes ``·``; letters spelled in Unicode tag characters become those
  letters between two ``·``. Joiners in emoji and in the scripts that are written with them, and
  marks of direction beside right-to-left letters, stay.

Nothing takes more tokens than it was counted for, and changed text is not changed again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from operator import ne
from unicodedata import normalize

VERSION = 3
"""Of what is done here. It is a part of every prompt's hash, so that no run mixes two of them."""

MARK = "·"
BRACKET = "("

# What models were trained to read as the beginning or the end of a turn, of thoughts or of a tool's
# result, beside everything that begins with "<|".
_CHAT_TAGS = frozenset(
    {
        *("s", "bos", "eos", "bos_token", "eos_token", "endoftext", "im_start", "im_end"),
        *("start_of_turn", "end_of_turn", "end_of_utterance", "sys", "inst"),
        *("system", "user", "assistant", "human", "developer", "instruction", "instructions"),
        *("think", "thinking", "tool", "tools", "tool_call", "tool_calls", "tool_response"),
        *("tool_result", "tool_results", "function_call", "function_calls"),
        *("function_result", "function_results", "invoke"),
    }
)
JUDGE_TAGS = frozenset(
    {
        *("success", "side", "optimal", "loop", "reasoning", "verdict", "status", "score"),
        *("goal", "steps", "step", "url", "thought", "action", "answer", "axtree", "page"),
    }
)
"""Tags of our own judges. A prompt of ours without them is shown none either, for a verdict is one
in every form; a published prompt is shown them, as its source does."""
_CHAT_BRACKETS = ("inst", "sys", "system_prompt", "tool_calls", "tool_results", "available_tools")
_ROLES = "human|assistant|user|system|developer"
_HEADINGS = "instruction|response|input"

# In folded text every invisible character is a control character.
_CONTROL = r"\x00-\x08\x0e-\x1f\x7f"
_SPACE = rf"[\s/\\{_CONTROL}]*+"
# A bar, or a letter or bar that is escaped as well: nobody writes letters so but to hide a name.
_HEX = "4[1-9a-f]|5[0-9a]|6[1-9a-f]|7[0-9ac]"
_DECIMAL = "6[5-9]|[78][0-9]|90|9[7-9]|1[01][0-9]|12[0-24]"
_ESCAPED = (
    rf"&(?:amp;)*+(?:vert|verbar|verticalline|#0*(?:{_DECIMAL})|#x0*(?:{_HEX}))(?![a-z0-9]);?"
    rf"|%(?:25)*+(?:{_HEX})|(?<=\\)(?:u00|x)(?:{_HEX})"
)
_NAME = (
    rf"(?=<?{_SPACE}(?:(?:&(?:sol|#0*47|#x0*2f);?|%2f|%20){_SPACE})*+"
    rf"(\||{_ESCAPED}|[a-z][a-z0-9_{_CONTROL}]*+))"
)
_IS_ESCAPED = re.compile(rf"&.*|%.*|(?:u00|x)(?:{_HEX})", re.IGNORECASE)
# By the character that they begin with, so that most texts are passed over at once.
_OPENINGS = {
    first: re.compile(opening + _NAME, re.IGNORECASE)
    for first, opening in {
        "<": "<",
        "&": r"&(?:amp;)*+(?:lt|#0*60|#x0*3c)(?![a-z0-9]);?",
        "%": r"%(?:25)*+3c",
        "\\": r"\\(?:u003c|x3c)",
    }.items()
}
# Both patterns below look at the next character before they try the names: a tree has a bracket and
# a line break in every line, and few of them are followed by one of these characters.
_IN_BRACKETS = re.compile(
    rf"\[(?=[\s/{''.join(sorted({name[0] for name in _CHAT_BRACKETS}))}])"
    rf"(?=[\s/]*+(?:{'|'.join(_CHAT_BRACKETS)})\s*+\])",
    re.IGNORECASE,
)
_DROP_CONTROL = dict.fromkeys([*range(9), *range(14, 32), 127])
_FIRST_LETTERS = "".join(role[0] for role in _ROLES.split("|"))
_AROUND = rf"[ \t>*_\"'`{_CONTROL}]*+"
_LABEL = (
    rf"{_AROUND}(?=[#{_FIRST_LETTERS}])"
    rf"(?:#{{1,6}}{_AROUND}(?:{_HEADINGS}|{_ROLES})|(?:{_ROLES})){_AROUND}([:\uff1a])"
)
# Two patterns: one that begins with a plain character is found much faster.
_FIRST_ROLE = re.compile(_LABEL, re.IGNORECASE)
_ROLE = re.compile("\n" + _LABEL, re.IGNORECASE)
_BREAKS = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_BEFORE_CONTROL = re.compile(f"[{_CONTROL}]")
_BREAK = re.compile(f"[{_BREAKS}]")


def neutralise(text: str, tags: frozenset[str]) -> str:
    """Neutralise ``text``: none of ``tags`` opens or closes, no chat template's mark is intact, and
    nothing is invisible. Characters that cannot be sent at all are left to
    ``prompts.render.sendable``."""
    if "<" in text or "&" in text or "%" in text or "\\" in text or "[" in text:
        pass
    elif text.isascii() and (":" not in text or _is_plain_line(text)):
        return text  # as most values are
    if text.isascii() or not _has_unusual(text):
        return _broken(text, text, tags)
    text = _TAG_RUN.sub(_spelled_out, text)
    folds = _folds()
    folded = _UNUSUAL.sub(lambda match: folds[ord(match[0])], text)
    return _INVISIBLE.sub(_marked, _broken(text, folded, tags))


def count_changes(text: str, shown: Callable[[str], str]) -> int:
    """Count the places that ``shown`` changes, which keeps the length but for letters in Unicode
    tag characters: a run of those is one place."""
    if shown(text) == text:
        return 0
    short = _TAG_RUN.sub(lambda match: match[0] if match[1] else match[0][0], text)
    return sum(map(ne, short, shown(short)))


def _is_plain_line(text: str) -> bool:
    """Return True if it is a single line, and none that begins with a role."""
    return text.isprintable() and _FIRST_ROLE.match(text) is None  # a line break is not printable


def _has_unusual(text: str) -> bool:
    """Return True if anything is invisible, or a letter in disguise. Characters beyond the basic
    plane, which are slow to search for, are searched for only where there are any."""
    if _UNUSUAL_BASIC.search(text):
        return True
    beyond = len(text.encode("utf-16-le", "surrogatepass")) > 2 * len(text)
    return beyond and _UNUSUAL.search(text) is not None


def _broken(text: str, folded: str, tags: frozenset[str]) -> str:
    """Put a bracket into ``text`` wherever ``folded``, of the same length, has structure."""
    if any(map(folded.__contains__, _BREAKS)):
        folded = _BREAK.sub("\n", folded)
    positions = list(_structure(folded, tags))
    if not positions:
        return text
    characters = list(text)
    for position in positions:
        characters[position] = BRACKET
    return "".join(characters)


def _structure(folded: str, tags: frozenset[str]) -> Iterator[int]:
    """Yield the positions where structure begins, or of its colon."""
    for first, opening in _OPENINGS.items():
        if first in folded:
            for match in opening.finditer(folded):
                if _names(match[1], tags):
                    yield match.start()
    if not folded.isascii() and any(character in folded for character in _BRACKETS):
        for match in _disguised().finditer(folded):
            if match[0] != "<" or not match[1].isascii():
                plain = _OPENINGS["<"].match("<" + match[1].translate(_folds()))
                if plain and _names(plain[1], tags):
                    yield match.start()
    if "[" in folded:
        for match in _IN_BRACKETS.finditer(folded):
            yield match.start()
    if ":" in folded or "\uff1a" in folded:
        yield from _roles(folded)


def _roles(folded: str) -> Iterator[int]:
    """Yield the positions of the colons after roles."""
    first_line = _FIRST_ROLE.match(folded)
    if first_line:
        yield first_line.start(1)
    for match in _ROLE.finditer(folded):
        yield match.start(1)


def _names(raw_name: str, tags: frozenset[str]) -> bool:
    """Return True if a name is one of the tags, invisible characters in it or behind it or not."""
    if raw_name == "|" or _IS_ESCAPED.fullmatch(raw_name):
        return True
    name = raw_name.lower()
    if name.isprintable():
        return name in _CHAT_TAGS or name in tags
    names = {name.translate(_DROP_CONTROL), _BEFORE_CONTROL.split(name)[0]}
    return not names.isdisjoint(_CHAT_TAGS) or not names.isdisjoint(tags)


# Invisible characters

_INVISIBLE_BASIC = (
    "\x80-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
)
_INVISIBLE_BEYOND = "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
_EMOJI = (
    "\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_FLAG = (
    "\U0001f3f4\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|"
    "\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)\U000e007f"
)
_RIGHT_TO_LEFT = "\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
_JOINING = (
    "\u0620-\u074f\u0750-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17b3\u17b6-\u180a\u1810-\u18aa"
    "\ufb50-\ufdff\ufe70-\ufefc"
)
_WITHOUT_SPACES = "\u0e00-\u0fff\u1000-\u109f\u1780-\u17b3\u17b6-\u17ff"
# What of it a script or an emoji is written with.
_KEPT = re.compile(
    f"(?<=[{_EMOJI}])(?:[\ufe0e\ufe0f]|\u200d(?=[{_EMOJI}]))"
    f"|(?<=[{_EMOJI}]\ufe0f)\u200d(?=[{_EMOJI}])|(?<=[0-9#*])\ufe0f(?=\u20e3)"
    f"|(?<=[\u3400-\u9fff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]"
    f"|(?<=[\u1820-\u18aa])[\u180b-\u180e]"
    f"|(?<=[{_JOINING}])[\u200c\u200d]|(?<=[{_WITHOUT_SPACES}])\u200b"
    f"|(?<=[{_RIGHT_TO_LEFT}])[\u200e\u200f\u061c]|[\u200e\u200f\u061c](?=[{_RIGHT_TO_LEFT}])"
    # Of a flag: all others are spelled out before.
    "|[\U000e0020-\U000e007f]"
)
_TAG_RUN = re.compile(f"({_FLAG})|[\U000e0000-\U000e007f]+")
# Letters that are rare in any text: letter-like, circled, full-width, mathematical.
_RARE = "\u2100-\u214e\u24b6-\u24e9\ufe64\uff1c\uff21-\uff3b\uff41-\uff5a"
_RARE_BEYOND = "\U0001d400-\U0001d6a7\U0001f130-\U0001f149"
_UNUSUAL = re.compile(f"[{_INVISIBLE_BASIC}{_RARE}{_INVISIBLE_BEYOND}{_RARE_BEYOND}]")
_INVISIBLE = re.compile(f"[{_INVISIBLE_BASIC}{_INVISIBLE_BEYOND}]")
_UNUSUAL_BASIC = re.compile(f"[{_INVISIBLE_BASIC}{_RARE}]")


def _marked(match: re.Match[str]) -> str:
    return match[0] if _KEPT.match(match.string, match.start()) else MARK


def _spelled_out(match: re.Match[str]) -> str:
    """Keep a flag as it is, and show hidden letters as letters."""
    if match[1] or len(match[0]) == 1:
        return match[1] or MARK
    letters = (ord(character) - 0xE0000 for character in match[0])
    shown = "".join(chr(code) if 0x20 <= code < 0x7F else MARK for code in letters)
    return f"{MARK}{shown}{MARK}"


# What looks like an ASCII character

_LOOK_ALIKES = {
    "<": "‹〈⟨〈˂ᐸ❮❬❰⧼《⟪«",
    "|": "｜│∣❘ǀ¦┃︱",
    "/": "／⁄∕⧸",
    "_": "＿▁",
}
_BRACKETS = "<" + _LOOK_ALIKES["<"]
_HOMOGLYPHS = {
    "abcdefghijklmnopqrstuvwxyz": "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡⅹʏᴢ",
    "aeopcxyijsdhqwlu": "аеорсхуіјѕԁһԛԝӏս",
    "abekmhopctxysij": "АВЕКМНОРСТХУЅІЈ",
    "oapvikutn": "οαρνικυτη",
    "abezhikmnoptyx": "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "ig": "ıɡ",
}
# Blocks whose letters have an ASCII form: accented, modified, letter-like, circled, mathematical,
# small and full-width.
_COMPATIBLE = (
    *((0xC0, 0x250), (0x2B0, 0x300), (0x1D2C, 0x1D6B), (0x1E00, 0x1F00), (0x2070, 0x20A0)),
    *((0x2100, 0x2190), (0x2460, 0x2500), (0xFE50, 0xFE70), (0xFF00, 0xFF5F)),
    *((0x1D400, 0x1D800), (0x1F100, 0x1F190)),
)


@cache
def _folds() -> dict[int, str]:
    """Map code points to the ASCII character that they look like; invisible ones to a control."""
    folds = dict.fromkeys(range(768, 880), "\x00")
    for first, last in _COMPATIBLE:
        for code in range(first, last):
            plain = normalize("NFKD", chr(code))[:1]
            if plain.isascii() and not plain.isspace():
                folds[code] = plain
    for plain, alike in _LOOK_ALIKES.items():
        folds |= dict.fromkeys(map(ord, alike), plain)
    for plain, alike in _HOMOGLYPHS.items():
        folds |= dict(zip(map(ord, alike), plain, strict=True))
    return folds | dict.fromkeys(_codes(_INVISIBLE_BASIC + _INVISIBLE_BEYOND), "\0")


@cache
def _disguised() -> re.Pattern[str]:
    """Compile the pattern of a bracket, or what looks like one, and a name that may be in
    disguise."""
    alike = "".join(chr(code) for code, plain in _folds().items() if plain.isalpha())
    alike += "".join(_LOOK_ALIKES[plain] for plain in "|_/")
    return re.compile(rf"[{_BRACKETS}](?=[\s\0]*+([/A-Za-z0-9_|\0{re.escape(alike)}]{{1,40}}))")


def _codes(characters: str) -> Iterator[int]:
    """Yield the code points of a character class, given the text between its brackets."""
    for match in re.finditer(r"(.)(?:-(.))?", characters, re.DOTALL):
        yield from range(ord(match[1]), ord(match[2] or match[1]) + 1)
