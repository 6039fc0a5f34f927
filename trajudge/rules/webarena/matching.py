"""How the harnesses of WebArena's family compare texts, numbers and addresses.

Texts are cleaned, and compared whole, as a part, or as a word; the last page's address is held
against references. What an agent or a page says is data: it never becomes a pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import parse_qs, urlparse, urlsplit

from trajudge.rules.dialects import Harness

OR = " |OR| "
GOLD_IN_PRED = "GOLD in PRED"

_PLACEHOLDER = re.compile(r"__[A-Z][A-Z_]*__")
_TOLERANCE = 1e-8

# What parts words, by the conventions of the Penn Treebank as NLTK's tokenizer has them; each
# group is a word of its own.
_APART = re.compile(
    r"([;@#$%&?!*\[\](){}<>«»“”‘’„\u2012-\u2015]|--|\.{2,}|`+)"
    r"|([:,])(?=\D|\Z)|(''|\")|(?<!\w)(')(?!(?:re|ve|ll|m|t|s|d|n)\b)(?=\w)"
)
# The stop of an abbreviation such as "e.g." ends no sentence.
_FULL_STOP = re.compile(
    r"(?<![\w.])((?:[^\W\d_]\.){2,})(?=\s+\S)|(?<=[^.\s])\.(?=[\])}>\"'»”’]*(?:\s|\Z))"
)
_ENDINGS = [
    re.compile(rf"(?<=[^'\s])({ending})(?=\s|\Z)") for ending in ("'s|'m|'d|'", "'ll|'re|'ve|n't")
]
_CONTRACTED = re.compile(
    r"\b(?:(can)(not)|(d)('ye)|(gim)(me)|(gon)(na)|(got)(ta)|(lem)(me)|(more)('n)|(wan)(na)(?=\s))\b"
    r"|(?<=\s)('t)(is|was)\b"
)


def clean(text: str, *, strips: bool = True) -> str:
    """Return the text in lower case, without one pair of outer quotes, and with ``strips`` without
    outer white space."""
    if strips:
        text = text.strip()
    for quote in "'\"":
        if text.startswith(quote) and text.endswith(quote):
            text = text[1:-1]
            break
    return text.lower()


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, by the conventions of the Penn Treebank.

    Brackets, quotes, ``$%&?!;@#*`` and the full stop before white space are words; ``1,2``,
    ``2/3``, ``2-3`` and ``2.5`` are single ones. Linear in the length of the text.
    """
    text = _FULL_STOP.sub(lambda found: found[1] or " . ", text)
    text = _APART.sub(lambda found: f" {found[0]} ", text)
    for ending in _ENDINGS:
        text = ending.sub(r" \1 ", text)
    text = _CONTRACTED.sub(lambda found: f" {' '.join(filter(None, found.groups()))} ", f" {text} ")
    return text.split()


def exact_match(reference: str, cleaned: str, *, strips: bool = True) -> bool:
    """Return True if the cleaned reference equals the text, which the caller has cleaned."""
    return clean(reference, strips=strips) == cleaned


def must_include(reference: str, cleaned: str, harness: Harness, *, lone: bool = False) -> bool:
    """Return True if the cleaned reference is part of the cleaned text, or one of its words where
    the harness asks for words; ``lone``: it is the answer's only reference."""
    wanted = clean(reference, strips=harness.strips)
    if harness.whole_words == "lone":
        if lone and len(wanted) == 1:
            return wanted in words(cleaned) if wanted in cleaned else False
        return wanted in cleaned
    if wanted not in cleaned:
        return False
    if len(words(wanted)) != 1:
        return True
    said = words(cleaned)
    if harness.whole_words == "parts":
        said += [part for word in said if "/" in word for part in word.split("/")]
    return wanted in said


def options_of(reference: str, harness: Harness) -> list[str]:
    """Return the alternatives that a harness reads in one entry of an answer's must_include."""
    if not harness.alternatives:
        return [reference]
    if harness.folds_options:
        reference = clean(reference)
    parts = reference.split(harness.alternatives)
    return [one.strip() for one in parts] if harness.folds_options else parts


def includes(reference: str, cleaned: str, harness: Harness, *, lone: bool = False) -> bool:
    """Return True if an entry of must_include, or one of its alternatives where the harness reads
    them, is part of the cleaned text."""
    options = options_of(reference, harness)
    if harness.folds_options and len(options) > 1:
        # As there, an alternative of one character is looked for in itself, so that it holds.
        return any((lone and len(one) == 1) or one in cleaned for one in options)
    return any(must_include(one, cleaned, harness, lone=lone) for one in options)


