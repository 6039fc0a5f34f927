"""The semantics of the package ``webarena-verified`` 1.2.3, for comparison with published results.

Written from the package's observed behaviour, including defects: patterns and lists of alternatives
apply on both sides, quantities are evaluated as expressions, tolerances are fixed. Where the
package does not terminate, InvalidValue is raised. Placeholders of sites are handled by the
evaluator.
"""

from __future__ import annotations

import base64
import binascii
import calendar
import datetime
import importlib
import io
import json
import math
import re
import tokenize
import unicodedata
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard
from urllib.parse import parse_qs, quote, unquote, urlparse, urlsplit, urlunparse, urlunsplit

import idna

from trajudge.rules.limits import (
    PATTERN_SECONDS,
    SCALAR_CHARS,
    TEXT_CHARS,
    BadPattern,
    InvalidValue,
    TooLarge,
    bounded,
    bounded_json,
    compiled,
    fullmatch,
    is_pattern,
    nfkc,
    timed,
    unicode_text,
)
from trajudge.rules.values.model import Kind, Match

if TYPE_CHECKING:
    from pydantic import JsonValue

from trajudge.rules.values.quantities import SMALL, TENS
from trajudge.rules.values.texts import URL_CHARS, parse_address

_SIGNS = str.maketrans(dict.fromkeys("™®℠©"))
_HYPHEN = "[-\u00ad‐‑‒–—―−]"
_AT_LETTER = re.compile(rf"(?<=[A-Za-z]){_HYPHEN}|{_HYPHEN}(?=[A-Za-z])")
_BREAKS = re.compile(r"[\t\n\r]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# How the release spells signs, and letters of the scripts that are written letter by letter, in
# ASCII; "char=spelling". Other signs and marks are dropped; letters of other scripts stay.
_SPELT = (
    "ø=o Ø=O ł=l Ł=L đ=d Đ=D æ=ae Æ=AE œ=oe Œ=OE ı=i ð=d Ð=D þ=th Þ=Th ß=ss ħ=h Ħ=H ĸ=k ŋ=ng "
    "Ŋ=NG ŧ=t Ŧ=T ƒ=f ə=@ Ə=@ ǝ=@ ȷ=j ǽ=ae Ǽ=AE ǿ=o Ǿ=O €=EUR £=PS ¥=Y= ¢=C/ ¤=$? ₠=ECU ₡=CL "
    "₢=Cr ₣=FF ₤=L ₥=mil ₦=N ₧=Pts ₩=W ₪=NS ₫=D ₭=K ₮=T ₯=Dr ₰=Pf ₱=P ₲=G ₳=A ₴=UAH ₵=C| ₶=L "
    "₷=Sm ₸=T ₹=Rs ₺=L ₻=M ₼=m ₽=R ₾=l ₿=BTC ฿=Bh. ៛=KR ×=x ÷=/ ·=* °=deg ±=+- ¬=! ¦=| §=SS "
    "¶=P ¡=! ¿=? ⁄=/ ∕=/ ∖=\\ ∗=* ∣=| ∶=: ∼=~ ≤=<= ≥=>= ≦=<= ≧=>= −=- ‖=|| †=+ ‡=++ •=* ‣=*> "
    "‧=. …=... ‰=%0 ‱=%00 ‵=` ‸=^ ‹=< ›=> ※=* ‽=!? ‿=_ ⁀=- ⁁=^ ⁂=*** ⁎=* ⁓=~ ⁒=% ⁊=& ⁋=PP "
    "⁅=-[ ⁆=]- ℗=(p) ℣=V/ ℟=R/ ℮=e ⅍=A/S ♯=# ♠=spades ♡=hearts ♢=diamonds ♣=clubs ♤=spades "
    '♥=hearts ♦=diamonds ♧=clubs ✱=* ❘=| ❜=\' ❝=" ❞=" ❟=, ❠=,, ❢=! ⟦=[ ⟨=< ⟩=> ⦃={ ⦄=} ⹀== '
    '、=,_ 。=._ 〃=" 〈=< 〉=>_ 《=<< 》=>>_ 「=[ 」=]_ 『={ 』=}_ 【=[( 】=)]_ 〔=[ 〕=]_ '
    "〖=[[ 〗=]]_ 〘=(( 〙=))_ 〚=[[ 〛=]]_ 〜=~_ 〝=`` 〞='' 〟=,, 〰=~ ゠== ・=* 〇=0 ،=, "
    "؛=; ؟=? ٪=% ٫=. ٬=, ٭=* ۔=. ՚=' ՛=/ ՜=! ՝=, ՞=? ՟=. ։=: ֊=- ־=- ׀=| ׃=. ׳=' ״=\" ⓿=0 "
    "⓫=11 ⓬=12 ⓭=13 ⓮=14 ⓯=15 ⓰=16 ⓱=17 ⓲=18 ⓳=19 ⓴=20 ⓵=1 ⓶=2 ⓷=3 ⓸=4 ⓹=5 ⓺=6 ⓻=7 ⓼=8 ⓽=9 "
    "⓾=10 ˂=< ˃=> ˄=^ ˅=V ˖=+ ˗=- ˭== α=a β=b γ=g δ=d ε=e ζ=z η=e θ=th ι=i κ=k λ=l μ=m ν=n "
    "ξ=x Ξ=Ks ο=o π=p ρ=r ς=s σ=s τ=t υ=u φ=ph χ=kh ψ=ps ω=o ϗ=& ϛ=st ϝ=w ϟ=q ϡ=sp ϳ=j а=a "
    "б=b в=v г=g д=d е=e ж=zh з=z и=i к=k л=l м=m н=n о=o п=p р=r с=s т=t у=u ф=f х=kh ц=ts "
    "ч=ch ш=sh щ=shch ъ=' ы=y ь=' э=e ю=iu я=ia ѐ=ie ё=io ђ=dj ѓ=gj є=ie ѕ=dz і=i ї=yi ј=j "
    "љ=lj њ=nj ћ=tsh ќ=kj џ=dzh ґ=g' ғ=g' қ=k' ң=n' ү=u ұ=u' һ=h ә=@ ө=o ӏ= Ӏ=` ‘=' ’=' ‚=, "
    "‛=' ′=' ʹ=' ʼ=' ´=' “=\" ”=\" „=,, ‟=\" ″=\" «=<< »=>> ‐=- ‑=- ‒=- –=- ﹣=- －=- —=-- "
    "―=-- ﹘=-- ⁃=--"
)
# Arrows, lines, boxes and other shapes; of a repeated char the last spelling counts.
_SHAPES = {
    "=": "⇄⇆⇇⇉⇋⇌⇍⇎⇏⇐⇒⇔⇚⇛↹",
    "/": "↗↙⇗⇙╱",
    "\\": "↖↘⇖⇘↸╲",
    "~": "↜↝⇜⇝",
    "^": "↶↻▲△▴▵◬◭◮",
    "V": "↷↺▼▽▾▿",
    ">": "▶▷▸▹►▻",
    "<": "◀◁◂◃◄◅",
    "+": "".join(map(chr, [*range(0x250C, 0x254C), *range(0x2552, 0x2571)])),
    "X": "╳",
    "#": "▀▁▂▃▄▅▆▇█▉▊▋▌▍▎▏▐░▒▓■□▢▣▤▥▦▧▨▩▪▫▬▭▮▯▰▱◧◨◩◪◫" + "".join(map(chr, range(0x25F0, 0x25F8))),
    "*": "◦" + "".join(map(chr, [*range(0x25C6, 0x25D0), *range(0x25D0, 0x25E6)])),
    "O": "◯",
    "-": "─━┄┅┈┉╌╍═╴╶╸╺╼╾▔←→↔↚↛↞↠↢↣↤↦↩↪↫↬↭↮↼↽⇀⇁⇠⇢⇤⇥",
    "|": "│┃┆┇┊┋╎╏║╵╷╹╻╽╿▕↑↓↕↟↡↥↧↨↯↰↱↲↳↴↵↾↿⇂⇃⇅⇈⇊⇑⇓⇕⇞⇟⇡⇣",
}
_ASCII = str.maketrans(
    {
        char: spelt.replace("_", " ") if char != "‿" else "_"
        for char, _, spelt in (pair.partition("=") for pair in _SPELT.split())
    }
    | {char: spelt for spelt, chars in _SHAPES.items() for char in chars}
)
_EDGES = "'\"`.,;:!?"


def _latin(text: str) -> str:
    if text.isascii():
        return text
    text = _spelt(text)
    # A sign composed of two, such as that of inequality, is dropped as one.
    signs = [
        char for char in set(text) if not char.isascii() and unicodedata.category(char) == "Sm"
    ]
    text = text.translate(dict.fromkeys(map(ord, signs)))
    text = _spelt(unicodedata.normalize("NFD", text))
    return text.translate(
        {ord(char): _plain_letter(char) for char in set(text) if not char.isascii()}
    )


def _spelt(text: str) -> str:
    """Replace the characters of the table, in lower and upper case."""
    text = text.translate(_ASCII)
    others = [char for char in set(text) if not char.isascii() and char != char.lower()]
    return text.translate(
        {ord(char): _ASCII[ord(low)] for char in others if ord(low := char.lower()[0]) in _ASCII}
    )


def _plain_letter(char: str) -> str:
    """Return the Latin digit for a digit, nothing for a mark or a symbol, and a letter
    unchanged."""
    digit = unicodedata.decimal(char, None)
    if digit is not None:
        return str(digit)
    category = unicodedata.category(char)
    return "" if category[0] in "MSP" or category in ("Nl", "No") else char


def treated(text: str) -> str:
    """Return a text after the release's common normalisation; a pattern unchanged."""
    if is_pattern(text):
        return text
    text = nfkc(unicode_text(text).translate(_SIGNS))
    text = _visible(_BREAKS.sub(" ", _AT_LETTER.sub(" ", text)))
    return " ".join(_latin(text).split()).casefold()


def _visible(text: str) -> str:
    """Return the text without control, format, private and unassigned characters."""
    text = _CONTROL.sub("", text)
    if text.isascii():
        return text
    hidden = [char for char in set(text) if unicodedata.category(char).startswith("C")]
    return text.translate(dict.fromkeys(map(ord, hidden))) if hidden else text


def as_text(raw: JsonValue, limit: int = SCALAR_CHARS) -> JsonValue:
    """Return a text after the common normalisation; any other value unchanged."""
    return treated(bounded(raw, limit)) if isinstance(raw, str) else raw


def scalar_text(raw: JsonValue) -> str:
    """Return any value as Python prints it, truncated."""
    try:
        return bounded(str(raw), TEXT_CHARS)
    except (ValueError, RecursionError) as error:
        raise InvalidValue("not a text") from error


def parse_string(raw: JsonValue) -> str:
    """Parse a string: falsy values are the empty text, other values are converted to text."""
    if not raw:
        return ""
    if isinstance(raw, str):
        return treated(bounded(raw, TEXT_CHARS)).strip()
    return scalar_text(raw).lower().strip()


def parse_name(raw: JsonValue) -> str:
    """Parse a location-name."""
    if raw is None:
        raise InvalidValue("nothing")
    return parse_string(raw).lower()


def same_string(one: str, other: str) -> bool:
    """Return True if equal, also without punctuation at the edges, or if either is a pattern
    that matches the other."""
    if one == other or one.strip(_EDGES) == other.strip(_EDGES):
        return True
    return matches(one, other) or matches(other, one)


def matches(pattern: str, text: str, *, case_matters: bool = False) -> bool:
    """Return True if a text is a valid pattern that matches another text."""
    try:
        return is_pattern(pattern) and fullmatch(pattern, text, case_matters=case_matters)
    except BadPattern:
        return False


def _common_length(one: str, other: str) -> int:
    """Return the length of the longest common subsequence, by bit-parallel dynamic programming."""
    positions: dict[str, int] = {}
    for index, char in enumerate(one):
        positions[char] = positions.get(char, 0) | 1 << index
    full = (1 << len(one)) - 1
    row = full
    for char in other:
        matched = row & positions.get(char, 0)
        row = (row + matched) | (row - matched)
        row &= full
    return len(one) - row.bit_count()


_NO_WORD = re.compile(r"[\W_]")
_LATIN_1 = re.compile("[\x80-\xff]")  # their rest in patterns is removed without a gap


def likeness(one: str, other: str) -> int:
    """Return the percentage of letters that two names have in common, in order, after their
    words are sorted."""
    first, second = (
        " ".join(sorted(_NO_WORD.sub(" ", _LATIN_1.sub("", name)).split()))
        for name in (one[:SCALAR_CHARS], other[:SCALAR_CHARS])
    )
    letters = len(first) + len(second)
    return round(200 * _common_length(first, second) / letters) if letters else 100


def same_name(one: str, other: str) -> bool:
    """Return True if names are 80 % alike. A name is never a pattern; the empty name equals only
    itself."""
    if not one or not other:
        return one == other
    return likeness(one, other) >= 80


_SCALES = {"billion": 10**9, "million": 10**6, "thousand": 10**3}
_WORDS = SMALL | TENS | {"hundred": 100}
_KNOWN = {*_WORDS, *_SCALES, "point"}


def _in_words(text: str) -> float:
    """Return the value of the number words in a text; other words are ignored."""
    words = [word for word in text.replace("-", " ").lower().split() if word in _KNOWN]
    if not words or any(words.count(word) > 1 for word in (*_SCALES, "point")):
        raise InvalidValue("not a number")
    at = words.index("point") if "point" in words else len(words)
    whole, digits = words[:at], [_WORDS.get(word, 10) for word in words[at + 1 :]]
    # A word that is not a digit removes the whole fraction.
    fraction = "".join(map(str, digits)) if all(digit < 10 for digit in digits) else "0"
    return _whole(whole) + float(f"0.{fraction or 0}")


def _whole(words: list[str]) -> int:
    if len(words) <= 1:
        return (_WORDS | _SCALES)[words[0]] if words else 0
    total, start, last_used = 0, 0, False
    positions = {scale: words.index(scale) for scale in _SCALES if scale in words}
    if list(positions.values()) != sorted(positions.values()):
        raise InvalidValue("not a number")
    for scale, position in positions.items():
        total += _group(words[start:position]) * _SCALES[scale]
        start, last_used = position + 1, position == len(words) - 1
    if not last_used:
        return total + _group(words[start:])
    # A scale at the end: the part after the previous scale is added again.
    before = [position for position in positions.values() if position != len(words) - 1]
    return total + (_group(words[before[-1] + 1 :]) if before else 0)


def _group(words: list[str]) -> int:
    """Return the value of up to four words as hundreds, tens and ones, valid or not."""
    values = [(_WORDS | _SCALES)[word] for word in words]
    if not values:
        raise InvalidValue("not a number")
    if len(values) == 2 and 100 not in values:
        return sum(values)
    if 2 <= len(values) <= 4:
        return values[0] * values[1] + sum(values[2:])
    return values[0]


def number(raw: JsonValue) -> float:
    """Parse digits without commas and spaces, or the number words in a text; truth values are 1
    and 0."""
    try:
        if isinstance(raw, bool | int | float):
            return float(raw)
        text = as_text(raw)
        if not isinstance(text, str) or not text:
            raise InvalidValue("not a number")
        return float(text.replace(",", "").replace(" ", ""))
    except OverflowError as error:
        raise TooLarge("a number beyond 1e308") from error
    except ValueError:
        return _in_words(str(text))


# A number before a per cent sign is no price, but it may be without its last digit.
_PRICE = re.compile(r"\.?\d[\d\s.,']*(?![%\d])")


def currency(raw: JsonValue) -> Decimal:
    """Return the first price in a text; it is negative only with a minus before everything else."""
    if not raw and not isinstance(raw, int | float):
        raise InvalidValue("not a price")
    text = bounded(scalar_text(as_text(raw)), SCALAR_CHARS)
    negative = text.startswith("-")
    if negative:
        text = text.replace("-", "")
    match = _PRICE.search(" ".join(text.split()) if text.isascii() else text)
    if not match:
        if "free" in text.lower():
            return Decimal(0)
        raise InvalidValue("not a price")
    # A stop before a space is kept, which makes the price invalid.
    digits = "".join(match[0].rstrip(",.").replace("'", "").split())
    digits = digits if digits.count(".") == 1 else digits.lstrip(",.")
    decimal_point = text.rfind(".") > text.rfind(",")
    plain = digits.replace("," if decimal_point else ".", "").replace(",", ".")
    try:
        amount = Decimal(str(float(Decimal(plain))))
    except (InvalidOperation, ValueError) as error:
        raise InvalidValue("not a price") from error
    return -amount if negative else amount


def same_price(one: Decimal, other: Decimal) -> bool:
    """Return True within ten cents."""
    return abs(one - other) <= Decimal("0.1")


_TRUE, _FALSE = ("true", "yes", "y", "1", "t", "on"), ("false", "no", "n", "0", "f", "off")


def boolean(raw: JsonValue) -> bool:
    """Truth values, any number, and twelve words."""
    if isinstance(raw, bool | int | float):
        return bool(raw)
    text = as_text(raw)
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise InvalidValue("neither yes nor no")


def _read_date(text: str, default: datetime.datetime | None) -> datetime.datetime:
    parse: Callable[..., datetime.datetime] = importlib.import_module("dateutil.parser").parse
    try:
        return parse(text, dayfirst=False, default=default, ignoretz=True)
    except (ValueError, ArithmeticError, TypeError, IndexError, AttributeError) as error:
        raise InvalidValue("not a date") from error


def date(raw: JsonValue) -> str:
    """Return an ISO date; missing parts are those of the current day."""
    text = as_text(raw)
    if not isinstance(text, str) or not text:
        raise InvalidValue("not a date")
    return _read_date(re.sub(r",(?! )", ", ", text), None).date().isoformat()


def month(raw: JsonValue) -> str:
    """Return the English name of the month; an adjacent year or day is ignored.

    Digits without a point are the month's number; with a point they are a day of January.
    """
    if isinstance(raw, int | float):
        return _month_name(raw)
    text = as_text(raw)
    if not isinstance(text, str) or not text.strip():
        raise InvalidValue("not a month")
    try:
        count = int(text)
    except ValueError:
        return _month_name(_read_date(text.strip(), datetime.datetime(2000, 1, 1)).month)
    return _month_name(count)


def _month_name(count: float) -> str:
    if count not in range(1, 13):
        raise InvalidValue("not a month")
    return calendar.month_name[int(count)]


_TIME_UNITS = (
    ("years", r"ys?|yrs?.?|years?", 365 * 86400, True),
    ("months", r"mos?.?|mths?.?|months?", 30 * 86400, True),
    ("weeks", r"w|wks?|weeks?", 7 * 86400, True),
    ("days", r"d|dys?|days?", 86400, False),
    ("hours", r"h|hrs?|hours?", 3600, False),
    ("minutes", r"m|mins?|minutes?", 60, False),
    ("seconds", r"s|secs?|seconds?", 1, True),
    ("milliseconds", r"ms|msecs?|millis|milliseconds?", 1e-3, False),
)
"""Name, spellings, seconds; whether what is no number counts as none instead of an error."""

_SEPARATED = 6  # of the units, the first six may have a comma or a slash behind them


def _pattern() -> Iterator[str]:
    for index, (name, spellings, _, _) in enumerate(_TIME_UNITS):
        separator = r"\s*(?:[,/]\s*)?" if index < _SEPARATED else ""
        yield rf"(?:(?P<{name}>[\d.]+)\s*(?:{spellings}){separator})?"


_WRITTEN = re.compile(r"\s*".join(_pattern()) + r"\s*", re.IGNORECASE)
_CLOCKS = (
    r"(?P<minutes>\d{1,2}):(?P<seconds>\d{2}(?:\.\d+)?)",
    r"(?:(?P<weeks>[\d.]+)\s*(?:w|wks?|weeks?)\s*(?:[,/]\s*)?)?\s*"
    r"(?:(?P<days>[\d.]+)\s*(?:d|dys?|days?)\s*(?:[,/]\s*)?)?\s*"
    r"(?P<hours>\d+):(?P<minutes>\d{2}):(?P<seconds>\d{2}(?:\.\d+)?)",
    r"(?P<days>\d+):(?P<hours>\d{2}):(?P<minutes>\d{2}):(?P<seconds>\d{2}(?:\.\d+)?)",
    r":(?P<seconds>\d{2}(?:\.\d+)?)",
)
_CLOCK = tuple(re.compile(rf"\s*{clock}\s*", re.IGNORECASE) for clock in _CLOCKS)
_HOURS = re.compile(r"(\d+):(\d+)\s*hours?")


def duration(raw: JsonValue) -> float:
    """Return seconds. A clock of two numbers is minutes and seconds."""
    if not raw:
        raise InvalidValue("not a duration")
    text = scalar_text(as_text(raw))
    if isinstance(raw, str):
        text = _HOURS.sub(r"\1h\2m", text)
    if _plain_number(text) is not None:
        raise InvalidValue("a number without a unit of time")
    text = text.lstrip()
    negative = text.startswith("-")
    seconds = _seconds(text[1:].lstrip() if text[:1] in ("+", "-", "|") else text)
    if not math.isfinite(seconds) or abs(seconds) > 1e14:
        raise InvalidValue("not a duration")
    return -seconds if negative else seconds


def _plain_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _seconds(text: str) -> float:
    for form in (_WRITTEN, *_CLOCK):
        match = form.fullmatch(text)
        if match and text.strip():
            parts = match.groupdict()
            return sum(
                _amount(parts[name], lenient) * size
                for name, _, size, lenient in _TIME_UNITS
                if parts.get(name)
            )
    number = _plain_number(text)
    if number is None:
        raise InvalidValue("not a duration")
    return number


def _amount(digits: str, lenient: bool) -> float:
    number = _plain_number(digits)
    if number is None and not lenient:
        raise InvalidValue("not a duration")
    return number or 0.0


def same_duration(one: float, other: float) -> bool:
    """Return True within three minutes, or a tenth of the longer duration."""
    return abs(one - other) <= max(180.0, 0.10 * max(one, other))


_KILO = re.compile(r"(\d+(?:\.\d+)?)\s*k(?=\s|$)")
_UNIT_NAME = "[a-z_][a-z_0-9]*"
_REWRITTEN = (
    (re.compile(rf"({_UNIT_NAME}) squared"), r"\1**2"),
    (re.compile(rf"({_UNIT_NAME}) cubed"), r"\1**3"),
    (re.compile(rf"cubic ({_UNIT_NAME})"), r"\1**3"),
    (re.compile(rf"(?:square|sq) ({_UNIT_NAME})"), r"\1**2"),
    # A number before letters, a space between words and numbers: products.
    (re.compile(r"\b(\d+\.?\d*)(?=[e|][a-z]|[a-df-z])"), r"\1*"),
    (re.compile(r"([\w.)])\s+(?=[\w(])"), r"\1*"),
)
_OPERATORS = frozenset(("**", "*", "/", "+", "-", "(", ")"))
_FOOT = 0.3048
_SURVEY = 1200 / 3937  # the foot of surveyors
# Lengths that pint has by name, in metres; each takes a prefix and, but for two, a plural "s".
_LENGTHS = {
    **dict.fromkeys(("m", "meter", "metre"), 1.0),
    **dict.fromkeys(("in", "inch", "inches", "international_inch"), 0.0254),
    **dict.fromkeys(("ft", "foot", "feet", "international_foot", "international_feet"), _FOOT),
    **dict.fromkeys(("yd", "yard", "international_yard"), 3 * _FOOT),
    **dict.fromkeys(("mi", "mile", "international_mile"), 5280 * _FOOT),
    **dict.fromkeys(("sft", "survey_foot"), _SURVEY),
    **dict.fromkeys(("smi", "survey_mile", "us_statute_mile"), 5280 * _SURVEY),
    **dict.fromkeys(("rd", "rod", "pole", "perch"), 16.5 * _SURVEY),
    **dict.fromkeys(("li", "link", "survey_link"), 0.66 * _SURVEY),
    **dict.fromkeys(("fur", "furlong"), 660 * _SURVEY),
    **{"fathom": 6 * _SURVEY, "chain": 66 * _SURVEY, "cables_length": 720 * _SURVEY},
    **{"league": 3 * 5280 * _SURVEY, "hand": _FOOT / 3},
    **dict.fromkeys(("nmi", "nautical_mile"), 1852.0),
    **dict.fromkeys(("th", "thou", "mil_length"), 2.54e-5),
    **dict.fromkeys(("px", "css_pixel"), 0.0254 / 96),
    **dict.fromkeys(("pp", "bp", "point", "printers_point", "big_point"), 0.0254 / 72),
    **dict.fromkeys(("pica", "printers_pica"), 0.0254 / 6),
    **{"micron": 1e-6, "angstrom": 1e-10, "fermi": 1e-15, "fm": 1e-15},
    **dict.fromkeys(("au", "astronomical_unit"), 149597870700.0),
    **dict.fromkeys(("ly", "lightyear", "light_year"), 9460730472580800.0),
    **dict.fromkeys(("pc", "parsec"), 3.0856775814671916e16),
}
_PREFIXES = {
    **{"quecto": 1e-30, "q": 1e-30, "ronto": 1e-27, "r": 1e-27, "yocto": 1e-24, "y": 1e-24},
    **{"zepto": 1e-21, "z": 1e-21, "atto": 1e-18, "a": 1e-18, "femto": 1e-15, "f": 1e-15},
    **{"pico": 1e-12, "p": 1e-12, "nano": 1e-9, "n": 1e-9, "micro": 1e-6, "u": 1e-6, "mu": 1e-6},
    **{"mc": 1e-6, "milli": 1e-3, "m": 1e-3, "centi": 0.01, "c": 0.01, "deci": 0.1, "d": 0.1},
    **{"deca": 10.0, "da": 10.0, "deka": 10.0, "hecto": 100.0, "h": 100.0, "kilo": 1e3, "k": 1e3},
    **{"mega": 1e6, "giga": 1e9, "tera": 1e12, "peta": 1e15, "exa": 1e18, "zetta": 1e21},
    **{"yotta": 1e24, "semi": 0.5, "demi": 0.5, "sesqui": 1.5},
}
_NO_PLURAL = ("m", "bp")
_OF_TIME = ("min", "mins")
_PURE = {"dimensionless": 1.0, "percent": 0.01, "inf": float("inf"), "infinity": float("inf")}
_CHARS = 100


def _length(name: str) -> float | None:
    """Return the metres of a unit, with or without prefix and plural; None for no length."""
    if name in _LENGTHS:
        return _LENGTHS[name]
    if name in _OF_TIME:
        return None
    stems = [name[:-1], name] if name.endswith("s") else [name]
    for stem in stems:
        if stem != name and stem in _LENGTHS and stem not in _NO_PLURAL:
            return _LENGTHS[stem]
        for prefix, factor in _PREFIXES.items():
            unit = stem.removeprefix(prefix)
            if unit != stem and unit in _LENGTHS and (stem == name or unit not in _NO_PLURAL):
                return factor * _LENGTHS[unit]
    return None


class _Value(NamedTuple):
    size: float
    power: float  # of the metre: 1 for a length


_NOTHING = _Value(0.0, 0)  # may be added to any length


def _tokens(text: str) -> Iterator[str]:
    """Yield the numbers, names and operators of an expression; other characters are ignored.

    Quoted texts are ignored, and everything after a ``#``.
    """
    text = text.replace(",", "").replace("%", " percent ").replace(" per ", "/")
    for pattern, rewritten in _REWRITTEN:
        text = pattern.sub(rewritten, text)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text.replace("^", "**")).readline):
            number_or_name = token.type in (tokenize.NUMBER, tokenize.NAME)
            if number_or_name or (token.type == tokenize.OP and token.string in _OPERATORS):
                yield token.string
            elif token.string in ("//", "%"):
                raise InvalidValue("not a distance")
    except (tokenize.TokenError, SyntaxError) as error:
        raise InvalidValue("not a distance") from error


