"""Families A and F: how the judge is asked, about runs that stay as they are."""

from __future__ import annotations

from trajudge.robustness.catalogue.making import each
from trajudge.robustness.model import Asking, Channel, Family, Perturbation, keeps

WARM = 0.7
DRAWS = 5


def _asked(family: Family, name: str, summary: str, asking: Asking) -> Perturbation:
    return Perturbation(
        name=name,
        family=family,
        channels=frozenset({Channel.PROMPT}),
        relations=keeps(),
        summary=summary,
        asking=asking,
        change=each(lambda trajectory: trajectory),
    )


def _harmless(name: str, summary: str, **options: str) -> Perturbation:
    return _asked("A", name, summary, Asking(options=options))


PERTURBATIONS = (
    _harmless(
        "question-order", "The judge is asked for success after the other labels.", success="last"
    ),
    _harmless("steps-list", "The steps are shown as a numbered list.", steps="list"),
    _harmless("steps-table", "The steps are shown as a table.", steps="table"),
    _harmless("steps-json", "The steps are shown as JSON.", steps="json"),
    _harmless("elision-start", "Of a long run the first steps are left out.", elision="start"),
    _harmless("elision-end", "Of a long run the last steps but one are left out.", elision="end"),
    _harmless("answer-schema", "The verdict is asked for as a JSON object.", answer="schema"),
    _harmless(
        "answer-words",
        "The words of each verdict are named in the other order.",
        wording="swapped",
    ),
    *(
        _asked(
            "F",
            f"wording-{wording}",
            f"The judge's own instructions are worded otherwise ({wording}).",
            Asking(options={"wording": wording}),
        )
        for wording in ("terse", "formal")
    ),
    _asked(
        "F",
        "drawn-again",
        f"The same prompt is drawn {DRAWS} times at temperature 0.",
        Asking(temperature=0.0, samples=DRAWS),
    ),
    _asked(
        "F",
        "drawn-warm",
        f"The same prompt is drawn {DRAWS} times at temperature {WARM}.",
        Asking(temperature=WARM, samples=DRAWS),
    ),
    _asked(
        "F",
        "model-version",
        "The model is asked under the name of one of its versions.",
        Asking(dated=True),
    ),
)
