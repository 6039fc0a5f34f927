"""A mark between the words of what pages and agents wrote: the option ``datamark``.

Spotlighting (Hines et al., arXiv 2403.14720): where every blank of untrusted text is a mark, a
model can tell at each word whose it is, whatever the technique of an injection; the paper reports
injections that succeed in less than 2 % in place of more than 50 % of cases, not for judges. A word
without a blank is not marked, and neither are the goal, addresses and pictures.
"""

from __future__ import annotations

import re
from functools import lru_cache

from trajudge.judges.defences.messages import ChangingClient, in_system, notices
from trajudge.judges.defences.wrapping import DefendedJudge
from trajudge.judges.model import Judge, ModelClient
from trajudge.trajectories.model import Observation, Step, Trajectory

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
