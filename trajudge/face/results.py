"""What the public functions give: judgments as one value, scores and comparisons as data, tables as
HTML.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from reprlib import repr as short
from typing import TYPE_CHECKING, Any, Literal, overload

from trajudge.annotations import labels_by as refuse_alone
from trajudge.annotations.model import Label, Labels, LabelsBy
from trajudge.eval import sources
from trajudge.eval.reporting.results import COLUMNS, result_rows
from trajudge.eval.reporting.sentences import SHOWN, finding, notes
from trajudge.eval.reporting.summary import summary, summary_parts
from trajudge.eval.reporting.tables import comparison_screen, comparison_tables, tables
from trajudge.eval.score import score_source
from trajudge.eval.scoring import records
from trajudge.eval.scoring.notes import mixed_versions
from trajudge.eval.settings import ScoreConfig, Split
from trajudge.eval.store.labels import refuse_conflicts
from trajudge.eval.store.table import JudgmentTable
from trajudge.face.calls import check_keywords, one_or_several
from trajudge.face.data import read_labels, read_trajectories
from trajudge.judges.model import Judgment, Status
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.util.errors import MissingExtra, UserError, naming
from trajudge.util.files import refuse_repeated
from trajudge.util.settings import make
from trajudge.util.tables import Table, shown
from trajudge.util.terminal import listed

if TYPE_CHECKING:
    from jinja2 import Template
    from matplotlib.axes import Axes
    from pandas import DataFrame


_TEMPLATE = """\
<div class="trajudge">
{%- for line in above %}
<p>{{ line }}</p>
{%- endfor %}
{%- for table in tables %}
<table>
<caption style="text-align: left; font-weight: bold">{{ table.title }}</caption>
<thead><tr>
{%- for name in table.head %}
<th style="text-align: {{ 'left' if loop.index0 < table.names else 'right' }}">{{ name }}</th>
{%- endfor %}
</tr></thead>
<tbody>
{%- for row in table.rows %}
<tr>
{%- for cell in row -%}
<td style="text-align: {{ 'left' if loop.index0 < table.names else 'right' }}">{{ cell }}</td>
{%- endfor -%}
</tr>
{%- endfor %}
</tbody>
</table>
{%- endfor %}
{%- for note in notes %}
<p>{{ note }}</p>
{%- endfor %}
</div>
"""


def tables_html(
    tables: Sequence[Table], notes: Sequence[str] = (), *, above: Sequence[str] = ()
) -> str:
    """Return the lines ``above``, the tables below each other, then the notes; a line is a
    paragraph."""
    cells = [shown(table) for table in tables]
    return _template().render(above=above, tables=cells, notes=notes)


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 - only notebooks need it

    return Environment(autoescape=True, undefined=StrictUndefined).from_string(_TEMPLATE)


def screen_html(screen: str) -> str:
    """Return a first screen as HTML, its columns as they are printed."""
    return f"<pre>{escape(screen)}</pre>"


def folded_html(tables: str) -> str:
    """Fold all tables, which are HTML, behind a line that shows them."""
    return f"<details><summary>All tables</summary>{tables}</details>"


SHOWN_BELOW = 7  # coverage, cost, and five warnings; the others stand with all tables

_LABELS = "labels=KIND:PATH (of the sample's own trajectories: labels='sample')"


class Scores(records.ScoreReport):
    """Scores of judges against expert labels, with the rule-based baseline.

    ``scores`` holds a record per judge, benchmark and label, in which rates and limits are shares
    from 0 to 1, with 95 % limits over tasks; ``to_frame`` gives the same as a table.
    """

    @classmethod
    def of(cls, scores: records.ScoreReport) -> Scores:
        """Return the same scores with a frame, plots and HTML for notebooks."""
        return cls.model_construct(**dict(scores))

    def to_frame(self) -> DataFrame:
        """Return a row per judge (``evaluator`` tells the baseline), benchmark, agent and label:
        rates as fractions with the limits of their 95 % intervals (``_low``, ``_high``)."""
        from pandas import DataFrame  # noqa: PLC0415 - slow to import

        return DataFrame(result_rows(self), columns=list(COLUMNS))

    def plot(
        self, kind: Literal["precision", "success_rate"] = "precision", axes: Axes | None = None
    ) -> Axes:
        """Draw precision per benchmark, or every agent's success rate, with intervals.

        ``axes`` are those to draw into (None: new ones). Raises MissingExtra without matplotlib,
        UserError if the scores hold nothing to draw.
        """
        try:
            from matplotlib import pyplot  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise MissingExtra("matplotlib", "plots", "Scores.plot") from error
        from trajudge.eval.reporting.plots import draw_precision, draw_success_rates  # noqa: PLC0415

        draw = {"precision": draw_precision, "success_rate": draw_success_rates}.get(kind)
        if draw is None:
            raise UserError(f"plot: kind is {kind!r}: choose from precision, success_rate")
        if axes is None:
            axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")[1]
        if not draw(axes, self):
            raise UserError(f"plot {kind!r}: nothing is scored: give score the experts' labels")
        return axes

    def __repr__(self) -> str:
        return f"<Scores: {finding(self, None)[0]}; print() shows them>"

    def __str__(self) -> str:
        """Return the first screen of ``trajudge score``: finding, table, what weakens it."""
        rest, full = "All tables: to_frame()", "to_frame()"
        return summary(self, rest=rest, full=full, option=_LABELS).rstrip("\n")

    def _repr_html_(self) -> str:
        above, table, below = summary_parts(self, option=_LABELS)
        shown = tables_html([table] if table else [], below[:SHOWN_BELOW], above=above)
        everything = tables_html(tables(self), list(notes(self)))
        return shown + folded_html(everything)


class JudgeComparison(records.Comparison):
    """Judges against each other: every pair's differences with intervals and corrected p-values.

    ``warnings`` say what speaks against the comparison: a judge in several versions.
    """

    warnings: tuple[str, ...] = ()

    def to_frame(self) -> DataFrame:
        """Return a row per pair of judges, benchmark, label and metric: ``difference`` is that of
        ``first`` minus ``second``, with its 95 % limits and ``p_holm``."""
        from pandas import DataFrame  # noqa: PLC0415 - slow to import

        columns = list(records.MetricDifference.model_fields)
        return DataFrame([one.model_dump() for one in self.differences], columns=columns)

    def __repr__(self) -> str:
        judges = sorted({name for one in self.differences for name in (one.first, one.second)})
        return f"<JudgeComparison: {listed(judges, SHOWN)}; print() shows it>"

    def __str__(self) -> str:
        """Return one screen: the order of the judges, their differences overall, the warnings."""
        return comparison_screen(self, self.warnings, option=_LABELS).rstrip("\n")

    def _repr_html_(self) -> str:
        everything = tables_html(comparison_tables(self), list(self.warnings))
        return screen_html(str(self)) + folded_html(everything)


_SHOWN = 10  # judgments in a notebook

_HEAD = ("judge", "trajectory", "status", "success", "score", "reasoning")


class Run(Sequence[Judgment]):
    """The judgments of one run or several, in the order of the trajectories.

    ``folders`` are the runs' folders, ``labels`` and ``rewards`` are read from these folders, and
    ``notes`` are warnings about the runs. ``a + b`` combines the judgments of several judges.
    """

    def __init__(
        self,
        source: sources.Source,
        folders: Sequence[Path] = (),
        parts: Sequence[sources.Source] = (),
    ) -> None:
        self._source = source
        self._parts = tuple(parts) or (source,)  # of each run its own labels
        self.folders = tuple(folders)

    @property
    def folder(self) -> Path:
        """The run's folder. Raises ValueError unless the judgments are those of one run."""
        (only,) = self.folders
        return only

    @property
    def labels(self) -> Labels:
        """The experts' labels that belong to the runs."""
        return dict(self._source.labels)

    @property
    def rewards(self) -> dict[TrajectoryKey, float | None]:
        """The official reward of every trajectory of the runs, None where it is unknown."""
        return dict(self._source.rewards)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know of the runs, a sentence each."""
        return tuple(self._source.notes)

    @overload
    def __getitem__(self, place: int) -> Judgment: ...
    @overload
    def __getitem__(self, place: slice) -> list[Judgment]: ...
    def __getitem__(self, place: int | slice) -> Judgment | list[Judgment]:
        if isinstance(place, slice):
            return list(self._source.judgments[place])
        return self._source.judgments[place]

    def __len__(self) -> int:
        return len(self._source.judgments)

    def __add__(self, other: Run) -> Run:
        """Join two sets of judgments; a judge that both have is told apart by its folder, unless
        its settings are the same and no trajectory is in both. Raises UserError for a run that
        both hold."""
        refuse_repeated([*self.folders, *other.folders])
        both = sources.combine([self._source, other._source])
        parts = [*self._parts, *other._parts]
        return Run(both, [*self.folders, *other.folders], parts)

    def __repr__(self) -> str:
        judges = sorted({judgment.judge for judgment in self})
        where = ", ".join(map(str, self.folders))
        return f"<{len(self)} judgments by {', '.join(judges) or 'nobody'} in {where}>"

    def scores(self, labels: Labels | str | Path | None = None) -> Scores:
        """Score them, as ``trajudge.score`` does."""
        return score(self, labels)

    def to_frame(self) -> DataFrame:
        """Return a row per judgment: trajectory, status, verdict, and the number, cost in US
        dollars (None: a price is not known) and seconds of its calls.

        pandas has no type information: without pandas-stubs a type checker treats the frame as Any.
        """
        from pandas import DataFrame  # noqa: PLC0415 - slow to import

        return DataFrame([_row(judgment) for judgment in self])

    def _repr_html_(self) -> str:
        endings = Counter((judgment.judge, judgment.status) for judgment in self)
        rows = [(judge, status.value, str(n)) for (judge, status), n in sorted(endings.items())]
        some = [tuple(map(str, _cells(judgment))) for judgment in self[:_SHOWN]]
        title = f"The first {len(some)} of {len(self)} judgments"
        tables = [
            Table("Judgments", ("judge", "status", "judgments"), rows),
            Table(title, _HEAD, some, names=len(_HEAD)),
        ]
        return tables_html(tables, [*self.notes, *(f"run: {folder}" for folder in self.folders)])


Judged = Judgment | Run | str | Path

"""Judgments, or the folder of their run."""


def read_run(folder: str | Path) -> Run:
    """Read the judgments of a run's folder, with its labels and rewards.

    Raises UserError if it is no such folder.
    """
    return Run(sources.read_run(Path(folder)), [Path(folder)])


def score(
    judgments: Judged | Iterable[Judged],
    labels: Labels | str | Path | None = None,
    runs: Iterable[Trajectory] | str | Path | None = None,
    *,
    labels_by: LabelsBy | None = None,
    **settings: Any,
) -> Scores:
    """Score judgments and the rule-based baseline against expert labels.

    ``judgments`` are results of ``judge``, folders of runs, or a table of judgments: a data frame
    with the columns of ``Run.to_frame()``, or its file. ``labels`` are a mapping, or data
    whose labels are read (None: those of the judgments' runs); ``runs`` are the trajectories whose
    official rewards are the baseline (None: those of the judgments' runs). ``labels_by`` makes one
    label of several annotators'. The other keywords are options of ``trajudge score``: ``missing``,
    ``protocol``, ``by``, ``split``, ``task_id``, ``training_set``, ``question``. Raises UserError,
    and TypeError for an unknown keyword.
    """
    check_keywords("score", settings)
    config = make(ScoreConfig, settings)
    source = _source("score", judgments, labels, runs, split=config.split, by=labels_by)
    return Scores.of(score_source(source, config))


def compare(
    judgments: Judged | Iterable[Judged],
    labels: Labels | str | Path | None = None,
    *,
    by: Literal["overall", "benchmark"] = "overall",
    **settings: Any,
) -> JudgeComparison:
    """Compare every pair of judges on the trajectories that both judged, over all benchmarks or
    also in each. The other parameters are those of ``score``. Raises UserError."""
    check_keywords("compare", settings)
    config = make(ScoreConfig, {**settings, "compare": by})
    source = _source("compare", judgments, labels, None, split=config.split)
    if len(judges := sources.judge_names([source])[0]) < 2:
        raise UserError(
            f"compare: the judgments are by {', '.join(judges)}: a comparison needs "
            "those of two judges, such as compare(first + second)"
        )
    found = score_source(source, config)
    mixed = tuple(mixed_versions(source.versions))
    return JudgeComparison.model_construct(**dict(found.comparison), warnings=mixed)


def _source(
    call: str,
    judgments: Judged | Iterable[Judged],
    labels: Labels | str | Path | None,
    runs: Iterable[Trajectory] | str | Path | None,
    *,
    split: Split,
    by: LabelsBy | None = None,
) -> sources.Source:
    """Bring everything together that is scored."""
    wanted = "judgments or folders of runs"
    if hasattr(judgments, "columns"):  # a data frame
        judgments = Run(sources.read_table(judgments))
    given = one_or_several(call, judgments, Judgment | Run | str | Path, wanted)
    single = [one for one in given if isinstance(one, Judgment)]
    refuse_repeated(_folders(given))
    read = [
        *(sources.read_run(Path(one)) for one in given if isinstance(one, str | Path)),
        *([sources.Source("given", JudgmentTable.of(single), {})] if single else []),
    ]
    ours = [one for one in given if isinstance(one, Run)]
    whole = sources.combine([*(one._source for one in ours), *read])
    if not len(whole.judgments):
        raise _nothing(call, given)
    if labels is not None:
        whole.labels = _labels(call, labels, by)
    else:
        refuse_alone(None, by)
        parts = [*(part for one in ours for part in one._parts), *read]
        refuse_conflicts((part.name, part.labels) for part in parts)
    if runs is not None:
        whole.rewards = {**whole.rewards, **_rewards(call, runs)}
    if split != "all":
        whole.restrict(split)
    return whole


def _folders(given: Iterable[Judged]) -> Iterator[Path]:
    for one in given:
        if isinstance(one, str | Path):
            yield Path(one)
        elif isinstance(one, Run):
            yield from one.folders


def _nothing(call: str, given: Sequence[Judged]) -> UserError:
    """Say that what is to be scored holds no judgment: an empty list, or runs without any."""
    if runs := [str(folder) for folder in _folders(given)]:
        return UserError(f"{call}: {', '.join(runs)}: no judgment was made yet: judge first")
    return UserError(f"{call}: judgments is empty: give at least one judgment")


def _labels(call: str, labels: Labels | str | Path, by: LabelsBy | None) -> Labels:
    if isinstance(labels, str | Path):
        with naming("labels"):
            return read_labels(labels, by=by)
    refuse_alone(None, by)
    if isinstance(labels, Mapping):
        for key, label in labels.items():
            if not isinstance(key, TrajectoryKey) or not isinstance(label, Label):
                raise TypeError(
                    f"{call}: labels has {short(label)} for {short(key)}: give a Label by "
                    "trajectory key, such as {key: Label(key=key, "
                    "raw_task_id=key.task_id, annotator='me', success=True)}"
                )
        return labels
    raise TypeError(
        f"{call}: labels is of type {type(labels).__name__}: give annotations by trajectory key, "
        "as trajudge.labels returns them, or data that has labels"
    )


def _rewards(
    call: str, runs: Iterable[Trajectory] | str | Path
) -> dict[TrajectoryKey, float | None]:
    if isinstance(runs, str | Path):
        with naming("runs"):
            runs = read_trajectories(runs, warned=5)
    wanted = "trajectories, or data that holds them"
    return {one.key: one.official_reward for one in one_or_several(call, runs, Trajectory, wanted)}


def _row(judgment: Judgment) -> dict[str, object]:
    costs = [call.cost for call in judgment.calls]
    fields = judgment.model_dump(exclude={"key", "calls", "scores"})
    return {
        **judgment.key.model_dump(),
        **fields,
        "status": judgment.status.value,
        "calls": len(costs),
        "cost": None if None in costs else sum(cost or 0.0 for cost in costs),
        "seconds": sum(call.seconds for call in judgment.calls),
    }


def _cells(judgment: Judgment) -> tuple[object, ...]:
    """Return the cells of ``_HEAD``; a failed judgment shows why in place of its reasoning."""
    said = judgment.reasoning if judgment.status is Status.OK else judgment.detail
    shown = ["–" if one is None else one for one in (judgment.success, judgment.score)]
    return (judgment.judge, judgment.key, judgment.status.value, *shown, said[:200])
