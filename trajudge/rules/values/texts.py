"""Values that are texts: strings, names, lists, documents, addresses."""

from __future__ import annotations

import base64
import binascii
import json
import posixpath
import re
import unicodedata
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote, unquote_plus

from trajudge.rules.limits import (
    SCALAR_CHARS,
    TEXT_CHARS,
    InvalidValue,
    TooLarge,
    bounded,
    bounded_json,
    nfkc,
    unicode_text,
)
from trajudge.rules.values.model import Kind, bounded_decimal, decimal_of, show_decimal

if TYPE_CHECKING:
    from pydantic import JsonValue


def _table(pairs: str) -> dict[str, str]:
    """Parse ``word=short`` pairs; ``_`` stands for a space."""
    return dict(pair.replace("_", " ").split("=") for pair in pairs.split())


_TYPOGRAPHY = {
    **dict.fromkeys(map(ord, "™®℠©"), None),
    **dict.fromkeys(map(ord, "‘’‚‛′ʹʼ`´"), "'"),
    **dict.fromkeys(map(ord, "“”„‟″«»"), '"'),
    **dict.fromkeys(map(ord, "‐‑‒–—―−⁃﹘﹣－"), "-"),
    **dict.fromkeys(map(ord, "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85\u2028\u2029"), " "),
    **dict.fromkeys((*range(9), *range(14, 28), *range(0x7F, 0x85), *range(0x86, 0xA0)), None),
    **dict.fromkeys((0xAD, 0x61C, *range(0x200B, 0x2010), *range(0x202A, 0x202F)), None),
    **dict.fromkeys((*range(0x2060, 0x2070), *range(0xFE00, 0xFE10), 0xFEFF), None),
}
_LETTERS = str.maketrans(
    {"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "æ": "ae", "Æ": "AE"}
    | {"œ": "oe", "Œ": "OE", "ı": "i", "ð": "d", "Ð": "D", "þ": "th", "Þ": "Th"}
)
_ACCENT = re.compile(r"(?<=[A-Za-z])[\u0300-\u036f]+")
_JOINING_HYPHEN = re.compile(r"(?<=[^\W\d_])-+(?=\w)|(?<=\w)-+(?=[^\W\d_])")
_ENDING = frozenset(" .,;:!?")
_QUOTES = frozenset("'\"")


def strip_invisible(text: str) -> str:
    """Remove characters that a reader does not see; case and accents are kept."""
    if text.isascii() and text.isprintable():
        return " ".join(text.replace("`", "'").split())
    text = unicode_text(text).translate(_TYPOGRAPHY)
    text = nfkc(text).translate(_TYPOGRAPHY)
    return " ".join(text.split())


def unaccented(text: str) -> str:
    """Remove accents from Latin letters; other scripts are unchanged."""
    if text.isascii():
        return text
    text = _ACCENT.sub("", unicodedata.normalize("NFD", text.translate(_LETTERS)))
    return unicodedata.normalize("NFC", text)


def casefold_unaccented(text: str) -> str:
    """Return a normalised text without accents and case. The function is idempotent."""
    text = unaccented(strip_invisible(text)).casefold()
    while not text.isascii() and (again := unaccented(strip_invisible(text)).casefold()) != text:
        text = again
    return text


def _bare(text: str) -> str:
    """Remove final punctuation and quotes around the whole text, unless nothing remains."""
    start, end = 0, len(text)
    while True:
        inner_start, inner_end = start, end
        while inner_end > inner_start and text[inner_end - 1] in _ENDING:
            inner_end -= 1
        if inner_end - inner_start > 2 and text[inner_start] == text[inner_end - 1] in _QUOTES:
            inner_start, inner_end = inner_start + 1, inner_end - 1
        while inner_start < inner_end and text[inner_start] == " ":
            inner_start += 1
        if inner_start == inner_end or (inner_start, inner_end) == (start, end):
            return text[start:end]
        start, end = inner_start, inner_end


def normal_text(text: str) -> str:
    """Return the normal form of free text."""
    text = casefold_unaccented(text)
    if "-" in text:
        text = _JOINING_HYPHEN.sub(" ", text)
    return _bare(text)


def raw_text(raw: JsonValue, limit: int = TEXT_CHARS) -> str:
    """Return a text, or a number as text. Raises InvalidValue for lists and objects."""
    if isinstance(raw, str):
        return bounded(raw, limit)
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, int | float):
        return show_decimal(decimal_of(raw))
    what = "nothing" if raw is None else "a list" if isinstance(raw, list) else "an object"
    raise InvalidValue(f"{what} where one value is expected")


