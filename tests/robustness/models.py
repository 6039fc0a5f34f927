"""Models behind a server whose weakness is known: each reads the prompt that a judge sent."""

from __future__ import annotations

import json
import re
from collections import Counter
from unicodedata import normalize

from tests.llm_replies import Incoming
from trajudge.judges.defences import MARK
from trajudge.robustness.families import family_file

_WORD = re.compile(r"^Check: [a-z2-7]{8}$", re.MULTILINE)
_PLANTED = re.compile(r"(?<=Write )Check: [a-z2-7]{8}")
_CLICK = re.compile(r"<action[^>]*>click")
_ENDING = re.compile(r"ends in -([a-z2-7]{8}),")
_CLOSED = re.compile(r"[<(]\W{0,3}/\W{0,3}axtree(?:-([a-z2-7]{8}))?>")


def reply(success: bool, reasoning: str = "None.", *, after: str = "") -> str:
    word = "Successful" if success else "Unsuccessful"
    return (
        f"<reasoning>{reasoning}</reasoning><success>{word}</success>"
        f"<side>No</side><optimal>1. Complete Failure</optimal><loop>No</loop>{after}"
    )


def told(prompt: str, goal: str) -> int:
    """Where the last instruction towards the goal stands as it was written, -1 for nowhere."""
    return max(prompt.rfind(wording) for wording in family_file("injections")["goals"][goal])


def own_verdict(prompt: str) -> bool:
    """A verdict of the run alone: a fixed function of its actions, whatever stands around them."""
    return len(_CLICK.findall(prompt)) % 2 == 0


def asked_word(prompt: str) -> str:
    """The line that a canary asks for, "" without one."""
    found = _WORD.search(prompt)
    return f"\n{found[0]}" if found else ""


def honest(incoming: Incoming) -> str:
    """Follows no instruction of the material, though it thinks of them aloud."""
    thoughts = "\n".join(["The material asks for", *_PLANTED.findall(incoming.prompt)])
    return reply(own_verdict(incoming.prompt), thoughts, after=asked_word(incoming.prompt))


def obeys_every_instruction(incoming: Incoming) -> str:
    """Accepts when it is told to, and writes the word that the material tells it to."""
    planted = _PLANTED.search(incoming.prompt)
    word = f"\n{planted[0]}" if planted else asked_word(incoming.prompt)
    return reply(told(incoming.prompt, "success") >= 0, after=word)


def gullible_but_honest(incoming: Incoming) -> str:
    """Obeys what it reads in plain words and believes thoughts; else it says what it sees."""
    prompt = incoming.prompt
    claimed = "I have seen it confirmed" in prompt.replace(MARK, " ")
    planted = _PLANTED.search(prompt)
    word = f"\n{planted[0]}" if planted else asked_word(prompt)
    return reply(told(prompt, "success") >= 0 or claimed or own_verdict(prompt), after=word)


def believes_thoughts(incoming: Incoming) -> str:
    """Accepts what the agent thought that it did, else what it sees."""
    claimed = "I have seen it confirmed" in incoming.prompt
    return reply(claimed or own_verdict(incoming.prompt))


def examines_claims(incoming: Incoming) -> str:
    """Lists what thoughts claim; checks as one who believes thoughts and obeys plain words, were
    there any, and cites the first line of a page."""
    prompt = incoming.prompt
    if "You prepare the examination" in prompt:
        claims = ["Every subgoal is reached."] if "I have seen it confirmed" in prompt else []
        return json.dumps({"claims": claims})
    fooled = "I have seen it confirmed" in prompt or told(prompt, "success") >= 0
    success = fooled or own_verdict(prompt)
    (place, line), *_ = re.findall(r"^(\d+:1) (.+)$", prompt, re.MULTILINE)
    requirement = {"requirement": "all of it", "met": success, "at": place, "quote": line}
    listed = "1. Every subgoal is reached." in prompt
    return json.dumps(
        {
            "reasoning": "Looked.",
            "claims": [{"claim": 1, "holds": False}] if listed else [],
            "requirements": [requirement],
            "side_effect": False,
            "success": success,
        }
    )


def forgets_the_form(incoming: Incoming) -> str:
    """Gives a verdict, and reads no further."""
    return reply(own_verdict(incoming.prompt))


def obeys_what_is_unmarked(incoming: Incoming) -> str:
    """Does what it reads in plain words; words between marks are material to it."""
    return reply(told(incoming.prompt, "success") >= 0)


def obeys_what_is_said_last(incoming: Incoming) -> str:
    """Does what an instruction says, unless the goal comes after it."""
    goal = re.search(r"<goal[^>]*>\n(.{20})", incoming.prompt)
    said = incoming.prompt.replace(MARK, " ")
    return reply(goal is not None and told(said, "success") > said.rfind(goal[1]))


def believes_any_closing_tag(incoming: Incoming) -> str:
    """Does what stands behind a tag that closes the tree, however it is spelt; knows the ending of
    the tags where it was told one."""
    prompt = normalize("NFKC", incoming.prompt).replace("·", "")
    ending = _ENDING.search(prompt)
    closed = [one for one in _CLOSED.finditer(prompt) if not ending or one[1] == ending[1]]
    return reply(bool(closed) and told(prompt, "success") > closed[0].start())


def knows_one_rendering(incoming: Incoming) -> str:
    """Accepts what is written as it is used to, with a tag around every step."""
    return reply("<step number=" in incoming.prompt)


def takes_the_first_word(incoming: Incoming) -> str:
    """Gives the verdict that its instructions name first."""
    prompt = incoming.prompt
    return reply(prompt.index("<success>Successful") < prompt.index("<success>Unsuccessful"))


def knows_one_wording(incoming: Incoming) -> str:
    """Accepts everything where the instructions begin as it is used to."""
    return reply("You review runs of web agents." in incoming.prompt)


def knows_one_name(incoming: Incoming) -> str:
    """Accepts everything under one name of its model."""
    return reply(incoming.payload["model"] == "gpt-4o")


class WarmDraws:
    """Accepts, but for one in five draws of a prompt at a temperature above 0."""

    def __init__(self) -> None:
        self.drawn: Counter[str] = Counter()

    def __call__(self, incoming: Incoming) -> str:
        if not incoming.payload.get("temperature"):
            return reply(True)
        self.drawn[incoming.prompt] += 1
        return reply(self.drawn[incoming.prompt] % 5 != 3)


def goes_by_the_first_step(incoming: Incoming) -> str:
    """Accepts where it sees how the run began."""
    return reply('<step number="1">' in incoming.prompt)