class _Reader:
    """A recursive-descent parser: sum, product, power, atom."""

    def __init__(self, text: str) -> None:
        self.tokens = list(_tokens(text))
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1] if self.at <= len(self.tokens) else ""

    def sum(self) -> _Value:
        value = self.product()
        while self.peek() in ("+", "-"):
            sign = 1 if self.take() == "+" else -1
            other = self.product()
            if other.power == value.power or other == _NOTHING:
                value = _Value(value.size + sign * other.size, value.power)
            elif value == _NOTHING:
                value = _Value(sign * other.size, other.power)
            else:
                raise InvalidValue("not a distance")
        return value

    def product(self) -> _Value:
        value = self.power()
        while self.peek() not in ("", "+", "-", ")"):
            divide = self.peek() == "/"
            if self.peek() in ("*", "/"):
                self.take()
            other = self.power()
            if divide:
                value = _Value(value.size / other.size, value.power - other.power)
            else:
                value = _Value(value.size * other.size, value.power + other.power)
        return value

    def power(self) -> _Value:
        if self.peek() in ("-", "+"):
            sign = -1 if self.take() == "-" else 1
            value = self.power()
            return _Value(sign * value.size, value.power)
        value = self.atom()
        if self.peek() == "**":
            self.take()
            exponent = self.power()
            if exponent.power or abs(exponent.size) > 64:
                raise InvalidValue("a power that the release does not come back from")
            size = value.size**exponent.size
            if isinstance(size, complex):
                raise InvalidValue("not a distance")
            value = _Value(size, value.power * exponent.size)
        return value

    def atom(self) -> _Value:
        token = self.take()
        if token == "(":  # noqa: S105  (a parenthesis)
            value = self.sum()
            if self.take() != ")":
                raise InvalidValue("not a distance")
            return value
        if token in _PURE:
            return _Value(_PURE[token], 0)
        if (metres := _length(token)) is not None:
            return _Value(metres, 1)
        if token[:1].isdigit() or token[:1] == ".":
            return _Value(float(token), 0)
        raise InvalidValue("not a distance")


