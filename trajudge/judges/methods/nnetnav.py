"""NNetNav's reward model (AgentRewardBench section 4): the change between every two observations,
described one by one, then a reward of 1 to 5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from trajudge.judges.adapters.errors import ContextOverflow
from trajudge.judges.answers import (
    AgentRewardBenchOptions,
    AnswerForm,
    GradeAnswer,
    SourcedAnswerOptions,
)
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
    step_texts,
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
    text_as_it_came,
)
from trajudge.prompts.published import CHANGES, left_out
from trajudge.prompts.render import load_prompt
from trajudge.trajectories.model import Step, Trajectory
from trajudge.trajectories.needs import ALL, Needs
from trajudge.trajectories.truncate import TruncatedView, TruncationLevel, cut_middle

SUCCESS = 4
REWARD = GradeAnswer("thoughts", "reward", 1, 5)
# Of the reward, as AgentRewardBench derives it.
OPTIMALITY = {1: 1, 2: 1, 3: 2, 4: 3, 5: 4}
ACTION_TOKENS = 400
LEFT_OUT = "changes_left_out"
"""The score of a verdict in the source's ladder that counts the changes which it leaves out."""
ASSUMED_CHANGE = "The page of results opened and shows twelve products; the filter was set. " * 3


class NnetnavOptions(AgentRewardBenchOptions, SourcedAnswerOptions):
    """``describer`` reads the trees; ``max_prompt_tokens`` is the judge's own model's."""

    describer: AuxiliaryModel = AuxiliaryModel()
    max_prompt_tokens: int = 120_000

    @property
    def needs(self) -> Needs:
        """The published prompts do not show the answer."""
        return Needs(trees=ALL, answer=not self.is_published, requires=("every tree",))


class _OwnForm:
    """``prompts/nnetnav``: a change is described with the action that brought it about."""

    limits: Mapping[str, Any] = {}
    described = staticmethod(nonempty_text)

    def __init__(self, options: NnetnavOptions) -> None:
        self._prompt = load_prompt("nnetnav")
        self.hash, self.text_hash = self._prompt.hash, ""
        self.system = self._prompt.render("system", answer=options.form)
        self.describe_system = self._prompt.render("describe")

    def action(self, before: Step, after: Step) -> str | None:
        """Return the action that a change is described with."""
        return before.action and cut_middle(before.action, ACTION_TOKENS)

    def describe_user(self, first: str | None, action: str | None, second: str | None) -> str:
        """Render the question for a change between two trees."""
        return self._prompt.render("describe_user", before=first, action=action, after=second)

    def user(self, view: TruncatedView) -> str:
        """Render the question for the reward, the changes in place of steps."""
        return self._prompt.render("user", **template_variables(view))


class _SourceForm:
    """AgentRewardBench's own words, with the methods of an ``_OwnForm``: a change is described with
    the action of the step after it."""

    limits: Mapping[str, Any] = {"max_tokens": 2048}
    described = staticmethod(text_as_it_came)

    def __init__(self, options: NnetnavOptions) -> None:
        self.texts = texts = options.texts("nnetnav")
        self.hash, self.text_hash = texts.hash, texts.text_hash
        self.system = texts.fill("system")
        self.describe_system = texts.fill("describe_system", action_str=texts.fill("actions"))

    def action(self, before: Step, after: Step) -> str | None:
        return after.action

    def describe_user(self, first: str | None, action: str | None, second: str | None) -> str:
        values = {"prev_axtree": first, "curr_axtree": second, "action": action}
        return self.texts.write("describe_user", **values)

    def user(self, view: TruncatedView) -> str:
        changes = [self.texts.shown(step.reasoning or "") for step in view.steps]
        if view.elided:
            changes.insert(view.head, left_out(view.elided))
        goal = self.texts.shown(view.goal)
        return self.texts.fill("user", goal=goal, descriptions="\n".join(changes))


@register_judge(
    "nnetnav",
    NnetnavOptions,
    summary="every change of the tree described, a reward of 1 to 5 (NNetNav)",
    id_options=("describer", "prompts", "untrusted", "ladder"),
    representations=("axtree",),
    answer_option="prompts=trajudge",
)
class Nnetnav:
    """A call for every change, all at once, and one for the reward."""

    def __init__(self, options: NnetnavOptions) -> None:
        """Load the prompts. Raises UserError if the published ones are asked for and not
        installed."""
        self._options = options
        self._form = _SourceForm(options) if options.is_published else _OwnForm(options)
        self.prompt_hash, self.text_hash = self._form.hash, self._form.text_hash

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Judge the trajectory. Raises MissingObservation, CallFailed and ParseFailure."""
        check_trees(trajectory)
        options, form = self._options, self._form
        works = [
            partial(self._change, ask, number, *pair)
            for number, pair in enumerate(pairwise(trajectory.steps), start=1)
        ]
        changes = [change for change in await gather_bounded(works) if change is not None]
        views: list[TruncatedView] = []

        def messages(view: TruncatedView) -> list[Message]:
            views.append(view)
            return conversation(form.system, [Text(text=form.user(view))])

        reply = await ask_about_steps(
            ask,
            _described(trajectory, changes),
            messages,
            limit=options.max_prompt_tokens,
            is_shortened=options.ladder == "trajudge",
            **options.answer_format(REWARD.schema),
        )
        verdict = parse_reply(reply, partial(parse_reward, form=options.form))
        if isinstance(form, _OwnForm):
            return verdict
        trees = (o for step in trajectory.steps for o in (step.observation.axtree, step.action))
        changed = form.texts.changes([views[-1].goal, *step_texts(views[-1]), *trees])
        scores = {CHANGES: float(changed), LEFT_OUT: float(len(works) - len(changes))}
        return verdict.model_copy(update={"scores": scores})

    async def _change(self, ask: Model, number: int, before: Step, after: Step) -> str | None:
        """Ask for the description of a change; None where the source leaves it out, since neither
        the full nor the pruned trees fit."""
        form, is_shortened = self._form, self._options.ladder == "trajudge"
        action = form.action(before, after)

        def messages(first: str | None, second: str | None) -> list[Message]:
            text = form.describe_user(first, action, second)
            return conversation(form.describe_system, [Text(text=text)])

        around = prompt_tokens(messages("", ""))
        rungs = iter(["full", "pruned"])

        async def make(budget: int) -> TruncatedPrompt | None:
            if not is_shortened:
                rung = next(rungs, None)
                pages = (before.observation, after.observation)
                trees = [page.axtree or page.axtree_pruned for page in pages]
                if rung == "pruned":
                    trees = [page.axtree_pruned or page.axtree for page in pages]
                return TruncatedPrompt(rung, messages(*trees)) if rung else None
            pair = two_trees(before.observation, after.observation, budget - around)
            if pair is None:
                return None
            rung = pair.rung.label
            if pair.rung is TruncationLevel.FULL and isinstance(form, _OwnForm):
                rung = cut_or_full(before.action, action)
            return TruncatedPrompt(rung, messages(pair.before, pair.after))

        model, limit = self._options.describer.model, self._options.describer.max_prompt_tokens
        with error_context(f"change of step {number}"):
            try:
                reply = await ask_with_truncation(
                    ask,
                    make,
                    limit=limit,
                    stage="describe",
                    model=model,
                    assume=ASSUMED_CHANGE,
                    **form.limits,
                )
            except ContextOverflow:
                if is_shortened:
                    raise
                return None
            return parse_complete_reply(reply, form.described)


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
