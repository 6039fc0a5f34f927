"""What a last message in prose says is the answer.

``passages`` cuts the message into sentences and finds the values that it mentions, ``segments`` the
part of a sentence that speaks of each. ``question`` knows the words of the goal; ``qualifiers`` and
``polarity`` tell a clause about another train, day or the opposite property from one about what is
asked. ``roles`` tells by ``cues`` what a mention is there for (the answer, denied, a bound, an
aside), ``reading`` weighs the mentions: right, wrong, or open to argument.
"""

from __future__ import annotations

from trajudge.environments.verify.prose.reading import Reading, denied, read, says_not_done
from trajudge.environments.verify.prose.wanted import Wanted

__all__ = ["Reading", "Wanted", "denied", "read", "says_not_done"]
