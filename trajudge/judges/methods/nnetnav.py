"""NNetNav's reward model (AgentRewardBench section 4): the change between every two observations,
described one by one, then a reward of 1 to 5."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from trajudge.judges.answers import AnswerForm, AnswerOptions, GradeAnswer
from trajudge.judges.model import Message, Model, Text, Verdict
from trajudge.judges.prompting import (
    AuxiliaryModel,
    TruncatedPrompt,
    ask_about_steps,
    ask_with_truncation,
    check_trees,
    conversation,
    cut_or_full,
    prompt_tokens,
    template_variables,
    two_trees,
)
from trajudge.judges.registry import register_judge
from trajudge.judges.replies import (
    error_context,
    gather_bounded,
    nonempty_text,
    parse_complete_reply,
    parse_reply,
)
from trajudge.prompts.render import load_prompt
from trajudge.trajectories.model import Step, Trajectory
from trajudge.trajectories.needs import ALL, Needs
from trajudge.trajectories.truncate import TruncatedView, TruncationLevel, cut_middle

SUCCESS = 4
REWARD = GradeAnswer("thoughts", "reward", 1, 5)
# Of the reward, as AgentRewardBench derives it.
OPTIMALITY = {1: 1, 2: 1, 3: 2, 4: 3, 5: 4}
ACTION_TOKENS = 400
ASSUMED_CHANGE = "The page of results opened and shows twelve products; the filter was set. " * 3


class NnetnavOptions(AnswerOptions):
    """``describer`` reads the trees; ``max_prompt_tokens`` is the judge's own model's."""

    describer: AuxiliaryModel = AuxiliaryModel()
    max_prompt_tokens: int = 120_000

    @property
    def needs(self) -> Needs:
        return Needs(trees=ALL, answer=True, requires=("every tree",))


@register_judge(
    "nnetnav",
    NnetnavOptions,
    summary="every change of the tree described, a reward of 1 to 5 (NNetNav)",
    id_options=("describer",),
    representations=("axtree",),
)
class Nnetnav:
    """A call for every change, all at once, and one for the reward."""

    def __init__(self, options: NnetnavOptions) -> None:
        self._options = options
        self._prompt = load_prompt("nnetnav")
        self._describe = self._prompt.render("describe")
        self._system = self._prompt.render("system", answer=options.form)
        self.prompt_hash = self._prompt.hash

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Judge the trajectory. Raises MissingObservation, CallFailed and ParseFailure."""
        check_trees(trajectory)
        changes = await gather_bounded(
            [
                partial(self._change, ask, number, *pair)
                for number, pair in enumerate(pairwise(trajectory.steps), start=1)
            ]
        )

        def messages(view: TruncatedView) -> list[Message]:
            text = self._prompt.render("user", **template_variables(view))
            return conversation(self._system, [Text(text=text)])

        limit, form = self._options.max_prompt_tokens, self._options.answer_format(REWARD.schema)
        described = _described(trajectory, changes)
        reply = await ask_about_steps(ask, described, messages, limit=limit, **form)
        return parse_reply(reply, partial(parse_reward, form=self._options.form))

    async def _change(self, ask: Model, number: int, before: Step, after: Step) -> str:
        action = before.action and cut_middle(before.action, ACTION_TOKENS)

        def messages(first: str, second: str) -> list[Message]:
            text = self._prompt.render("describe_user", before=first, action=action, after=second)
            return conversation(self._describe, [Text(text=text)])

        around = prompt_tokens(messages("", ""))

        def make(budget: int) -> TruncatedPrompt | None:
            pair = two_trees(before.observation, after.observation, budget - around)
            if pair is None:
                return None
            rung = pair.rung.label
            if pair.rung is TruncationLevel.FULL:
                rung = cut_or_full(before.action, action)
            return TruncatedPrompt(rung, messages(pair.before, pair.after))

        model, limit = self._options.describer.model, self._options.describer.max_prompt_tokens
        with error_context(f"change of step {number}"):
            reply = await ask_with_truncation(
                ask, make, limit=limit, stage="describe", model=model, assume=ASSUMED_CHANGE
            )
            return parse_complete_reply(reply, nonempty_text)


def parse_reward(text: str, form: AnswerForm = "text") -> Verdict:
    """Parse the verdict in ``Reward: 4``. Raises ParseFailure if there is none, or one that cannot
    be read."""
    reward, thoughts = REWARD.parse(text, form)
    return Verdict(
        success=reward >= SUCCESS,
        score=(reward - 1) / 4,
        optimality=OPTIMALITY.get(int(reward)) if reward == int(reward) else None,
        reasoning=thoughts,
    )


def _described(trajectory: Trajectory, changes: Sequence[str]) -> Trajectory:
    """Return the same run with descriptions of changes for its steps."""
    steps = tuple(Step(index=index, reasoning=change) for index, change in enumerate(changes))
    return trajectory.model_copy(update={"steps": steps})
