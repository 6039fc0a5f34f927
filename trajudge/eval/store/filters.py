"""Judgments beside what is known of their trajectories, and the filters, sorting and pages over
them: what the application's tables and ``label build --filter`` read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trajudge.annotations import open_annotations, store
from trajudge.annotations.model import Label, Labels, primary_labels
from trajudge.eval.sources import Source, judge_names
from trajudge.eval.store.labels import SPLITS, LabelColumns, RewardColumns, RunLabels
from trajudge.eval.store.manifest import configuration_of
from trajudge.eval.store.run_folder import (
    CALLS,
    JUDGMENTS,
    LABELS,
    REWARDS,
    read_labels,
    read_manifest,
    read_rewards,
)
from trajudge.eval.store.table import (
    STATUSES,
    UNKNOWN,
    VERDICTS,
    Codes,
    JudgmentTable,
    KeyColumns,
    TextColumn,
    concatenate,
    distinct,
    places_among,
    read_run_judgments,
    searchable,
)
from trajudge.judges.model import USAGE_FIELDS
from trajudge.stats.intervals import Bools, Floats, Ints, defined
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.trajectories.needs import Needs
from trajudge.util.errors import UserError, did_you_mean

UNSURE = -2
"""An expert's label that leaves success open; UNKNOWN: there is no label."""


class Described(NamedTuple):
    """A trajectory's goal and answer, and the number of its steps, nan where it is not known."""

    goal: str
    answer: str
    steps: float


_NOTHING = Described("", "", np.nan)


def read_descriptions(
    specs: Iterable[str], keys: Collection[TrajectoryKey]
) -> dict[TrajectoryKey, Described]:
    """Read goal, answer and steps of those of ``keys`` that the data hold. Raises UserError for
    data that do not open."""
    wanted, found = set(keys), dict[TrajectoryKey, Described]()
    for spec in specs:
        for one in open_source(spec, wanted.__contains__, Needs(answer=True)):
            if isinstance(one, Trajectory) and one.key in wanted:
                found.setdefault(one.key, Described(one.goal, one.answer or "", len(one.steps)))
    return found


