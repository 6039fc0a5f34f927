"""Servers that charge also for answers which no judgment keeps, and what the screen says of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import orjson

from tests.judges.methods.replies import answers
from tests.judges.methods.replies import rubric_stage_of as stage_of
from tests.llm_replies import Incoming, Outgoing, answer, verdict_text
from tests.screens import on_one_line

INPUT, OUTPUT = 2.5e-4, 10e-4  # US dollars a token


@dataclass
class Till:
    """A server's ``text`` that charges for every answer: of the prompts it has not seen, every
    fourth gets no choice and the one before it no verdict."""

    is_sound: bool = False
    charged: list[float] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    def __call__(self, incoming: Incoming) -> Outgoing:
        is_new = incoming.prompt not in self.seen
        self.seen.add(incoming.prompt)
        trouble = len(self.seen) % 4 if is_new and not self.is_sound else 0
        text = "I cannot say." if trouble == 3 else verdict_text(incoming.prompt)
        self.charged.append(len(incoming.prompt) // 4 * INPUT + len(text) // 4 * OUTPUT)
        whole = answer(incoming, text)
        return Outgoing(200, _without_choice(whole.body)) if trouble == 2 else whole


def _without_choice(body: bytes) -> bytes:
    content = orjson.loads(body)
    return orjson.dumps({**content, "choices": []})


def shown_cost(shown: str) -> tuple[float, float]:
    """The dollars of the judgments and the unattributed ones."""
    line = on_one_line(shown)
    told = re.search(r"Cost: \$([\d.]+), ", line)
    more = re.search(r"; \$([\d.]+) more for failed", line)
    assert told, line
    return float(told[1]), float(more[1]) if more else 0.0


@dataclass
class RubricTill:
    """Answers the rubric judge and charges for it. While it is not ``sound``, nothing that it
    writes as criteria can be read."""

    sound: bool = True
    charged: list[float] = field(default_factory=list)
    criteria: list[str] = field(default_factory=list)

    def __call__(self, incoming: Incoming) -> str:
        text = answers()(incoming)
        if stage_of(incoming) == "criteria":
            self.criteria.append(incoming.prompt)
            text = text if self.sound else "I would not know."
        self.charged.append(len(incoming.prompt) // 4 * INPUT + len(text) // 4 * OUTPUT)
        return text