def distance(raw: JsonValue) -> float:
    """Return metres; negative and infinite lengths are allowed."""
    text = as_text(raw)
    if not isinstance(text, str) or not text or len(text) > _CHARS:
        raise InvalidValue("not a distance")
    reader = _Reader(_KILO.sub(r"\1 km", text))
    try:
        value = reader.sum()
    except (ArithmeticError, ValueError) as error:
        raise InvalidValue("not a distance") from error
    if reader.peek() or value.power != 1 or value.size != value.size:
        raise InvalidValue("not a distance")
    return value.size


def same_distance(one: float, other: float) -> bool:
    """Return True within 10 m, or 2 % of the longer; an infinite length equals every finite one.

    Raises InvalidValue for two infinite lengths, whose difference is NaN.
    """
    infinite = [one, other].count(float("inf"))
    if infinite == 2:
        raise InvalidValue("two infinite lengths")
    return infinite == 1 or abs(one - other) <= max(10.0, 0.02 * max(one, other))


def string_list(raw: JsonValue) -> tuple[str, ...]:
    """Return the sorted items between commas."""
    if not raw:
        raise InvalidValue("not a list")
    parts = scalar_text(as_text(raw, TEXT_CHARS)).split(",")
    items = sorted(filter(None, (part.strip() for part in parts)))
    if not items:
        raise InvalidValue("a list without an item")
    return tuple(items)