@dataclass(frozen=True, eq=False)
class JudgmentView:
    """Judgments, (N,), of which ``trajectory`` indexes the distinct ``keys``, (T,), in their order.

    ``expert`` is 1, 0, UNSURE or UNKNOWN, and ``rule``, what the official ``reward`` stands for, 1,
    0 or UNKNOWN, (T,); ``split`` indexes SPLITS; ``inclusion`` is the probability with which the
    label was drawn, and ``steps`` the length, nan where they are not known, (T,). ``texts`` hold
    what the judges reasoned, ``described_texts`` goals and answers. ``others`` are the annotations
    that ``labels`` do not hold. ``peers`` are the evaluators of other runs, too, that say yes and
    that say no, (2, T); None: those of these judgments alone.
    """

    judgments: JudgmentTable
    keys: KeyColumns
    trajectory: Codes
    expert: NDArray[np.int8]
    rule: NDArray[np.int8]
    reward: Floats
    split: NDArray[np.int8]
    inclusion: Floats
    steps: Floats
    texts: tuple[TextColumn, ...]
    described_texts: tuple[TextColumn, ...] = ()
    labels: Labels = field(default_factory=dict)
    others: Sequence[Label] = ()
    peers: NDArray[np.int64] | None = None

    def described(self, known: Mapping[TrajectoryKey, Described]) -> JudgmentView:
        """Add goals, answers and steps."""
        if not known:
            return self
        goals, answers = TextColumn(), TextColumn()
        each = [known.get(key, _NOTHING) for key in self.keys]
        goals.extend(one.goal for one in each)
        answers.extend(one.answer for one in each)
        steps = np.array([one.steps for one in each], dtype=float)
        return replace(self, described_texts=(goals, answers), steps=steps)

    @cached_property
    def success(self) -> NDArray[np.int8]:
        return self.judgments.verdict("success")

    @cached_property
    def cost(self) -> Floats:
        """Dollars of a judgment's calls, nan where the price of one is not known, (N,)."""
        return self._of_calls(self.judgments.calls.cost)

    @cached_property
    def seconds(self) -> Floats:
        """Seconds of a judgment's calls, nan where the ledger does not tell of them, (N,)."""
        seconds = self._of_calls(self.judgments.calls.seconds)
        return np.where(seconds > 0, seconds, np.nan)

    @cached_property
    def tokens(self) -> Floats:
        """Tokens that a judgment's calls are billed for, (N,)."""
        billed = [USAGE_FIELDS.index(name) for name in _BILLED]
        return self._of_calls(self.judgments.calls.usage[billed].sum(axis=0))

    def _of_calls(self, values: NDArray[Any]) -> Floats:
        size = len(self.judgments)
        sums = np.bincount(self.judgments.calls.judgment, weights=values, minlength=size)
        return sums.astype(float)  # of no call, which are whole numbers

    @cached_property
    def wrong(self) -> NDArray[np.int8]:
        """1: the judge accepts what the expert does not; 2: the other way round; else 0, (N,)."""
        expert = self.expert[self.trajectory]
        positive, negative = (
            (self.success == 1) & (expert == 0),
            (self.success == 0) & (expert == 1),
        )
        return np.asarray(positive + 2 * negative, dtype=np.int8)

    @cached_property
    def votes(self) -> NDArray[np.int64]:
        """Judges that say yes, that say no, and that failed, (3, T): each counts once, by the
        strict majority of its samples that answered."""
        judges = max(len(self.judgments.judges), 1)
        pair = self.trajectory.astype(np.int64) * judges + self.judgments.judge
        known, which = np.unique(pair, return_inverse=True)
        answered = self.judgments.ok() & (self.success != UNKNOWN)
        size = len(known)
        asked = np.bincount(which, weights=answered, minlength=size)
        said_yes = np.bincount(which, weights=answered & (self.success == 1), minlength=size)
        vote = np.where(asked == 0, 2, np.where(2 * said_yes > asked, 0, 1))
        counts = np.zeros((3, len(self.keys)), dtype=np.int64)
        np.add.at(counts, (vote, known // judges), 1)
        return counts

    @cached_property
    def evaluators(self) -> NDArray[np.int64]:
        """Judges, and the rule, that say yes and that say no, (2, T)."""
        if self.peers is not None:
            return self.peers
        rule = np.stack([self.rule == 1, self.rule == 0])
        return self.votes[:2] + (0 if _RULE in self.judgments.judges else rule)

    @cached_property
    def agreeing(self) -> Floats:
        """Evaluators that say what a judgment says, nan where it says nothing, (N,)."""
        same = self.evaluators[np.where(self.success == 1, 0, 1), self.trajectory]
        return np.where(self.success == UNKNOWN, np.nan, same)

    @cached_property
    def unstable(self) -> Bools:
        """Trajectories on which the samples of one judge disagree, (T,)."""
        judges = max(len(self.judgments.judges), 1)
        answered = self.judgments.ok() & (self.success != UNKNOWN)
        pair = (self.trajectory.astype(np.int64) * judges + self.judgments.judge)[answered]
        known, which = np.unique(pair, return_inverse=True)
        share = np.bincount(which, weights=self.success[answered]) / np.bincount(which)
        found = np.zeros(len(self.keys), dtype=bool)
        found[known[(share > 0) & (share < 1)] // judges] = True
        return found

    def of_trajectory(self, key: TrajectoryKey) -> Ints:
        """Return the rows of a trajectory's judgments."""
        place = int(places_among(KeyColumns.of([key]), self.keys)[0])
        return np.flatnonzero(self.trajectory == place)

    def opinions(self, key: TrajectoryKey) -> list[Label]:
        """Return what annotators say of a trajectory."""
        if self.others:
            return [one for one in self.others if one.key == key]
        label = self.labels.get(key)
        return [] if label is None else [label]

    def record(self, row: int) -> dict[str, Any]:
        """Return a judgment and what is known of its trajectory as values for people and programs;
        ``head`` is the beginning of its reasoning."""
        table, place = self.judgments, int(self.trajectory[row])
        judgment, key = table[row], self.keys.key(place)
        expert = int(self.expert[place])
        return {
            "place": row,
            **vars(key),
            "judge": judgment.judge,
            "sample": judgment.sample,
            "status": str(judgment.status),
            "score": judgment.score,
            "cost": defined(self.cost[row]),
            "tokens": int(self.tokens[row]),
            "seconds": defined(self.seconds[row]),
            "head": (judgment.reasoning or judgment.detail)[:HEAD],
            "success": judgment.success,
            "expert": "unsure" if expert == UNSURE else truth(expert),
            "rule": truth(self.rule[place]),
            "wrong": MISTAKES[self.wrong[row]],
        }


_RULE = "rule-based"  # the judge that gives the rule's verdict
_BILLED = ("input", "cache_read", "cache_write", "output")

HEAD = 160
"""Characters of the reasoning that a table shows."""

MISTAKES = ("", "false positive", "false negative")


def truth(code: int) -> bool | None:
    """Return a verdict's code as a value."""
    return bool(code) if code in (0, 1) else None


def read_view(folder: Path, annotations: str | None = None, longest: int = 50_000) -> JudgmentView:
    """Read all judgments of a run's folder, each line, with the run's labels or those of a
    specification; ``longest`` characters of a reasoning are looked through. Raises UserError."""
    texts = TextColumn(longest)
    judgments = read_run_judgments(folder / JUDGMENTS, folder / CALLS, texts)
    labels: Labels = {}
    others: Sequence[Label] = ()
    if annotations:
        others = open_annotations(annotations, judgments.keys)
        labels = primary_labels(others)
    elif (folder / LABELS).is_file():
        labels = read_labels(folder)
        if not isinstance(labels, RunLabels) or not labels.are_all:
            others = store.load(folder / LABELS)
    known = LabelColumns.of(labels)
    official = RewardColumns.of(read_rewards(folder) if (folder / REWARDS).is_file() else {})
    keys, trajectory = distinct(judgments.keys)
    at = places_among(known.keys, keys)
    success = known.verdicts[VERDICTS.index("success")]
    reward = _along(len(keys), places_among(official.keys, keys), official.reward, np.nan)
    return JudgmentView(
        judgments=judgments,
        keys=keys,
        trajectory=trajectory,
        expert=_along(len(keys), at, np.where(success == UNKNOWN, UNSURE, success), UNKNOWN),
        rule=np.where(np.isnan(reward), UNKNOWN, reward > _ACCEPTED).astype(np.int8),
        reward=reward,
        split=_along(len(keys), at, known.split, 0),
        inclusion=_along(len(keys), at, known.inclusion, np.nan),
        steps=np.full(len(keys), np.nan),
        texts=(texts,),
        labels=labels,
        others=others,
    )


_ACCEPTED = 0.5  # a larger official reward is a success


def _along(size: int, places: Ints, values: NDArray[Any], unknown: float) -> NDArray[Any]:
    """Put values at their places, -1 for none, among so many unknown ones."""
    column = np.full(size, unknown, dtype=values.dtype)
    column[places[places >= 0]] = values[places >= 0]
    return column


_FACTS = {"expert": UNKNOWN, "rule": UNKNOWN, "reward": np.nan, "split": 0, "inclusion": np.nan}


def combine_views(views: Mapping[str, JudgmentView], folders: Sequence[Path]) -> JudgmentView:
    """Combine the judgments of runs, by their names and ``folders``; of several labels of one
    trajectory the last counts, of several rewards the first. Judges are named as
    ``eval.sources.judge_names`` says."""
    configurations = [configuration_of(read_manifest(folder)) for folder in folders]
    sources = [
        Source(name, view.judgments, {}, configurations=dict.fromkeys(view.judgments.judges, each))
        for (name, view), each in zip(views.items(), configurations, strict=True)
    ]
    parts = [*views.values()]
    renamed = zip(parts, judge_names(sources), strict=True)
    judgments = concatenate([view.judgments.renamed(names) for view, names in renamed])
    keys, trajectory = distinct(judgments.keys)
    facts: dict[str, Any] = {}
    for name, unknown in _FACTS.items():
        column = np.full(len(keys), unknown, dtype=getattr(parts[0], name).dtype)
        for part in reversed(parts) if name in ("rule", "reward") else parts:
            values, at = getattr(part, name), places_among(part.keys, keys)
            known = ~np.isnan(values) & (values != unknown)
            column[at[known]] = values[known]
        facts[name] = column
    return JudgmentView(
        judgments=judgments,
        keys=keys,
        trajectory=trajectory,
        steps=np.full(len(keys), np.nan),
        texts=tuple(text for part in parts for text in part.texts),
        others=tuple(one for part in parts for one in part.others),
        **facts,
    )


class FilterError(ValueError):
    """A ``term`` that cannot be read; the message is one sentence for who wrote it."""

    def __init__(self, term: str, sentence: str) -> None:
        super().__init__(sentence)
        self.term = term


Test = Callable[[JudgmentView], Bools]
"""Which judgments, (N,), or trajectories, (T,), meet a condition."""

Column = Callable[[JudgmentView], NDArray[Any]]

Parse = Callable[[str, str], Test]
"""From an operator and a value to the condition. Raises FilterError."""


class FilterField(NamedTuple):
    """A field of judgments, or of their trajectories; ``example`` is shown in the help."""

    of_trajectory: bool
    parse: Parse
    example: str


_MOST_STARS = 4

_RANGE = re.compile(r"(?P<low>[^.]*(?:\.\d+)?)\.\.(?P<high>.*)")

_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    **{">": np.greater, "<": np.less, ">=": np.greater_equal, "<=": np.less_equal},
    ":": np.equal,
}


def _named(name: str, names: str, codes: str) -> Parse:
    """Make the field of the view's ``names`` that its ``codes`` index; a star stands for
    anything."""

    def parse(operator: str, value: str) -> Test:
        _only_colon(name, operator, value)
        if value.count("*") > _MOST_STARS:
            raise FilterError(value, f"{name}:{value}: at most {_MOST_STARS} stars are understood.")
        pattern = re.compile(".*".join(map(re.escape, value.split("*"))), re.DOTALL)
        return lambda view: _with_name(view, names, codes, pattern.fullmatch)

    return parse


def _with_name(view: JudgmentView, names: str, codes: str, fits: Callable[[str], object]) -> Bools:
    fitting = np.array([bool(fits(each)) for each in attrgetter(names)(view)], dtype=bool)
    return np.asarray(fitting[attrgetter(codes)(view)])


def _chosen(name: str, tests: Mapping[str, Test]) -> Parse:
    def parse(operator: str, value: str) -> Test:
        _only_colon(name, operator, value)
        if value.lower() not in tests:
            raise FilterError(
                value,
                f"{name}:{value}: use one of {', '.join(tests)}{did_you_mean(value, tests)}.",
            )
        return tests[value.lower()]

    return parse


def _number(name: str, column: Column | str) -> Parse:
    values: Column = attrgetter(column) if isinstance(column, str) else column

    def parse(operator: str, value: str) -> Test:
        ends = _RANGE.fullmatch(value) if operator == ":" else None
        if ends is None:
            compare, number = _COMPARE[operator], _read(name, value)
            return lambda view: np.asarray(compare(values(view), number))
        low, high = (_read(name, ends[end]) if ends[end] else None for end in ("low", "high"))
        if low is None and high is None:
            raise FilterError(value, f"{name}:{value}: name an end, as in {name}:0.4..0.6.")
        least, most = -math.inf if low is None else low, math.inf if high is None else high
        return lambda view: (values(view) >= least) & (values(view) <= most)

    return parse


def _read(name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise FilterError(value, f"{name}: {value!r} is not a number, as in {name}>0.5.")
    return number


def _only_colon(name: str, operator: str, value: str) -> None:
    if operator != ":":
        raise FilterError(value, f"{name} is not compared by size: write {name}:{value}.")


def _truth(name: str, column: str, **more: int) -> Parse:
    codes = {"yes": 1, "no": 0, "none": UNKNOWN, **more}
    return _chosen(name, {word: _is(column, code) for word, code in codes.items()})


def _is(column: str, code: int) -> Test:
    return lambda view: np.asarray(attrgetter(column)(view) == code)


_STATUS = {str(status): _is("judgments.status", code) for code, status in enumerate(STATUSES)}

_WRONG: dict[str, Test] = {
    **{"fp": _is("wrong", 1), "fn": _is("wrong", 2)},
    "any": lambda view: view.wrong > 0,
}

_SPLIT = {str(split): _is("split", code) for code, split in enumerate(SPLITS) if split}

_FLAGS: dict[str, Test] = {
    "elided": lambda view: view.judgments.rung > 0,
    "repaired": lambda view: view.judgments.repaired,
}

_NAMES = {
    "judge": ("judgments.judges", "judgments.judge"),
    "benchmark": ("keys.benchmarks", "keys.benchmark"),
    "agent": ("keys.agents", "keys.agent"),
    "task": ("keys.tasks", "keys.task"),
}


def _disagree(view: JudgmentView) -> NDArray[Any]:
    """Return how many judges are in the minority, (T,)."""
    return np.asarray(view.votes[:2].min(axis=0))


FIELDS: Mapping[str, FilterField] = {
    "judge": FilterField(False, _named("judge", *_NAMES["judge"]), "judge:simplified*"),
    "status": FilterField(False, _chosen("status", _STATUS), "status:refused"),
    "success": FilterField(False, _truth("success", "success"), "success:yes"),
    "expert": FilterField(True, _truth("expert", "expert", unsure=UNSURE), "expert:unsure"),
    "rule": FilterField(True, _truth("rule", "rule"), "rule:no"),
    "wrong": FilterField(False, _chosen("wrong", _WRONG), "wrong:fp"),
    "disagree": FilterField(True, _number("disagree", _disagree), "disagree>=2"),
    "score": FilterField(False, _number("score", "judgments.score"), "score:0.4..0.6"),
    "benchmark": FilterField(True, _named("benchmark", *_NAMES["benchmark"]), "benchmark:webarena"),
    "agent": FilterField(True, _named("agent", *_NAMES["agent"]), "agent:GenericAgent*"),
    "task": FilterField(True, _named("task", *_NAMES["task"]), "task:webarena.1*"),
    "steps": FilterField(True, _number("steps", "steps"), "steps>30"),
    "cost": FilterField(False, _number("cost", "cost"), "cost>0.05"),
    "tokens": FilterField(False, _number("tokens", "tokens"), "tokens>10000"),
    "seconds": FilterField(False, _number("seconds", "seconds"), "seconds>60"),
    "sample": FilterField(False, _number("sample", "judgments.sample"), "sample:0"),
    "split": FilterField(True, _chosen("split", _SPLIT), "split:test"),
    "flag": FilterField(False, _chosen("flag", _FLAGS), "flag:elided"),
}


def _free_text(view: JudgmentView, text: str) -> Bools:
    """Look for a text in names, reasoning, goals and answers, (N,)."""
    wanted = searchable(text)

    def found(name: str) -> Bools:
        return _with_name(view, *_NAMES[name], lambda each: wanted in searchable(each))

    of_trajectory = [found(name) for name in ("benchmark", "agent", "task")]
    of_trajectory += [column.rows_with(text) for column in view.described_texts]
    reasoning = np.concatenate([texts.rows_with(text) for texts in view.texts])
    return np.asarray(
        np.logical_or.reduce(of_trajectory)[view.trajectory] | found("judge") | reasoning
    )


MOST_TERMS = 40

LONGEST = 2_000

_TERM = re.compile(
    r"""(?P<not>-)?
    (?:(?P<field>[A-Za-z][\w-]*)(?P<op>:|>=|<=|>|<|=))?
    (?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^\s"]+))
    (?=\s|$)""",
    re.VERBOSE,
)

_OPEN = re.compile(r"[A-Za-z][\w-]*[:<>=]+")

_SPACE = re.compile(r"\s*")


@dataclass(frozen=True)
class FilterTerm:
    """``field`` "" is free text, whose ``operator`` is ":"."""

    field: str
    operator: str
    value: str
    negated: bool = False

    @property
    def of_trajectory(self) -> bool:
        """Whether it is about trajectories, not about single judgments."""
        return bool(self.field) and FIELDS[self.field].of_trajectory

    def test(self) -> Test:
        """Return the condition. Raises FilterError for a value that the field does not take."""
        text = self.value
        if self.field:
            test = FIELDS[self.field].parse(self.operator, self.value)
        else:
            test = lambda view: _free_text(view, text)  # noqa: E731 - of two
        # A condition on a value that is not known does not hold, and turned round it does.
        return (lambda view: ~test(view)) if self.negated else test

    def __str__(self) -> str:
        special = r"\s\"\\" if self.field else r"\s\"\\:<>="
        plain = re.fullmatch(f"[^{special}]+", self.value)
        escaped = self.value.replace("\\", "\\\\").replace('"', '\\"')
        value = self.value if plain and not self.value.startswith("-") else f'"{escaped}"'
        head = f"{self.field}{self.operator}" if self.field else ""
        return f"{'-' if self.negated else ''}{head}{value}"


@dataclass(frozen=True)
class Filter:
    """Terms that all have to hold; none: everything does. ``str`` is what ``parse_filter`` reads
    back as the same."""

    terms: tuple[FilterTerm, ...] = ()

    def judgments(self, view: JudgmentView) -> Bools:
        """Return which judgments meet all terms, (N,)."""
        kept = np.ones(len(view.judgments), dtype=bool)
        for term in self.terms:
            met = term.test()(view)
            kept &= met[view.trajectory] if term.of_trajectory else met
        return kept

    def trajectories(self, view: JudgmentView) -> Bools:
        """Return which trajectories meet all terms, (T,): what is said of judgments has to hold of
        one and the same judgment on it."""
        kept = np.zeros(len(view.keys), dtype=bool)
        kept[view.trajectory[self.judgments(view)]] = True
        return kept

    def __str__(self) -> str:
        return " ".join(map(str, self.terms))


def parse_filter(text: str) -> Filter:
    """Read a filter. Raises FilterError, whose message is a sentence for the person who wrote
    it."""
    if len(text) > LONGEST:
        raise FilterError("", f"A filter has at most {LONGEST:,} characters.")
    text = text.encode("utf-8", "replace").decode()
    terms: list[FilterTerm] = []
    at = _SPACE.match(text).end()  # type: ignore[union-attr]  # it matches nothing, too
    while at < len(text):
        match = _TERM.match(text, at)
        if match is None:
            rest = text[at:].split(maxsplit=1)[0]
            raise FilterError(rest, f"{rest}: a quotation mark or a value is missing.")
        terms.append(_term(match))
        terms[-1].test()
        at = _SPACE.match(text, match.end()).end()  # type: ignore[union-attr]
    if len(terms) > MOST_TERMS:
        raise FilterError("", f"A filter has at most {MOST_TERMS} terms.")
    return Filter(tuple(terms))


def _term(match: re.Match[str]) -> FilterTerm:
    quoted = match["quoted"]
    if not match["field"] and quoted is None and _OPEN.fullmatch(match["plain"]):
        raise FilterError(match[0], f"{match[0]}: a value is missing.")
    value = match["plain"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
    field, operator = match["field"] or "", match["op"] or ":"
    if field and field.lower() not in FIELDS:
        raise FilterError(
            match[0],
            f"{match[0]}: there is no field {field!r}{did_you_mean(field, FIELDS)}; fields are "
            f"{', '.join(FIELDS)}; put text with a colon into quotation marks.",
        )
    operator = ":" if operator == "=" else operator
    return FilterTerm(field.lower(), operator, value, bool(match["not"]))


PAGE = 50

"""Rows of a page, by default."""

MOST = 200

_STATUS_ORDER = np.argsort(np.argsort([str(status) for status in STATUSES]))


def _names_in_order(view: JudgmentView) -> NDArray[Any]:
    judges = view.judgments.judges
    return np.argsort(np.argsort(judges))[view.judgments.judge] if judges else view.judgments.judge


def _or_nan(codes: NDArray[Any]) -> Floats:
    return np.where(codes == UNKNOWN, np.nan, codes)


def _agreement(view: JudgmentView) -> Floats:
    """Return how many agree, and of as many how sure the judge is, an unknown score being least."""
    sure = np.where(view.success == 1, view.judgments.score, 1 - view.judgments.score)
    return np.asarray(view.agreeing + np.nan_to_num(sure) / 2)


SORTS: Mapping[str, Column] = {
    "place": lambda view: np.arange(len(view.judgments)),
    "task": lambda view: view.keys.task[view.trajectory],
    "benchmark": lambda view: view.keys.benchmark[view.trajectory],
    "agent": lambda view: view.keys.agent[view.trajectory],
    "judge": _names_in_order,
    "success": lambda view: _or_nan(view.success),
    "expert": lambda view: _or_nan(view.expert[view.trajectory]),
    "rule": lambda view: _or_nan(view.rule[view.trajectory]),
    "score": lambda view: view.judgments.score,
    "status": lambda view: _STATUS_ORDER[view.judgments.status],
    "cost": lambda view: view.cost,
    "tokens": lambda view: view.tokens,
    "seconds": lambda view: view.seconds,
    "agree": _agreement,
}

"""What a table may be sorted by; ``-`` before a name: falling. Unknown values come last."""


class Sorting(NamedTuple):
    """A name of SORTS, and whether it falls."""

    name: str = "place"
    falling: bool = False

    def __str__(self) -> str:
        return f"{'-' if self.falling else ''}{self.name}"


def parse_sorting(text: str) -> Sorting:
    """Read ``cost`` or ``-cost``. Raises UserError for what nothing is sorted by."""
    name = text.removeprefix("-") or "place"
    if name not in SORTS:
        raise UserError(
            f"sort={text}: nothing is sorted by this{did_you_mean(name, SORTS)}; use one of "
            f"{', '.join(SORTS)}"
        )
    return Sorting(name, text.startswith("-"))


class JudgmentPage(NamedTuple):
    """Rows of a view, and the rows that the pages beside them end or begin with, None at either
    end; ``total`` rows are kept by the filter."""

    rows: list[int]
    before: int | None
    after: int | None
    total: int


def sorted_rows(view: JudgmentView, chosen: Filter, sorting: Sorting) -> Ints:
    """Return the rows that a filter keeps, in their order."""
    order = _order(view, sorting)
    return np.asarray(order[chosen.judgments(view)[order]])


def _order(view: JudgmentView, sorting: Sorting) -> Ints:
    values = SORTS[sorting.name](view)
    return np.argsort(-values if sorting.falling else values, kind="stable")


def judgment_page(
    view: JudgmentView,
    chosen: Filter,
    sorting: Sorting = Sorting(),  # noqa: B008 - immutable
    *,
    after: int | None = None,
    before: int | None = None,
    limit: int = PAGE,
) -> JudgmentPage:
    """Return the rows behind the row ``after``, or those in front of ``before``, neither of which
    need be kept by the filter. Raises UserError for a row that is not there."""
    order, size = _order(view, sorting), min(max(limit, 1), MOST)
    kept = np.asarray(order[chosen.judgments(view)[order]])
    start, row = 0, after if before is None else before
    if row is not None:
        if not 0 <= row < len(order):
            raise UserError(f"There is no judgment {row:,} in this run.")
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        # In front of the row, or behind it: ranks are whole numbers.
        start = int(np.searchsorted(rank[kept], rank[row] + (before is None)))
    end = start + size
    if before is not None:
        start, end = max(start - size, 0), start
    rows = kept[start:end].tolist()
    return JudgmentPage(
        rows,
        rows[0] if rows and start > 0 else None,
        rows[-1] if rows and end < len(kept) else None,
        len(kept),
    )
