"""The pages in a ``render_<id>.html`` of WebArena, found by the writer's fixed marks.

The writer escapes nothing: a tree may hold ``</pre></div>`` or ``<b>``, so that no HTML parser can
tell where it ends. Each part goes on to the last mark that may end it, on bytes, and is decoded by
itself. Derived writers leave out the action before or the action's object, or write several actions
of one page. A page without its tree or its action is one that was cut, and is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_PAGE = b"<h2>New Page</h2>\n<h3 class='url'>"
_URL = re.compile(rb"<a href=[^\n]*?>URL: ([^\n]*?)</a></h3>\n<div class='state_obv'><pre>")
_TREE_ENDS = (
    b"</pre><div>\n<img src='data:",
    b"</pre><div>\n<div class='prev_action'",
    b"</pre><div>\n<div class='predict_action'",
)
_TREE_END = b"</pre><div>\n"
_PICTURE = re.compile(rb"<img src='(data:[^']*+)'[^>\n]*>\n")
_PREVIOUS = re.compile(rb"<div class='prev_action'[^>\n]*>")
_PREDICTED = b"<div class='predict_action'>"
_PREVIOUS_END = b"</div>\n" + _PREDICTED
_INNER = re.compile(rb"<div class='raw_parsed_prediction'[^>\n]*><pre>")
_NEXT_INNER = re.compile(rb"(?<=</pre></div>)<div class='raw_parsed_prediction'")
_OBJECT, _PARSED = (
    b"</pre></div><div class='action_object'",
    b"</pre></div><div class='parsed_action'",
)
_SPLITTER = "```"
_STOP = re.compile(r"\s*stop\b\s*(?:\[(.*)\])?\s*", re.DOTALL)


class RenderedAction(NamedTuple):
    """What a model wrote, "" where the harness acted itself or wrote code alone, and the action as
    the harness read it."""

    prediction: str
    parsed: str

    @property
    def action(self) -> str:
        """The action that the model wrote between the last two splitters, else the parsed one."""
        parts = self.prediction.rsplit(_SPLITTER, 2)
        return parts[1].strip() if len(parts) == 3 and parts[1].strip() else self.parsed.strip()

    @property
    def reasoning(self) -> str:
        """The prediction without its action."""
        parts = self.prediction.rsplit(_SPLITTER, 2)
        rest = parts[::2] if len(parts) == 3 and parts[1].strip() else [self.prediction]
        return " ".join(filter(None, (part.strip() for part in rest)))


class RenderedPage(NamedTuple):
    """One page and what was done on it. ``picture`` is a ``data:`` URL; ``previous`` what the agent
    was told of its action before, "" where the writer leaves it out."""

    url: str
    tree: str
    picture: str | None
    previous: str
    actions: tuple[RenderedAction, ...]

    @property
    def stops(self) -> bool:
        """Whether the run ends here."""
        return _STOP.fullmatch(self.actions[-1].action) is not None

    @property
    def answer(self) -> str:
        """What stands in the brackets of a stop."""
        stop = _STOP.fullmatch(self.actions[-1].action)
        return (stop[1] or "").strip() if stop else ""


def task_part(content: bytes) -> bytes:
    """Return what stands before the first page: the task."""
    return content.partition(_PAGE)[0]


def split_pages(content: bytes) -> Iterator[bytes]:
    """Yield the pages of a file, one in memory at a time."""
    begin = content.find(_PAGE)
    while begin >= 0:
        begin += len(_PAGE)
        end = content.find(_PAGE, begin)
        yield content[begin:] if end < 0 else content[begin:end]
        begin = end


def read_page(content: bytes) -> RenderedPage | None:
    """Read one page; None of one that was cut."""
    opened = _URL.match(content)
    end = max(content.rfind(mark) for mark in _TREE_ENDS)
    if opened is None or end < opened.end():
        return None
    place = end + len(_TREE_END)
    picture = _PICTURE.match(content, place)
    place = picture.end() if picture else place
    previous = _PREVIOUS.match(content, place)
    start = place
    if previous:
        place = content.find(_PREVIOUS_END, previous.end())
        start, place = place, place + len(b"</div>\n")
    # Behind the last page stands the end of the file.
    predicted, closing = place + len(_PREDICTED), content.rfind(b"</div>\n")
    if start < 0 or not content.startswith(_PREDICTED, place) or closing < predicted:
        return None
    actions = _actions(content[predicted:closing])
    if actions is None:
        return None
    return RenderedPage(
        url=_text(opened[1]),
        tree=_text(content[opened.end() : end]),
        picture=_text(picture[1]) if picture else None,
        previous=_text(content[previous.end() : start]) if previous else "",
        actions=actions,
    )


def _actions(content: bytes) -> tuple[RenderedAction, ...] | None:
    """Read the actions of a page; code alone is one without a text. None if one was cut."""
    if not _INNER.match(content):
        return (RenderedAction("", _text(content)),)
    starts = [0, *(match.start() for match in _NEXT_INNER.finditer(content))]
    read = [_action(content[a:b]) for a, b in zip(starts, [*starts[1:], None], strict=True)]
    return None if None in read else tuple(action for action in read if action)


def _action(content: bytes) -> RenderedAction | None:
    inner, parsed = _INNER.match(content), content.rfind(_PARSED)
    begin, end = content.find(b"<pre>", parsed), content.rfind(b"</pre></div>")
    if inner is None or not inner.end() <= parsed < begin < end:
        return None
    objects = content.rfind(_OBJECT, inner.end(), parsed)
    text = content[inner.end() : parsed if objects < 0 else objects]
    return RenderedAction(_text(text), _text(content[begin + len(b"<pre>") : end]))


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")
