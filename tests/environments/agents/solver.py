"""A model that knows the plan and reads the page from its prompt: it answers as a model would."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from tests.llm_replies import Incoming
from trajudge.environments.apps import load_app
from trajudge.environments.chromium.action_syntax import write
from trajudge.environments.kit.theme import name_of, theme, wordings
from trajudge.environments.model.axes import instance, open_state
from trajudge.environments.model.binding import bind
from trajudge.environments.model.case import Case
from trajudge.environments.model.plan import PlanStep

ROLES = {
    "follow": ("link",),
    "press": ("button",),
    "enter": ("textbox", "searchbox", "spinbutton"),
}


def solving(case: Case, answer: str, *, reloads: bool = False) -> Callable[[Incoming], str]:
    """Replies that follow the oracle's plan, then say ``answer``; with ``reloads`` a page that is
    an error of the server's is loaded again."""
    app = load_app(case.config.app)
    scenario = app.scenario(case.config.scenario)
    state = open_state(app, case.config)
    places = instance(app.id, scenario.id, tuple(scenario.slots), case.config.instance, 0)
    moves = scenario.plan(bind(scenario, places, state))
    state.close()
    words = wordings(app, theme(case.config.theme, case.config.seed))

    def reply(incoming: Incoming) -> str:
        page = incoming.prompt.rpartition("<page>")[2]
        failed = re.search(r"^Address: (\S+)\nTitle: 50[0-9] ", page, re.MULTILINE)
        if reloads and failed:
            return _written("The page is an error.", write("goto", failed[1]))
        at = len(re.findall(r"^Action: (?!goto)", incoming.prompt, re.MULTILINE))
        return _reply(moves, at, incoming.prompt, words, answer)

    return reply


def _reply(
    moves: Sequence[PlanStep], at: int, prompt: str, words: Mapping[str, str], answer: str
) -> str:
    if at >= len(moves):
        action = write("send_msg_to_user", answer)
    else:
        move = moves[at]
        name = name_of(move.label, words)
        roles = "|".join(ROLES[move.do])
        page = prompt.rpartition("<page>")[2]
        found = re.search(rf"\[(\w+)\] (?:{roles}) {re.escape(repr(name))}", page)
        assert found, f"{name} is not in the prompt:\n{page}"
        text = (str(move.text),) if move.do == "enter" else ()
        action = write("fill" if text else "click", found[1], *text)
    return _written(f"The plan says so (step {at}).", action)


def _written(reasoning: str, action: str) -> str:
    return f"<reasoning>{reasoning}</reasoning>\n<action>{action}</action>"
