"""A server that counts what it was asked, and prices."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.llm_replies import Incoming, Outgoing, answer, verdict_text

INPUT, OUTPUT = 2.5e-6, 10e-6  # US dollars a token
LONG = 8_000  # tokens of an answer
PRICES = '[models."gpt-4o"]\ninput = 2.5\noutput = 10.0\n'


@dataclass
class Till:
    """A server's ``text`` that counts what it charges: every answer that it wrote, whether or not
    the client gets it whole; ``cut`` is every how-manieth it does not."""

    tokens: int = LONG
    cut: int = 0
    charged: list[float] = field(default_factory=list)

    def __call__(self, incoming: Incoming) -> Outgoing:
        verdict = verdict_text(incoming.prompt)
        text = verdict + "x" * (4 * self.tokens - len(verdict))
        self.charged.append(len(incoming.prompt) // 4 * INPUT + len(text) // 4 * OUTPUT)
        whole = answer(incoming, text)
        is_cut = self.cut and len(self.charged) % self.cut == 0
        return Outgoing(200, whole.body, cut=True) if is_cut else whole

    @property
    def bill(self) -> float:
        return sum(self.charged)