def satisfies(number: float, inequality: str) -> bool | None:
    """Return whether a number meets a condition such as ``>= 12``; None for what is none."""
    for sign in ("<=", ">=", "==", "<", ">"):
        left, found, right = inequality.partition(sign)
        if not found:
            continue
        try:
            bound = float(right.strip())
        except ValueError:
            return None
        if left.strip():
            return None
        if sign == "==":
            return abs(number - bound) <= _TOLERANCE
        below = {"<=": number <= bound + _TOLERANCE, "<": number < bound + _TOLERANCE}
        above = {">=": number >= bound - _TOLERANCE, ">": number > bound - _TOLERANCE}
        return (below | above)[sign]
    return None


def whole_number(text: str) -> int | None:
    """Return the integer that a text says, commas aside; None for any other text."""
    try:
        return int(text.strip().replace(",", "")[:400])
    except ValueError:
        return None


def render(text: str, sites: Mapping[str, str]) -> str:
    """Return the text with each placeholder such as ``__REDDIT__`` replaced by that site's
    address."""
    return _PLACEHOLDER.sub(lambda found: sites.get(found[0], found[0]), text)


def unresolved(reference: str, found: str) -> str | None:
    """Return a placeholder that makes the two incomparable: in the reference, and no part of the
    other."""
    for placeholder in _PLACEHOLDER.findall(reference):
        if placeholder not in found:
            return str(placeholder)
    return None


def alternatives(reference_url: str) -> list[str]:
    """Return the reference urls that " |OR| " joins."""
    return reference_url.split(OR)


def url_match(
    references: Sequence[str], found: str, harness: Harness, note: str | None = None
) -> tuple[bool | None, str]:
    """Tell whether the last page's address is one of the references, by the harness's rule.

    Returns the result, None for a rule that the harness does not have, and what differs.
    """
    known = ("EXACT", GOLD_IN_PRED) if harness.exact_urls else (GOLD_IN_PRED,)
    if (note or known[0]) not in known:
        return None, f"no rule {note!r} is known for urls"
    if harness.exact_urls:
        return _text_match(references, found, whole=(note or "EXACT") == "EXACT")
    if harness.folds_urls:
        references, found = [one.lower() for one in references], found.lower()
    return _base_match(references, found)


def _text_match(references: Iterable[str], found: str, *, whole: bool) -> tuple[bool, str]:
    """Compare addresses as texts: one slash at the end does not count."""
    said = _without_slash(found)
    wanted = [_without_slash(reference) for reference in references]
    if said in wanted if whole else any(one in said for one in wanted):
        return True, ""
    return False, f"{said[:200]!r} {'is' if whole else 'holds'} none of the reference addresses"


def _without_slash(url: str) -> str:
    url = url.replace("localhost", "127.0.0.1")
    return url[:-1] if url.endswith("/") else url


def _base_match(references: Iterable[str], found: str) -> tuple[bool, str]:
    """Tell whether one reference's base is part of the url's, and every query name has a wanted
    value. The references' queries are pooled: a name asks for any value that any of them gives."""
    base, query = base_and_query(found)
    parsed = [base_and_query(reference) for reference in references]
    if not any(wanted in base for wanted, _ in parsed):
        return False, f"none of the reference addresses is part of {base[:200]!r}"
    pooled: dict[str, set[str]] = {}
    for _, wanted_query in parsed:
        for name, values in wanted_query.items():
            pooled.setdefault(name, set()).update(values)
    for name, wanted_values in pooled.items():
        if not wanted_values & set(query.get(name, [])):
            return False, f"the query's {name!r} is none of {sorted(wanted_values)}"
    return True, ""


def base_and_query(url: str) -> tuple[str, dict[str, list[str]]]:
    """Host and path, and the query's values by name.

    As in the harness, slashes at the very end do not count, and those before a query do: what asks
    for ``/issues/?state=opened`` does not accept ``/issues?state=opened``. A url that cannot be
    parsed is its own base.
    """
    try:
        # Not urlsplit: as in the harness, ";parameters" are no part of the path.
        parts = urlparse(url.rstrip("/"))
        query = parse_qs(parts.query)
    except ValueError:
        return url.rstrip("/"), {}
    return parts.netloc + parts.path, query


def post_address(url: str) -> str:
    """Return the address of the Reddit post that a url such as ``/f/forum/12/title`` belongs to.

    A url of another form is returned as it is (the harness's helper ``reddit_get_post_url``).
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    site, _, path = f"{parts.netloc}{parts.path}".partition("/")
    segments = path.split("/")
    if len(segments) < 3 or segments[0] != "f":
        return url
    scheme = f"{parts.scheme}://" if parts.scheme else ""
    return f"{scheme}{site}/f/{segments[1]}/{segments[2]}/"
