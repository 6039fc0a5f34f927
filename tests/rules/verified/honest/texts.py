"""What people and programs write where a published specification has a pattern.

The texts with a life of their own (a licence, a page, a message of the shop) are written by hand;
the other patterns are simple enough to be read part by part. Every text is held to Python's ``re``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_PAGE = """<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>{}</title>
  </head>
  <body><p>Hello</p></body>
</html>"""
_LICENCES = {
    "MIT": "MIT License\n\nCopyright (c) 2023 Byte Blaze\n\nPermission is hereby granted, ...\n",
    "Apache": "                                 Apache License\n   Version 2.0, January 2004\n",
    "GNU": "                    GNU GENERAL PUBLIC LICENSE\n                       Version 3\n",
}
_OPTIONS = (
    '["optiontext%5Border%5D%5Boption_3%5D=4&swatchtext%5Bvalue%5D%5Boption_3%5D%5B0%5D={}&x=1"]'
)
_ADDED = '[{{"type":"success","text":"Sturdy {} has been added to your Wish List. Click here."}}]'

_ENGINE = "_osm_location=-79.9|40.4|15|M; _osm_directions_engine={}"
_ROUTE = "__MAP__/osrm/routed-car/route/v1/driving/{}"

# A part of the pattern, and what is written for it: {} is the part's first group.
_BY_HAND: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (r"<title>(.*)</title>", lambda found: _PAGE.format(found[1])),
    (r"\^\.\*(MIT|Apache|GNU)", lambda found: _LICENCES[found[1]]),
    (r"swatchtext.*=(\w+)\.\*", lambda found: _OPTIONS.format(found[1])),
    (
        r"Order.*0\*(\d+).*\?(\d+)\\\.(\d+)",
        lambda found: (
            f"I need a refund. Order: {found[1]}. Amount: ${found[2]}.{found[3]}. "
            "Reason: It broke after three days of use."
        ),
    ),
    (
        r"has been added",
        lambda found: _ADDED.format(" ".join(re.findall(r"\(\?=\.\*(\w+)\)", found.string))
                                    or found.string[3:].partition(".")[0]),
    ),
    (r"Crazy device", lambda found: "Crazy device for ML!\r\n\r\nEDIT: This news aged well"),
    (r"\^\(\?!main\$\)", lambda found: "change-the-title"),
    (r"delete\$", lambda found: "put"),
    (r"_engine=(\w+bicycle)", lambda found: _ENGINE.format(found[1])),
    (r"_engine", lambda found: _ENGINE.format("fossgis_osrm_car")),
    (r"(guard)\|mouth", lambda found: "__SHOPPING__/night-guard-for-teeth-grinding-4-pack.html"),
    (r"dummy_bin", lambda found: "http://localhost:7770/dummy_bin"),
    (r"route/.*/(-?[\d.]+,.*)\.\*", lambda found: _ROUTE.format(found[1])),
    (r"routed-car", lambda found: _ROUTE.format("-79.94,40.44;-71.09,42.36")),
    (
        r"cart/add/uenc/\.\*/(product/\d+)",
        lambda found: f"__SHOPPING__/checkout/cart/add/uenc/%UENC%/{found[1]}",
    ),
    (r"flat rate", lambda found: "Flat Rate - Fixed"),
    (r"(\d+)\(\?:\\\.0\+\)\?.*inch", lambda found: f"{found[1]} inches"),
)  # fmt: skip

_PARTS: tuple[tuple[str, str], ...] = (
    (r"\\([./!])", r"\1"),
    (r"\\d\+", "421"),
    (r"\\s[*+]", " "),
    (r"#\?\s?\\?s?\*?0\*", "#000000"),
    (r"[@#/]\?", ""),
    (r"0\*", "000"),
    (r"\\\[", "["),
    (r"\\\]", "]"),
    (r"\.\*", " and "),
)


def is_pattern(value: object) -> bool:
    """Tell whether a published value is a pattern."""
    return isinstance(value, str) and value.startswith("^") and value.endswith("$")


def written(pattern: str, variant: int = 0) -> str:
    """Return a text that an honest run has for a pattern; ``variant`` chooses among alternatives.

    Raises ValueError for a pattern that nothing was written for.
    """
    for part, write in _BY_HAND:
        if found := re.search(part, pattern):
            text = write(found)
            break
    else:
        text = _read(pattern[1:-1], variant)
    if not re.fullmatch(pattern, _seen(pattern, text), re.IGNORECASE | re.DOTALL):
        raise ValueError(f"{text!r} was written for {pattern!r}, which refuses it")
    return text


def _seen(pattern: str, text: str) -> str:
    """Return the text with the placeholder that an address pattern begins with."""
    return text if "__" not in pattern else text.replace("%UENC%", "aHR0cDovLw,,")


def _read(body: str, variant: int) -> str:
    def chosen(group: re.Match[str]) -> str:
        options = group[1].split("|")
        return options[variant % len(options)]

    body = re.sub(r"\((?:\?:)?([\w|]*\|[\w|]*)\)", chosen, body)
    if "|" in body and "(" not in body:
        body = body.split("|")[variant % 2]
    address = body.startswith("__")
    for part, text in _PARTS:
        body = re.sub(part, "" if address and text == " and " else text, body)
    return body