def json_text(raw: JsonValue) -> str:
    """Return JSON with sorted keys, after the common normalisation of the whole text, which
    loses case and accents."""
    if not isinstance(raw, str):
        raise InvalidValue("not a JSON text")
    text = treated(bounded(raw, TEXT_CHARS))
    try:
        value = json.loads(text)
        bounded_json(value)
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except RecursionError as error:
        raise TooLarge("JSON nested too deep") from error
    except ValueError as error:
        raise InvalidValue("not JSON") from error


_HEADING = re.compile(r"(\s*#{1,6})[ \t]+")
_BULLET = re.compile(r"(\s*)[*+][ \t]+")
_INDENTED = re.compile(r"[ \t]+-")


def markdown(raw: JsonValue) -> str:
    """Normalise line breaks, white space at line ends, blank lines, bullets and their indents,
    and white space inside brackets and at the edges of parentheses."""
    if not isinstance(raw, str) or not raw.strip():
        raise InvalidValue("not a text")
    text = bounded(raw, TEXT_CHARS).strip().replace("\r\n", "\n").replace("\r", "\n")
    text = "\n".join(line.rstrip(" \t") for line in text.split("\n"))
    text = "\n".join(map(_line, re.sub(r"\n{3,}", "\n\n", text).split("\n")))
    text = _within(text, "[]", lambda inner: " ".join(inner.split()))
    return _within(text, "()", lambda inner: inner.strip() or inner[-1]).strip()


