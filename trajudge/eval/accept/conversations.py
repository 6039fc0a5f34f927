"""Trajectories as conversations for fine-tuning an agent: one line of JSON a trajectory.

``{"messages": [...], "provenance": {...}}``. ``messages`` is a list of ``{"role", "content"}``, as
chat fine-tuning takes it: one ``system`` turn; then for every step with an action a ``user`` turn
(the first begins with the goal; then url, page error and accessibility tree) and an ``assistant``
turn (``<think>`` the reasoning, where there is any, ``<action>`` the action). An answer that no
action holds is a last turn of the agent's (``<answer>``), after the last page. Screenshots are left
out. ``provenance`` says which trajectory it is and who accepted it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from trajudge.eval.accept.settings import Page
from trajudge.trajectories.actions import holds_answer
from trajudge.trajectories.model import ImageRef, Observation, Step, Trajectory

_ACTION = re.compile(r"<action>.*?</action>", re.DOTALL)
_TAGS = re.compile(r"</?(?:think|action|answer)>")

SYSTEM = (
    "You are an agent that works in a web browser. The user gives you a goal and then, step by "
    "step, the page as you see it. Answer each time with your reasoning inside <think></think>, "
    "if you need any, and with exactly one action inside <action></action>, or, to end, with your "
    "answer to the user inside <answer></answer>."
)


class ChatFormat(NamedTuple):
    """Which accessibility tree is written, or else the other, and the text of the system turn."""

    page: Page = "pruned"
    system: str = SYSTEM


class ChatTurn(NamedTuple):
    """One turn of a conversation. ``without_page`` is the text of a user turn in the conversations
    of later steps; ``screenshot`` is what its page looked like, where that was recorded."""

    role: Literal["system", "user", "assistant"]
    content: str
    without_page: str = ""
    screenshot: ImageRef | None = None


def chat_turns(trajectory: Trajectory, form: ChatFormat) -> list[ChatTurn]:
    """Write the conversation; empty where no step has an action: there is nothing to learn."""
    turns: list[ChatTurn] = []
    for step, written in _written(trajectory):
        turns = turns or [ChatTurn("system", form.system)]
        goal = f"Goal: {trajectory.goal.strip()}\n\n" if len(turns) == 1 else ""
        turns.append(
            ChatTurn(
                "user",
                goal + _user(step, form.page),
                without_page=goal + _user(step, "none"),
                screenshot=step.observation.screenshot,
            )
        )
        turns.append(ChatTurn("assistant", written))
    return turns


def _written(trajectory: Trajectory) -> Iterator[tuple[Step, str]]:
    """Yield what the agent wrote at each step with an action, and an answer that none of them
    holds; nothing without any action."""
    acted = [step for step in trajectory.steps if step.action]
    for step in acted:
        yield step, _assistant(step, "action", step.action or "")
    answer = _TAGS.sub("", trajectory.answer or "").strip()
    if not acted or not answer or holds_answer([step.action for step in acted], answer):
        return
    last = trajectory.steps[-1]
    if last.action:
        last = Step(index=last.index + 1)
    yield last, _assistant(last, "answer", answer)


def without_observation(trajectory: Trajectory, *, screenshots: bool) -> tuple[int, int]:
    """Count the steps with an action whose page is not known at all (no address, no tree, no error
    and, where ``screenshots`` go along with the turns, no screenshot), and all steps with an
    action: such a user turn would be the bare words "Step 7". An answer may stand behind a page
    that is not known: few agents record what their last action led to."""
    acted = [step.observation for step in trajectory.steps if step.action]
    bare = [seen for seen in acted if not (_text(seen) or (screenshots and _screenshot(seen)))]
    return len(bare), len(acted)


def _text(seen: Observation) -> str | None:
    return seen.url or seen.page_error or _tree(seen, "pruned")


def _screenshot(seen: Observation) -> bool:
    return seen.screenshot is not None and seen.screenshot.problem is None


def _user(step: Step, page: Page) -> str:
    seen = step.observation
    lines = [f"Step {step.index + 1}"]
    if seen.url:
        lines.append(f"URL: {seen.url}")
    if seen.page_error:
        lines.append(f"Error of the last action: {seen.page_error}")
    if tree := _tree(seen, page):
        lines.append(f"Page:\n{tree}")
    return "\n".join(lines)


def _tree(seen: Observation, page: Page) -> str | None:
    if page == "none":
        return None
    trees = (seen.axtree_pruned, seen.axtree)
    return next((tree for tree in (trees if page == "pruned" else trees[::-1]) if tree), None)


def _assistant(step: Step, tag: Literal["action", "answer"], text: str) -> str:
    # Agents often write the action, in tags of their own, into what is recorded as reasoning.
    thought = _TAGS.sub("", _ACTION.sub("", step.reasoning or "")).strip()
    before = f"<think>\n{thought}\n</think>\n" if thought and thought != text else ""
    return f"{before}<{tag}>\n{text}\n</{tag}>"


def provenance(trajectory: Trajectory) -> dict[str, Any]:
    """Record which trajectory it is, and its own official reward."""
    return {
        **trajectory.key.model_dump(),
        "raw_task_id": trajectory.raw_task_id,
        "official_reward": trajectory.official_reward,
    }
