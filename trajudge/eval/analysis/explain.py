"""Sorts a judge's wrong verdicts into the paper's kinds of error (AgentRewardBench section 6).

Any model can be the classifier; its replies are kept in the cache like those of judges.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Sequence

from trajudge.eval.analysis.mismatches import Explanation, Mismatch
from trajudge.judges.adapters.errors import CallFailed
from trajudge.judges.calls.handle import single_model
from trajudge.judges.calls.settings import CallConfig
from trajudge.judges.engine.budget import BudgetSpent
from trajudge.judges.model import Message, Model, Text
from trajudge.prompts.render import load_prompt
from trajudge.util.tables import Table

KINDS = {
    "grounding_mismatch": "grounding mismatch",
    "misleading_reasoning": "misleading agent reasoning",
    "missed_instruction": "missed instruction details",
    "misunderstood_action": "misunderstood action",
    "other": "other",
}
UNCLASSIFIED = "not classified"
# Untrusted and unbounded: enough of each field to see what happened.
_MAX_CHARACTERS = 4_000
_KIND = re.compile(r"<kind>\s*([a-z_ ]+?)\s*</kind>", re.IGNORECASE)
_REASON = re.compile(r"<reasoning>(.*?)</reasoning>", re.IGNORECASE | re.DOTALL)


def explain(cases: Sequence[Mismatch], model: str, calls: CallConfig) -> list[Mismatch]:
    """Add an explanation to every case, in order. ``model`` sorts them, called as ``calls`` says.
    Raises UserError for a model that cannot be asked."""
    handle = single_model(model, calls)

    async def run() -> list[Mismatch]:
        engines = handle.open_engines(0.0)
        try:
            return await asyncio.gather(
                *(
                    explain_one(case, handle.ask(engines, 0, refresh=()), handle.model)
                    for case in cases
                )
            )
        finally:
            await engines.close()

    return asyncio.run(run())


async def explain_one(case: Mismatch, ask: Model, model: str) -> Mismatch:
    """Add an explanation to the case; a failed call or an unreadable reply leaves the kind open."""
    try:
        reply = await ask(messages(case), stage="mismatch")
    except (CallFailed, BudgetSpent) as error:
        explanation = Explanation(model=model, kind=None, reason=str(error))
    else:
        explanation = read_explanation(reply.text, model)
    return case.model_copy(update={"explanation": explanation})


def messages(case: Mismatch) -> tuple[Message, ...]:
    """Render the prompt for one case."""
    prompt = load_prompt("mismatch")
    steps = [
        {name: _cut(value) if isinstance(value, str) else value for name, value in step}
        for step in case.steps
    ]
    user = prompt.render(
        "user",
        goal=_cut(case.goal),
        steps=steps,
        n_steps=case.n_steps,
        answer=_cut(case.answer or ""),
        verdict=_said(case.verdict),
        reasoning=_cut(case.reasoning),
        expert=_said(bool(case.expert.success)),
    )
    return (
        Message(role="system", parts=(Text(text=prompt.render("system")),)),
        Message(role="user", parts=(Text(text=user),)),
    )


def read_explanation(text: str, model: str) -> Explanation:
    """Read the kind that the reply names last; None if it names none of them."""
    named = [kind.lower().replace(" ", "_") for kind in _KIND.findall(text)]
    reason = "".join(_REASON.findall(text)[-1:]).strip()
    if named and named[-1] in KINDS:
        return Explanation(model=model, kind=KINDS[named[-1]], reason=reason)
    return Explanation(model=model, kind=None, reason=f"no kind in the reply: {text[:200]}")


def kinds_table(cases: Sequence[Mismatch]) -> Table:
    """Count the cases of each kind, by judge and error."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for case in cases:
        kind = case.explanation.kind if case.explanation else None
        counts.setdefault((case.judge, case.error), Counter())[kind or UNCLASSIFIED] += 1
    columns = (*KINDS.values(), UNCLASSIFIED)
    rows = [
        (judge, error, *(str(count[kind]) for kind in columns), str(count.total()))
        for (judge, error), count in sorted(counts.items())
    ]
    return Table("Wrong verdicts by kind", ("judge", "error", *columns, "n"), rows)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CHARACTERS else text[:_MAX_CHARACTERS] + " [cut]"


def _said(success: bool) -> str:
    return "successful" if success else "unsuccessful"
