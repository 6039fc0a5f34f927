"""Pages with a number on every line, so that a finding can cite one and the citation be looked
up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from trajudge.judges.defences.datamark import MARK
from trajudge.judges.replies import normalise
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.represent import MissingObservation
from trajudge.trajectories.tokens import count_tokens, fits
from trajudge.trajectories.truncation.cutting import largest

HEAD_SHARE = 2 / 3
_LEFT_OUT = "[... {count} lines left out ...]"


class NumberedPage(NamedTuple):
    """The lines of the page at a step (from 1) that are shown, by their number from 1."""

    step: int
    lines: Mapping[int, str]
    total: int

    @property
    def text(self) -> str:
        """The lines with ``step:line`` before each, and what was left out."""
        return "\n".join(self._shown())

    def _shown(self) -> Iterator[str]:
        before = 0
        for number, line in self.lines.items():
            if left_out := number - before - 1:
                yield _LEFT_OUT.format(count=left_out)
            yield f"{self.step}:{number} {line}"
            before = number
        if left_out := self.total - before:
            yield _LEFT_OUT.format(count=left_out)

    def within(self, budget: int) -> NumberedPage:
        """Return the page with its first and last lines alone, in at most ``budget`` tokens."""
        if fits(self.text, budget):
            return self

        def kept(count: int) -> NumberedPage:
            head = round(count * HEAD_SHARE)
            shown = [*range(1, head + 1), *range(self.total - (count - head) + 1, self.total + 1)]
            return self._replace(lines={number: self.lines[number] for number in shown})

        most = len(self.lines) - 1
        return kept(largest(most, lambda count: count_tokens(kept(count).text) <= budget))


def numbered_pages(
    trajectory: Trajectory, count: int, harmless: Callable[[str], str]
) -> list[NumberedPage]:
    """Return the last ``count`` recorded pages, the pruned tree where there is one, each line as
    ``harmless`` has it. Raises MissingObservation if there is none."""
    pages = []
    for step, one in enumerate(trajectory.steps, start=1):
        tree = one.observation.axtree_pruned or one.observation.axtree
        if tree:
            lines = harmless(tree).splitlines()
            pages.append(NumberedPage(step, dict(enumerate(lines, start=1)), len(lines)))
    if not pages:
        raise MissingObservation(f"{trajectory.key}: no step has an accessibility tree")
    return pages[-count:]


class ShownRecord(NamedTuple):
    """What can be cited: ``step:line`` of a shown page, and ``step:0`` for the step's action."""

    texts: Mapping[str, str]

    def holds(self, place: str, quote: str) -> bool:
        """Tell whether the words of ``quote`` stand at the place, whatever their punctuation."""
        words = _words(quote)
        return words != "" and f" {words} " in f" {_words(self.texts.get(place, ''))} "


def record_of(pages: Sequence[NumberedPage], actions: Mapping[int, str]) -> ShownRecord:
    """Collect the shown lines, and the actions by their step."""
    lines = {f"{p.step}:{number}": line for p in pages for number, line in p.lines.items()}
    return ShownRecord({**{f"{step}:0": action for step, action in actions.items()}, **lines})


def _words(text: str) -> str:
    return normalise(text.replace(MARK, " "))