def _line(line: str) -> str:
    line = _HEADING.sub(r"\1 ", line, count=1) if _HEADING.match(line) else line
    line = _BULLET.sub(r"\1- ", line, count=1) if _BULLET.match(line) else line
    return _INDENTED.sub("  -", line, count=1) if _INDENTED.match(line) else line


def _within(text: str, marks: str, change: Callable[[str], str]) -> str:
    """Return the text with the parts between two delimiters changed; an unclosed part is
    unchanged."""
    kept, done = [], 0
    start = text.find(marks[0])
    while start >= 0 and (end := text.find(marks[1], start + 1)) >= 0:
        if end > start + 1:
            kept += [text[done : start + 1], change(text[start + 1 : end])]
            done = end
        start = text.find(marks[0], end)
    return "".join(kept) + text[done:]


def base64_text(raw: JsonValue) -> str:
    """Return the decoded text, or a pattern unchanged."""
    if not isinstance(raw, str) or not raw.strip():
        raise InvalidValue("not base64")
    text = bounded(raw, TEXT_CHARS).strip()
    if is_pattern(text):
        return text
    try:
        decoded = base64.b64decode(text, validate=True).decode("utf-8")
    except (binascii.Error, ValueError) as error:
        raise InvalidValue("not base64 of UTF-8 text") from error
    return decoded.replace("\r\n", "\n").replace("\r", "\n").strip()