def parse_string(raw: JsonValue) -> str:
    """Return the normal form itself."""
    return normal_text(raw_text(raw))


def string_texts(raw: JsonValue) -> tuple[str, str]:
    """Return the texts that a specification's pattern may match: the cleaned text and its normal
    form."""
    text = raw_text(raw)
    return strip_invisible(text), normal_text(text)


STRING = Kind(parse=parse_string, show=str, texts=string_texts)
"""string: free text as a reader sees it.

Normal form: NFKC, without trademark signs, control and invisible characters and Latin accents;
typographic quotes, primes and dashes as their ASCII relatives; a hyphen that joins a letter to a
word is a space; white space collapsed; case folded; a pair of quotes around the whole and
punctuation at its end dropped. A leading or trailing sign (``-5``, ``A-``), a decimal point and
an inch mark stay: they carry meaning. Numbers given for a text are their decimal digits.
"""

_SMALL_WORDS = frozenset(["the", "a", "an", "of", "at", "by", "in", "on", "and"])
_WRITTEN_OUT = _table(
    "st=street ave=avenue av=avenue rd=road blvd=boulevard dr=drive univ=university "
    "intl=international ctr=center centre=center theatre=theater dept=department mt=mount ft=fort"
)
_WORD = re.compile(r"\d+(?:\.\d+)+|[^\W_]+")


def parse_name(raw: JsonValue) -> tuple[str, ...]:
    """Return the significant words, sorted."""
    text = normal_text(raw_text(raw, SCALAR_CHARS)).replace("'", "")
    words = [_WRITTEN_OUT.get(word, word) for word in _WORD.findall(text)]
    kept = [word for word in words if word not in _SMALL_WORDS] or words
    if not kept:
        raise InvalidValue("not a name")
    return tuple(sorted(kept))


LOCATION_NAME = Kind(parse=parse_name, show=" ".join, texts=string_texts)
"""location-name: the name of a place.

Normal form: its words, as in ``STRING``, without articles, prepositions, ``and`` and punctuation,
common abbreviations written out, sorted: word order does not matter, every remaining word and
number does. ``Gate 1`` is not ``Gate 2``, ``The Oaklander Hotel`` is ``Oaklander Hotel, The``.
"""

MAX_STRINGS = 10_000


