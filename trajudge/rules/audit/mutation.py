"""Mutation testing of a rule: does it reject near misses, and accept what differs in form only?

Correct runs are changed one thing at a time. A rule that accepts a near miss accepts falsely; one
that rejects a correct run, or an equivalent variant of it, rejects falsely.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from trajudge.rules.verdict import Evaluator, Outcome, shown

Expected = Literal["pass", "fail"]
ORIGINAL = "original"
# A list of a thousand items has a thousand ways to miss one.
MOST = 100


class MutationCase(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is known to be correct, and what is known of its task.

    ``ordered``: the order of a list in the answer matters; None if it does in some of its lists.
    ``ends_there``: the run must end on the right page, so that leaving it is a mistake.
    ``decisive`` are the indices of the network events that the task is about, from the end if
    negative.
    """

    name: str
    task: Any
    answer: Any
    trace: Any = None
    ordered: bool | None = False
    ends_there: bool = False
    decisive: tuple[int, ...] = (-1,)


class Variant(NamedTuple):
    """A changed run; ``part`` names what was changed where a mutator changes several things."""

    answer: Any
    trace: Any
    part: str = ""


class Mutator(Protocol):
    """Changes one thing: yields nothing where it does not apply."""

    def __call__(self, case: MutationCase) -> Iterator[Variant]:
        """Yield the variants of a run."""
        ...


class MutationSuite(NamedTuple):
    """What a mutation test is made of: correct runs, the rule, and the changes to the runs."""

    cases: Iterable[MutationCase]
    evaluator: Evaluator[Any, Any]
    near_misses: Mapping[str, Mutator]
    equivalent: Mapping[str, Mutator]


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """How often a rule was wrong about variants of one kind.

    ``trials`` are variants that it decided, ``undecided`` those it called unknown; ``low`` and
    ``high`` are Wilson's 95 % limits, the variants of one run as a cluster; None below two runs.
    """

    mutator: str
    expected: Expected
    wrong: int
    trials: int
    undecided: int
    low: float | None
    high: float | None

    @property
    def share(self) -> float | None:
        """Wrong among decided."""
        return self.wrong / self.trials if self.trials else None


class Misjudgment(msgspec.Struct, frozen=True, kw_only=True):
    """One variant that the rule was wrong about; a long answer is cut."""

    case: str
    mutator: str
    expected: Expected
    answer: Any


class MutationReport(msgspec.Struct, frozen=True, kw_only=True):
    """The false accepts among near misses, the false rejects among correct runs and variants.

    ``mutators`` has the same by mutator, the unchanged runs as ``original``.
    """

    false_accepts: Rate
    false_rejects: Rate
    mutators: tuple[Rate, ...]
    mistakes: tuple[Misjudgment, ...]


class _Trial(NamedTuple):
    mutator: str
    expected: Expected
    outcome: Outcome
    case: str
    answer: Any

    @property
    def wrong(self) -> bool:
        return self.outcome is not Outcome.UNKNOWN and self.outcome.value != self.expected


def mutation_report(
    cases: Iterable[MutationCase],
    evaluator: Evaluator[Any, Any],
    near_misses: Mapping[str, Mutator],
    equivalent: Mapping[str, Mutator],
    *,
    passing_only: bool = False,
    progress: Callable[[int], None] = lambda done: None,
) -> MutationReport:
    """Judge every run and its variants.

    Near misses of a run that the rule does not accept are left out: they would say nothing of
    the change. A variant that equals its run is left out too, and so is what a mutator yields
    after its first ``MOST`` variants of a run. With ``passing_only`` a run that the rule does not
    accept is left out altogether. ``progress`` takes how many runs are done.
    """
    trials: list[_Trial] = []
    for done, case in enumerate(cases, start=1):
        made = list(_trials(case, evaluator, near_misses, equivalent))
        if not passing_only or made[0].outcome is Outcome.PASS:
            trials += made
        progress(done)
    names = dict.fromkeys((trial.mutator, trial.expected) for trial in trials)
    return MutationReport(
        false_accepts=_rate("all near misses", "fail", trials),
        false_rejects=_rate("all correct runs", "pass", trials),
        mutators=tuple(
            _rate(name, expected, [trial for trial in trials if trial.mutator == name])
            for name, expected in names
        ),
        mistakes=tuple(
            Misjudgment(
                case=trial.case,
                mutator=trial.mutator,
                expected=trial.expected,
                answer=shown(trial.answer),
            )
            for trial in trials
            if trial.wrong
        ),
    )


def _trials(
    case: MutationCase,
    evaluator: Evaluator[Any, Any],
    near_misses: Mapping[str, Mutator],
    equivalent: Mapping[str, Mutator],
) -> Iterator[_Trial]:
    def trial(name: str, expected: Expected, variant: Variant) -> _Trial:
        outcome = evaluator.evaluate(case.task, variant.answer, variant.trace).outcome
        return _Trial(name, expected, outcome, case.name, variant.answer)

    original = trial(ORIGINAL, "pass", Variant(case.answer, case.trace))
    yield original
    for name, variant in _variants(case, equivalent):
        yield trial(name, "pass", variant)
    if original.outcome is Outcome.PASS:
        for name, variant in _variants(case, near_misses):
            yield trial(name, "fail", variant)


def _variants(case: MutationCase, mutators: Mapping[str, Mutator]) -> Iterator[tuple[str, Variant]]:
    for name, mutator in mutators.items():
        for variant in itertools.islice(mutator(case), MOST):
            if not _same(variant, case):
                yield f"{name}: {variant.part}" if variant.part else name, variant


def _same(variant: Variant, case: MutationCase) -> bool:
    return variant.trace == case.trace and _identical(variant.answer, case.answer)


def _identical(one: Any, other: Any) -> bool:
    """Equal, and of equal types and key order: 1, 1.0 and True may differ to a rule."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(_identical(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_identical, one, other))
    return bool(one == other)


def _rate(mutator: str, expected: Expected, trials: Sequence[_Trial]) -> Rate:
    from trajudge.eval.stats.intervals.clustered_rates import clustered_limits  # noqa: PLC0415 - slow to import

    ours = [trial for trial in trials if trial.expected == expected]
    decided = [trial for trial in ours if trial.outcome is not Outcome.UNKNOWN]
    wrong = [trial.wrong for trial in decided]
    low, high = clustered_limits(wrong, [trial.case for trial in decided])
    return Rate(
        mutator=mutator,
        expected=expected,
        wrong=sum(wrong),
        trials=len(decided),
        undecided=len(ours) - len(decided),
        low=low,
        high=high,
    )