def same_base64(one: str, other: str) -> bool:
    """Return True if equal, or if either is a pattern that matches the other."""
    if one == other:
        return True
    return matches(one, other, case_matters=True) or matches(other, one, case_matters=True)


def null(raw: JsonValue) -> None:
    """Return None for None, blank text, an empty object, and five words, with any text around a
    slash."""
    if raw is None or raw in ({}, []):
        return
    words = " ".join(raw.lower().split()) if isinstance(raw, str) else "-"
    if re.sub(r" ?/ ?", "/", words) not in ("", "n/a", "na", "nan", "null", "none"):
        raise InvalidValue("a value where none is expected")


MOST_PARAMETERS = 10_000
_WITH_HOST = frozenset(("http", "https", "ftp", "ftps"))
_WITH_PATH = frozenset(("http", "https", "ftp", "file"))
_PORTS = {"http": "80", "https": "443", "ftp": "21", "ws": "80", "wss": "443"}
_HOST = re.compile(r"([^@]*@)?([^:]*):?(.*)", re.DOTALL)
_PLAIN_HOST = re.compile(r"(?!.*xn--)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
_SSH_SCHEME = "ssh://"


def is_ssh(text: str) -> bool:
    """Return True for the SSH address of a repository."""
    lower = text.lower()
    return lower.startswith(_SSH_SCHEME) or (
        lower.startswith("git@") and ":" in text and "://" not in text
    )


def repository(text: str) -> str:
    """Return a repository's address without host and port, in lower case."""
    if text.lower().startswith(_SSH_SCHEME):
        try:
            parts = urlparse(text)
        except ValueError as error:
            raise InvalidValue("not an address") from error
        user = parts.netloc.split("@")[0] if "@" in parts.netloc else "git"
        path = parts.path
    else:
        user, _, rest = text.partition("@")
        path = rest.partition(":")[2]
    return f"{user.lower()}@__SSH_HOST__:{path.lstrip('/').lower()}"


def normal_address(text: str) -> str:
    """Return an address in normal form: scheme and host in lower case, no standard port, the path
    without empty and dot segments. Raises InvalidValue."""
    try:
        return _normal(_with_scheme(text).replace("#!", "?_escaped_fragment_=").rstrip("&? "))
    except ValueError as error:  # brackets, half characters
        raise InvalidValue("not an address") from error


def _with_scheme(text: str) -> str:
    if text == "-" or (text.startswith("/") and not text.startswith("//")):
        return text
    if ":" not in text[:7]:
        return f"https://{text.lstrip('/')}"
    scheme, _, rest = text.partition(":")
    return f"{scheme}://{rest.lstrip('/')}" if scheme.lower() in _WITH_HOST else text


def _normal(text: str) -> str:
    scheme, netloc, path, query, fragment = urlsplit(text.strip())
    scheme = scheme.lower()
    match = _HOST.match(netloc)
    before, host, port = map(str, match.groups("")) if match else ("", netloc, "")
    user = "" if before in ("@", ":@") else before
    host = _ascii_host(host.lower().strip("."))
    if port.isdigit():
        port = "" if _PORTS.get(scheme) == str(int(port)) else str(int(port))
    netloc = f"{user}{host}:{port}" if port else user + host
    path = normal_path(path, segments=scheme == "" or scheme in _WITH_PATH)
    if not path and scheme in _WITH_PATH:
        path = "/"
    return urlunsplit((scheme, netloc, path, _normal_query(query), _quoted(fragment, "~=")))


def _ascii_host(host: str) -> str:
    """Return a host in ASCII, label by label (UTS 46). Where a label is not valid,
    the whole host is encoded by IDNA 2003, empty labels included."""
    if _PLAIN_HOST.fullmatch(host):
        return host
    try:
        labels = [idna.encode(label, uts46=True).decode() for label in host.split(".") if label]
    except idna.IDNAError:
        return host.encode("idna").decode()
    return ".".join(labels)


def _quoted(text: str, safe: str) -> str:
    return quote(unicodedata.normalize("NFC", unquote(text)), safe=safe)


def normal_path(path: str, *, segments: bool) -> str:
    """Return a path without empty and dot segments, percent-encoded where required.

    A trailing slash is kept, because a pattern may match it.
    """
    text = _quoted(path, "~:/#[]@!$&'()*+,;=")
    if not segments:
        return text
    parts = text.split("/")
    kept: list[str] = []
    for part in parts:
        if part == "..":
            del kept[max(1, len(kept) - 1) :]
        elif part != "." and (part or not kept):
            kept.append(part)
    if parts[-1] in ("", ".", ".."):
        kept.append("")
    return "/".join(kept)


def _normal_query(query: str) -> str:
    kept = []
    for part in filter(None, query.split("&")):
        name, _, value = part.partition("=")
        name, value = (_quoted(text, "~:/?[]@!$'()*+,;") for text in (name, value))
        kept.append(f"{name}={value}" if value else name)
    return "&".join(kept)


def base_and_query(text: str) -> tuple[str, str]:
    """Return the parts of an address in normal form. Raises InvalidValue."""
    try:
        parts = urlparse(text)
    except ValueError as error:
        raise InvalidValue("not an address") from error
    path = f"{parts.path};{parts.params}" if parts.params else parts.path
    rest = (parts.scheme.lower(), parts.netloc.lower(), path, "", "", parts.fragment)
    return urlunparse(rest), parts.query.strip()


def parameters(query: str) -> dict[str, tuple[str, ...]]:
    """Return the values of a query's parameters, decoded twice and sorted. Raises TooLarge."""
    if not query:
        return {}
    try:
        found = parse_qs(query, keep_blank_values=True, max_num_fields=MOST_PARAMETERS)
    except ValueError as error:
        raise TooLarge(f"a query of more than {MOST_PARAMETERS:,} parameters") from error
    return {unquote(name): tuple(sorted(map(unquote, values))) for name, values in found.items()}


class Url(NamedTuple):
    """An address: ``base`` in the form that is compared, and the first value of every non-empty
    parameter."""

    base: str
    query: tuple[tuple[str, str], ...]
    shown: str


def url(raw: JsonValue) -> Url:
    """Parse a pattern, a repository's address or any other address. Hosts of repositories are
    ignored."""
    if not isinstance(raw, str) or not raw.strip():
        raise InvalidValue("not an address")
    text = bounded(raw, URL_CHARS).strip()
    if is_pattern(text):
        return Url(text, (), text)
    text = text.rstrip("/")
    if is_ssh(text):
        base = repository(text)
        return Url(base, (), base)
    base, query = base_and_query(normal_address(text))
    values = parameters(query).items()
    pairs = sorted((name, min(value.lower().strip() for value in many)) for name, many in values)
    shown = "&".join(f"{name}={value}" for name, value in pairs)
    return Url(
        base,
        tuple((name, value) for name, value in pairs if value),
        base.rstrip("/") + (f"?{shown}" if shown else ""),
    )


def _fits(pattern: str, text: str) -> bool:
    """Return True if a text is a pattern that matches another from its start."""
    if not is_pattern(pattern):
        return False
    return timed(compiled(pattern, 0).match, pattern, text, PATTERN_SECONDS)


def same_url(one: Url, other: Url) -> bool:
    """Return True for equal bases and expected parameters; on either side they may be patterns."""
    if is_pattern(one.base) or is_pattern(other.base):
        alike = _fits(one.base, other.base) or _fits(other.base, one.base)
    else:
        alike = one.base.lower().rstrip("/") == other.base.lower().rstrip("/")
    if not alike:
        return False
    expected, actual = dict(one.query), dict(other.query)
    return all(
        _same_parameter(expected.get(name, ""), actual.get(name, ""))
        for name in expected.keys() | actual.keys()
    )


def _same_parameter(expected: str, actual: str) -> bool:
    return _fits(expected, actual) if is_pattern(expected) else expected == actual


def full_address(raw: JsonValue) -> dict[str, str]:
    """Return house number, street, city, state and postcode, all of which are required; the name
    is ignored."""
    if not isinstance(raw, dict):
        raise InvalidValue("not an address")
    needed = ("house_number", "street", "city", "state", "postcode")
    parts = {part: raw.get(part) for part in needed}
    if not parts["postcode"]:
        raise InvalidValue("an address without a postcode")
    postcode = treated(bounded(scalar_text(parts["postcode"]), SCALAR_CHARS)).zfill(5)
    address = parse_address({**parts, "postcode": postcode})
    if len(address) < len(needed):
        raise InvalidValue("an address without one of its five parts")
    return {**address, "postcode": postcode}


_DECIMAL = r"\d+(?:\.\d+)?"
# Directions are not read: they are searched in upper case, but the text is already in lower case.
_ANGLE = rf"([+-]?{_DECIMAL})(?:[*\s] *(?:({_DECIMAL})['m] *)?(?:({_DECIMAL})[\"s] *)?)?"
_BETWEEN = r"\s*[,;/\s]\s*"
_HEIGHT = rf"(?:{_BETWEEN}[+-]?{_DECIMAL} *(?:km|m|mi|ft|nm|nmi))?"
_POINT = re.compile(rf".*? *{_ANGLE}{_BETWEEN} *{_ANGLE}{_HEIGHT}\s*")


def is_point(raw: JsonValue) -> TypeGuard[list[JsonValue]]:
    """Return True if a list is one point rather than a list of alternatives."""
    return (
        isinstance(raw, list)
        and len(raw) == 2
        and all(isinstance(value, int | float | str) for value in raw)
        and all(map(_is_component, raw))
    )


def _is_component(value: Any) -> bool:
    try:
        float(value or 0)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def coordinates(raw: JsonValue) -> tuple[float, float]:
    """Latitude and longitude; longitudes wrap around."""
    if isinstance(raw, str):
        pair: list[Any] = _written(str(as_text(raw)))
    elif isinstance(raw, dict):
        pair = _named(raw)
    else:
        pair = raw if is_point(raw) else []
    if len(pair) != 2 or not all(map(_is_component, pair)):
        raise InvalidValue("not coordinates")
    latitude, longitude = (float(value or 0) for value in pair)
    if not abs(latitude) <= 90 or not math.isfinite(longitude):
        raise InvalidValue("no such point")
    return latitude, longitude if abs(longitude) <= 180 else (longitude + 180) % 360 - 180


def _written(text: str) -> list[float]:
    """Return the last two angles of a text: degrees, or degrees, minutes and seconds."""
    match = _POINT.fullmatch(text.replace("''", '"'))
    if not match:
        return []
    parts = [float(part or 0) for part in match.groups()]
    return [_degrees(*parts[:3]), _degrees(*parts[3:])]


def _degrees(degrees: float, minutes: float, seconds: float) -> float:
    more = minutes / 60 + seconds / 3600
    return degrees - more if degrees < 0 else degrees + more


def _named(raw: dict[str, JsonValue]) -> list[JsonValue]:
    """Return the first values under beginnings of the two words, of at least two letters."""
    names = {key: key.lower() for key in raw}
    first = [key for key, name in names.items() if len(name) > 1 and "latitude".startswith(name)]
    second = [
        key
        for key, name in names.items()
        if (len(name) > 1 and "longitude".startswith(name)) or name == "lng"
    ]
    if not first or not second:
        return []
    if raw[second[0]] is None:
        return []  # a single number is not a point
    return [raw[first[0]], raw[second[0]]]


def same_point(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Each component within 1e-5 degrees."""
    return all(abs(a - b) <= 1e-5 for a, b in zip(one, other, strict=True))


KINDS: dict[str, Kind[Any]] = {
    "base64": Kind(base64_text, str, same_base64),
    "boolean": Kind(boolean, lambda value: value),
    "coordinates": Kind(coordinates, list, same_point, is_list=is_point),
    "currency": Kind(currency, float, same_price),
    "date": Kind(date, str),
    "distance": Kind(distance, lambda value: f"{value} m", same_distance),
    "duration": Kind(duration, lambda value: f"{value} s", same_duration),
    "full_address": Kind(full_address, dict),
    "integer": Kind(number, lambda value: value),
    "json": Kind(json_text, str),
    "location-name": Kind(parse_name, str, same_name),
    "markdown": Kind(markdown, str),
    "month": Kind(month, str),
    "null": Kind(null, lambda _: None),
    "number": Kind(number, lambda value: value),
    "string": Kind(parse_string, str, same_string),
    "string_list": Kind(string_list, list),
    "url": Kind(url, lambda value: value.shown, same_url),
}

_FIRST_ONLY = frozenset({"currency", "coordinates", "full_address"})
"""Kinds of which only the first alternative is compared."""


def _read(name: str, raw: JsonValue) -> list[Any]:
    """Return the alternatives that a value holds: the items of a list of at least two, else
    itself."""
    kind = KINDS.get(name)
    if kind is None:
        raise InvalidValue(f"no kind of value is called {name[:60]!r}")
    if isinstance(raw, list | dict):
        bounded_json(raw)
    if not isinstance(raw, list) or kind.is_list(raw):
        return [kind.parse(raw)]
    if len(raw) < 2:
        raise InvalidValue("a list of fewer than two alternatives")
    return [kind.parse(item) for item in raw]


def _shown(name: str, values: list[Any]) -> JsonValue:
    forms = [KINDS[name].show(value) for value in values]
    return forms[0] if len(forms) == 1 else forms


def normalise(name: str, raw: JsonValue) -> JsonValue:
    """Return the normal form, or the list of the alternatives' normal forms. Raises
    InvalidValue."""
    return _shown(name, _read(name, raw))


def equal(name: str, expected: JsonValue, actual: JsonValue) -> Match:
    """Tell whether any alternative of one side equals any of the other; never raises."""
    wanted = found = None
    try:
        wanted = _read(name, expected)
        found = _read(name, actual)
        count = 1 if name in _FIRST_ONLY else None
        pairs = product(wanted[:count], found[:count])
        alike = any(KINDS[name].same(one, other) for one, other in pairs)
    except InvalidValue as error:
        side = f"the specification's {name} is invalid" if wanted is None else f"{name} is invalid"
        return Match(False, wanted and _shown(name, wanted), found and _shown(name, found),
                     f"{side}: {error}")  # fmt: skip
    reason = "" if alike else f"a different {name}"
    return Match(alike, _shown(name, wanted), _shown(name, found), reason)