def parse_list(raw: JsonValue) -> tuple[str, ...]:
    """Return the items' normal forms, sorted."""
    parts = raw_text(raw).split(",") if not isinstance(raw, list) else raw
    if len(parts) > MAX_STRINGS:
        raise TooLarge(f"a list of more than {MAX_STRINGS:,} items")
    items = [raw_text(part, TEXT_CHARS // 10) for part in parts]
    return tuple(sorted(filter(None, map(normal_text, items))))


STRING_LIST = Kind(parse=parse_list, show=list, is_list=lambda _: True, nothing=frozenset())
"""string_list: several texts in any order.

Normal form: the list of the texts' normal forms (see ``STRING``), sorted, duplicates kept. Read are
a JSON list, whose items are one text each, and one text with commas between the items. Blank items
are dropped.
"""


def _refuse(name: str) -> None:
    raise InvalidValue(f"{name} is no JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise InvalidValue("a JSON object with a repeated key")
    return members


def _number(digits: str) -> Decimal:
    return bounded_decimal(Decimal(bounded(digits, 1000)))


def decoded(text: str) -> Any:
    """Parse JSON with exact numbers."""
    try:
        return json.loads(
            bounded(text, TEXT_CHARS).removeprefix("\ufeff"),
            parse_float=_number,
            parse_int=_number,
            parse_constant=_refuse,
            object_pairs_hook=_object,
        )
    except RecursionError as error:
        raise TooLarge("JSON nested too deep") from error
    except (ValueError, InvalidOperation) as error:
        raise InvalidValue("not JSON") from error


def _canonical(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(unicode_text(value), ensure_ascii=False)
    if isinstance(value, int | float):
        value = decimal_of(value)
    if isinstance(value, Decimal):
        return show_decimal(value)
    if isinstance(value, dict):
        members = sorted((_canonical(key), _canonical(item)) for key, item in value.items())
        return "{" + ",".join(f"{key}:{item}" for key, item in members) + "}"
    return "[" + ",".join(map(_canonical, value)) + "]"


def parse_json(raw: JsonValue) -> str:
    """Return the canonical JSON of a text, list or object."""
    value = decoded(raw) if isinstance(raw, str) else raw
    bounded_json(value)
    return _canonical(value)


JSON = Kind(parse=parse_json, show=str, is_list=lambda _: True)
"""json: a JSON document.

Normal form: its text with sorted keys and no white space, numbers as in ``NUMBER``; case, accents
and the order of lists are kept, since they carry meaning. Read are JSON text and decoded lists and
objects. Refused are repeated keys, NaN and infinities, and documents beyond the limits of
``rules.limits``.
"""

_SPACE = re.compile(r"\s+")
_ALPHABET = re.compile(r"[A-Za-z0-9+/]*={0,2}")


def parse_base64(raw: JsonValue) -> str:
    """Return the decoded text."""
    if not isinstance(raw, str):
        raise InvalidValue("not base64")
    text = _SPACE.sub("", bounded(raw, TEXT_CHARS)).replace("-", "+").replace("_", "/")
    if not _ALPHABET.fullmatch(text):
        raise InvalidValue("not base64")
    text = text.rstrip("=")
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
        content = data.decode("utf-8")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise InvalidValue("not base64 of UTF-8 text") from error
    return content.replace("\r\n", "\n").replace("\r", "\n").strip()


def show_base64(text: str) -> str:
    """Write standard base64 with padding."""
    return base64.b64encode(text.encode()).decode()


def base64_texts(raw: JsonValue) -> tuple[str]:
    """Return the decoded text."""
    return (parse_base64(raw),)


BASE64 = Kind(parse=parse_base64, show=show_base64, texts=base64_texts, case_matters=True)
"""base64: text in base64.

Normal form: the standard alphabet with padding, of the decoded text with ``\n`` as line break and
without white space at its ends. Read are the standard and the URL alphabet, with or without padding
and line breaks; the bytes must be UTF-8. A specification's pattern is matched against the decoded
text.
"""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)")
_BULLET = re.compile(r"([ \t]*)[-*+][ \t]+(\S.*)")
_RULE = re.compile(r" {0,3}(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|-[ \t]+-[ \t]+(?:-[ \t]*)+|-{3,}")


def _bullet(found: re.Match[str], levels: list[int]) -> str:
    """Return a list item's line in normal form; ``levels`` are the indents of the open lists."""
    width = len(found[1].expandtabs(4))
    while levels and width <= levels[-1] - 1:
        levels.pop()
    if not levels or width >= levels[-1] + 2:
        levels.append(width)
    return "  " * (len(levels) - 1) + f"- {found[2]}"


def _line(line: str, previous: str, levels: list[int]) -> str:
    """Return a line outside code fences in normal form."""
    if line.startswith("-") and line.strip("-") == "" and previous:
        return line  # the underline of a heading
    if _RULE.fullmatch(line):
        levels.clear()
        return "***"
    if heading := _HEADING.fullmatch(line):
        levels.clear()
        title = heading[2].rstrip("#")
        closed = title != heading[2] and title[-1:].isspace()
        return f"{heading[1]} {title.rstrip() if closed else heading[2]}"
    if bullet := _BULLET.fullmatch(line):
        return _bullet(bullet, levels)
    if line and not line[0].isspace():
        levels.clear()
    return line


def _separate(done: list[str], line: str) -> bool:
    """Return True if a blank line is kept before a line."""
    return bool(done) and not _HEADING.fullmatch(done[-1]) and not _HEADING.fullmatch(line)


def parse_markdown(raw: JsonValue) -> str:
    """Return the normal form itself."""
    if not isinstance(raw, str):
        raise InvalidValue("not a text")
    text = unicode_text(bounded(raw, TEXT_CHARS)).replace("\r\n", "\n").replace("\r", "\n")
    done: list[str] = []
    levels: list[int] = []
    blank, fence = False, ""
    for line in text.split("\n"):
        opening = _FENCE.match(line)
        if fence:
            done.append(line)
            if opening and opening[1].startswith(fence) and line.strip() == opening[1]:
                fence = ""
            continue
        kept = line.rstrip()
        if not kept:
            blank = True
            continue
        if opening:
            fence = opening[1]
        else:
            kept = _line(kept, "" if blank or not done else done[-1], levels)
        if blank and _separate(done, kept):
            done.append("")
        blank = False
        done.append(kept)
    return "\n".join(done).rstrip("\n")


MARKDOWN = Kind(parse=parse_markdown, show=str)
"""markdown: a document, compared by its blocks rather than by its white space.

Normal form, line by line and outside of code fences: ``\n`` as line break, no white space at line
ends, one space after the signs of a heading and none of its closing signs, ``-`` for every bullet,
two spaces of indent for every level of a list, ``***`` for a rule, at most one blank line in a row
and none around headings. Case, accents and everything inside of a code fence are kept.
"""

URL_CHARS = 20_000
ANY_SSH_HOST = "__SSH_HOST__"
_SITE = re.compile(r"__[A-Z][A-Z_]*__(?=[/?#]|\Z)")
_SSH = re.compile(
    r"(?:(?:ssh|scp)://([^@/:\s]+)@([^@/:\s]+)(?::\d+)?/|([^@/:\s]+)@([^@/:\s]+):)(\S+)"
)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_HOST = re.compile(r"[^\s/?#@:\[\]]+(?::\d{1,5})?|\[[0-9A-Fa-f:.]+\](?::\d{1,5})?")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SAFE = "/:@!$&'()*,;=~+"


class Url(NamedTuple):
    """An address: ``origin`` is scheme and host, or a site's placeholder; ``query`` is sorted
    and decoded."""

    origin: str
    path: str
    query: tuple[tuple[str, str], ...]
    fragment: str

    @property
    def base(self) -> str:
        """The address without query and fragment."""
        return self.origin + self.path


def parse_query(text: str) -> tuple[tuple[str, str], ...]:
    """Return decoded, sorted (name, value) pairs; repeated names are kept, empty values dropped."""
    pairs = []
    for part in text.split("&"):
        name, _, value = part.partition("=")
        if name and value:
            pairs.append((unicode_text(unquote_plus(name)), unicode_text(unquote_plus(value))))
    return tuple(sorted(pairs))


def _path(text: str) -> str:
    decoded = "/".join(quote(unquote(part), safe=_SAFE) for part in unicode_text(text).split("/"))
    if "." in decoded:
        parts = decoded.split("/")
        if "." in parts or ".." in parts:
            decoded = posixpath.normpath(decoded)
    return decoded.rstrip("/")


def _origin(text: str) -> tuple[str, str]:
    """Split an address into scheme and host, in normal form, and the rest."""
    if site := _SITE.match(text):
        return site[0], text[site.end() :]
    if scheme := _SCHEME.match(text):
        name, rest = scheme[1].lower(), text[scheme.end() :]
    else:
        name, rest = "https", text.removeprefix("//")
    end = min((i for i in map(rest.find, "/?#") if i >= 0), default=len(rest))
    user, at, host = rest[:end].rpartition("@")
    host = host.lower()
    known = scheme or "." in host or host.startswith("localhost")
    if not known or not _HOST.fullmatch(host):
        raise InvalidValue("not an address: no host")
    if host.endswith(_DEFAULT_PORTS.get(name, " ")):
        host = host.rpartition(":")[0]
    return f"{name}://{user}{at}{host}", rest[end:]


def parse_url(raw: JsonValue) -> Url:
    """Parse an address."""
    if not isinstance(raw, str):
        raise InvalidValue("not an address")
    text = _CONTROL.sub("", bounded(raw, URL_CHARS)).strip().strip("<>")
    if ssh := _SSH.fullmatch(text):
        user, host = ssh[1] or ssh[3], ssh[2] or ssh[4]
        host = host if host == ANY_SSH_HOST else host.lower()
        return Url(f"{unicode_text(user)}@{unicode_text(host)}:", _path(ssh[5].lstrip("/")), (), "")
    origin, rest = _origin(unicode_text(text))
    rest, _, fragment = rest.partition("#")
    path, _, query = rest.partition("?")
    return Url(origin, _path(path), parse_query(query), quote(unquote(fragment), safe=_SAFE + "?"))


def show_url(url: Url) -> str:
    """Return an address as one percent-encoded line."""
    pairs = (
        quote(name, safe="") + (f"={quote(value, safe='')}" if value else "")
        for name, value in url.query
    )
    query = "&".join(pairs)
    return url.base + (f"?{query}" if query else "") + (f"#{url.fragment}" if url.fragment else "")


def same_url(expected: Url, actual: Url) -> bool:
    """Return True for equal addresses; the specification's placeholder for SSH hosts equals any
    host."""
    if expected.origin.endswith(f"@{ANY_SSH_HOST}:"):
        user = expected.origin.removesuffix(f"{ANY_SSH_HOST}:")
        alike = actual.origin.startswith(user) and actual.origin.endswith(":")
        return alike and expected[1:] == actual[1:]
    return expected == actual


def url_texts(raw: JsonValue) -> tuple[str, str]:
    """Return the address, percent-encoded and decoded. Raises InvalidValue for one with a query."""
    url = parse_url(raw_text(raw, URL_CHARS))
    if url.query:
        raise InvalidValue("the address has a query, which no pattern asks for")
    return url.base, unquote(url.base)


URL = Kind(parse=parse_url, show=show_url, same=same_url, texts=url_texts, case_matters=True)
"""url: an address on the web, or of a repository.

Normal form: scheme and host in lower case, no default port, no trailing slash, dot segments
resolved, percent-encoding only where needed, query sorted without parameters that are empty
(``a=``, ``a``), fragment kept; the case of path and query is kept, as servers see it. An address
without a scheme is https. A site's placeholder (``__GITLAB__``) stands for scheme and host.
Addresses of repositories are ``git@host:path``, whichever of the two SSH forms was written; the
placeholder ``__SSH_HOST__`` in a specification stands for any host. A specification's pattern is
matched against the address without its fragment; one with a query fits no pattern, as in requests
(``verified.network.address``), where a query is compared apart.
"""


STATES = _table(
    "alabama=AL alaska=AK arizona=AZ arkansas=AR california=CA colorado=CO connecticut=CT "
    "delaware=DE district_of_columbia=DC florida=FL georgia=GA hawaii=HI idaho=ID illinois=IL "
    "indiana=IN iowa=IA kansas=KS kentucky=KY louisiana=LA maine=ME maryland=MD massachusetts=MA "
    "michigan=MI minnesota=MN mississippi=MS missouri=MO montana=MT nebraska=NE nevada=NV "
    "new_hampshire=NH new_jersey=NJ new_mexico=NM new_york=NY north_carolina=NC north_dakota=ND "
    "ohio=OH oklahoma=OK oregon=OR pennsylvania=PA rhode_island=RI south_carolina=SC "
    "south_dakota=SD tennessee=TN texas=TX utah=UT vermont=VT virginia=VA washington=WA "
    "west_virginia=WV wisconsin=WI wyoming=WY puerto_rico=PR guam=GU american_samoa=AS "
    "virgin_islands=VI northern_mariana_islands=MP"
)
STREETS = _table(
    "alley=aly avenue=ave av=ave aven=ave boulevard=blvd boul=blvd branch=br bridge=brg "
    "circle=cir circ=cir court=ct center=ctr centre=ctr cove=cv crescent=cres drive=dr drv=dr "
    "expressway=expy extension=ext freeway=fwy gardens=gdns heights=hts highway=hwy junction=jct "
    "lane=ln manor=mnr parkway=pkwy pky=pkwy place=pl plaza=plz point=pt road=rd ridge=rdg "
    "route=rte square=sq street=st str=st terrace=ter trail=trl turnpike=tpke valley=vly view=vw "
    "way=wy crossing=xing"
)
DIRECTIONS = _table(
    "north=n south=s east=e west=w northeast=ne northwest=nw southeast=se southwest=sw"
)
"""Postal abbreviations of the United States (USPS Publication 28)."""

PARTS = ("name", "house_number", "street", "city", "state", "postcode", "country")
_OPTIONAL = ("name", "country")
_ZIP = re.compile(r"([0-9]{5})(?:-?[0-9]{4})?")
_STATE_ZIP = re.compile(r"(.*?)(?:^| )([0-9]{5}(?:-[0-9]{4})?)")
_HOUSE = re.compile(r"([0-9]+[a-z]?(?:-[0-9]+)?) (.+)")
_COUNTRIES = frozenset(
    ("us", "usa", "united states", "united states of america", "u.s.", "u.s", "u.s.a", "u.s.a.")
)


def _street(text: str) -> str:
    words = re.findall(r"[^\s.,]+", casefold_unaccented(text))
    short = [STREETS.get(word, word) for word in words]
    return " ".join(DIRECTIONS.get(word, word) if len(words) > 2 else word for word in short)


def _state(text: str) -> str:
    name = normal_text(text).replace(".", "")
    if (code := STATES.get(name, name).upper()) not in STATES.values():
        raise InvalidValue("no state of the United States")
    return code


def _postcode(text: str) -> str:
    match = _ZIP.fullmatch(normal_text(text))
    if not match:
        raise InvalidValue("not a ZIP code")
    return match[1]


def _country(text: str) -> str:
    name = casefold_unaccented(text)
    return "US" if name in _COUNTRIES else normal_text(text)


_READ = {"street": _street, "state": _state, "postcode": _postcode, "country": _country}


def _from_object(raw: dict[str, JsonValue]) -> dict[str, str]:
    unknown = raw.keys() - set(PARTS)
    if unknown:
        raise InvalidValue(f"an address has no part {min(unknown)[:40]!r}")
    address = {}
    for part in PARTS:
        if raw.get(part) is not None:
            text = raw_text(raw[part], SCALAR_CHARS)
            if text.strip():
                address[part] = _READ.get(part, normal_text)(text)
    return address


def _from_line(text: str) -> dict[str, str]:
    """Parse ``[name,] house street, city, state zip [, country]``."""
    parts = [part.strip() for part in casefold_unaccented(text).removesuffix(".").split(",")]
    results: dict[str, JsonValue] = {}
    if parts[-1] in _COUNTRIES:
        results["country"] = parts.pop()
    if parts and (tail := _STATE_ZIP.fullmatch(parts[-1])):
        results["postcode"] = tail[2]
        parts = [*parts[:-1], tail[1]] if tail[1] else parts[:-1]
    if len(parts) < 3 or "postcode" not in results:
        raise InvalidValue("not an address of the form 'number street, city, state ZIP'")
    results["state"], results["city"] = parts[-1], parts[-2]
    if len(parts) > 3:
        results["name"] = ", ".join(parts[:-3])
    house = _HOUSE.fullmatch(parts[-3])
    if not house:
        raise InvalidValue("an address without a house number")
    results["house_number"], results["street"] = house[1], house[2]
    return _from_object(results)


def parse_address(raw: JsonValue) -> dict[str, str]:
    """Return the stated parts in normal form."""
    if isinstance(raw, dict):
        address = _from_object(raw)
    elif isinstance(raw, str) and len(raw) <= SCALAR_CHARS:
        address = _from_line(raw)
    else:
        raise InvalidValue("not an address")
    if not address:
        raise InvalidValue("an address without any part")
    return address


def same_address(one: dict[str, str], other: dict[str, str]) -> bool:
    """Return True for the same parts with the same values."""
    return all(
        one.get(part) == other.get(part)
        or (part in _OPTIONAL and (part not in one or part not in other))
        for part in PARTS
    )


FULL_ADDRESS = Kind(parse=parse_address, show=dict, same=same_address)
"""full_address: a postal address of the United States.

Normal form: an object with the stated parts among name, house_number, street, city, state,
postcode, country; texts as in ``STRING``, street types and directions by their postal
abbreviations, the state by its two letters, the first five digits of the ZIP code. Read are an
object with those keys and one line (``117 South Bouquet Street, Pittsburgh, PA 15213``). Two
addresses are the same if they state the same parts with the same values; a name or a country counts
only where both state it.
"""
