"""The judgments of runs as a view: its rows, the filter grammar, sorting, pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.eval.cases import call, failed, key, label, said
from trajudge.annotations import store
from trajudge.annotations.model import Label, Role
from trajudge.app.workspace import OpenedRun
from trajudge.eval.sources import combine, observed_verdicts, read_run
from trajudge.eval.store.filters import (
    FIELDS,
    SORTS,
    Described,
    Filter,
    FilterError,
    FilterTerm,
    JudgmentView,
    combine_views,
    judgment_page,
    parse_filter,
    parse_sorting,
    read_view,
    sorted_rows,
)
from trajudge.eval.store.run_folder import (
    CALLS,
    JUDGMENTS,
    LABELS,
    judgment_line,
    ledger_lines,
    write_labels,
    write_manifest,
    write_rewards,
)
from trajudge.judges.model import Judgment, Status
from trajudge.util.errors import UserError

TASKS = 12


def judgments() -> list[Judgment]:
    """Three judges on twelve tasks; ``b`` in two samples."""
    made: list[Judgment] = []
    for task in range(TASKS):
        calls = (
            call(
                0.01 * task,
                request=f"{task:064x}",
                rung="full" if task % 4 else "last",
                seconds=task,
            ),
            call(None if task == 7 else 0.5, request=f"{task + 100:064x}", seconds=0.25),
        )
        made += [
            said(
                task,
                task % 2 == 0,
                judge="a",
                score=task / TASKS,
                reasoning=f"Reason {task} 50%_!",
                calls=calls,
            ),
            said(task, task % 3 == 0, judge="b", fallback="" if task % 5 else "no tag"),
            said(task, task % 3 == 1, judge="b", sample=1, side_effect=True),
            failed(task, Status.REFUSED, judge="c") if task % 4 else said(task, True, judge="c"),
        ]
    return made


def write(folder: Path, lines: Iterable[Judgment] | None = None) -> Path:
    """Write a run with labels (task 10 unsure, 11 none) and rewards (11 none)."""
    folder.mkdir(parents=True, exist_ok=True)
    made = judgments() if lines is None else [*lines]
    (folder / JUDGMENTS).write_bytes(b"".join(map(judgment_line, made)))
    (folder / CALLS).write_bytes(b"".join(b"".join(ledger_lines(each)) for each in made))
    truth = {task: None if task == 10 else task < 5 for task in range(11)}
    write_labels(folder, [label(task, success) for task, success in truth.items()])
    write_rewards(folder, {key(task): float(task < 7) for task in range(11)})
    write_manifest(folder, {"judge": "a", "data": "trajudge:absent", "protocol": "default"})
    return folder


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> JudgmentView:
    return read_view(write(tmp_path_factory.mktemp("view") / "run"))


def kept(view: JudgmentView, text: str) -> list[int]:
    rows: list[int] = np.flatnonzero(parse_filter(text).judgments(view)).tolist()
    return rows


Test = Callable[[Judgment, Label | None, int], bool]


def truth(label: Label | None) -> bool | None:
    return label.success if label else None


def votes(task: int) -> int:
    """How many of three judges are in the minority; ``b`` says yes where both samples do."""
    yes = [task % 2 == 0, False, *([True] if task % 4 == 0 else [])]
    return min(yes.count(True), yes.count(False))


@pytest.mark.parametrize(
    ("text", "test"),
    [
        ("", lambda j, a, t: True),
        ("judge:a", lambda j, a, t: j.judge == "a"),
        ("judge:A", lambda j, a, t: False),
        ("judge:*", lambda j, a, t: True),
        ("-judge:a", lambda j, a, t: j.judge != "a"),
        ("status:refused", lambda j, a, t: j.status == "refused"),
        ("success:yes", lambda j, a, t: j.success is True),
        ("success:none", lambda j, a, t: j.success is None),
        ("-success:yes", lambda j, a, t: j.success is not True),
        ("expert:no", lambda j, a, t: truth(a) is False),
        ("expert:unsure", lambda j, a, t: a is not None and a.success is None),
        ("expert:none", lambda j, a, t: a is None),
        ("rule:yes", lambda j, a, t: t < 7),
        ("rule:none", lambda j, a, t: t == 11),
        ("wrong:fp", lambda j, a, t: j.success is True and truth(a) is False),
        ("wrong:fn", lambda j, a, t: j.success is False and truth(a) is True),
        ("disagree>=1", lambda j, a, t: votes(t) >= 1),
        ("disagree:0", lambda j, a, t: votes(t) == 0),
        ("score:0.25..0.5", lambda j, a, t: j.score is not None and 0.25 <= j.score <= 0.5),
        ("score:..0.5", lambda j, a, t: j.score is not None and j.score <= 0.5),
        ("score:0.5..", lambda j, a, t: j.score is not None and j.score >= 0.5),
        ("score>0.5", lambda j, a, t: j.score is not None and j.score > 0.5),
        ("benchmark:webarena", lambda j, a, t: True),
        ("agent:b*", lambda j, a, t: False),
        ("task:webarena.1*", lambda j, a, t: t in (1, 10, 11)),
        ("task:webarena.?", lambda j, a, t: False),
        ("task:[w]*", lambda j, a, t: False),
        ("cost>0.55", lambda j, a, t: j.judge == "a" and t > 5 and t != 7),
        ("tokens:260", lambda j, a, t: j.judge == "a"),
        ("seconds>=11", lambda j, a, t: j.judge == "a" and t == 11),
        ("sample=1", lambda j, a, t: j.sample == 1),
        ("flag:elided", lambda j, a, t: j.judge == "a" and t % 4 == 0),
        ("flag:repaired", lambda j, a, t: bool(j.fallback)),
        ("steps>1", lambda j, a, t: False),
        ('"reason 3"', lambda j, a, t: j.judge == "a" and t == 3),
        ("50%_!", lambda j, a, t: j.judge == "a"),
        ("50_%", lambda j, a, t: False),
        ('-"Reason"', lambda j, a, t: j.judge != "a"),
        (" judge:b  sample:0\tstatus:ok ", lambda j, a, t: (j.judge, j.sample) == ("b", 0)),
    ],
)  # fmt: skip
def test_a_filter_keeps_what_it_names(read: JudgmentView, text: str, test: Test) -> None:
    wanted = []
    for place, judgment in enumerate(judgments()):
        (label, *_) = (*read.opinions(judgment.key), None)
        task = int(judgment.key.task_id.rpartition(".")[2])
        if test(judgment, label, task):
            wanted.append(place)
    assert kept(read, text) == wanted


def test_trajectories_are_those_on_which_one_judgment_is_all_that(read: JudgmentView) -> None:
    chosen = parse_filter("judge:a success:yes expert:no").trajectories(read)
    assert {key.task_id for key in read.keys.at(chosen)} == {"webarena.6", "webarena.8"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("juge:a", "there is no field 'juge', did you mean 'judge'?"),
        ("http://x", "put text with a colon into quotation marks"),
        ("status:okay", "use one of ok, unparsable"),
        ("success:maybe", "use one of yes, no, none"),
        ("score:high", "is not a number"),
        ("score:nan", "is not a number"),
        ("score:..", "name an end"),
        ("judge>3", "is not compared by size"),
        ("judge:" + "*a" * 5, "at most 4 stars"),
        ("judge:", "a value is missing"),
        ('"open', "a quotation mark or a value is missing"),
        ('judge:"a"b', "a quotation mark or a value is missing"),
        ("a " * 41, "at most 40 terms"),
        ("a" * 2_001, "at most 2,000 characters"),
    ],
)
def test_a_bad_term_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse_filter(text)
    assert sentence in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_every_example_is_understood(read: JudgmentView) -> None:
    for field in FIELDS.values():
        kept(read, field.example)


_VALUES = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=20)
_TERMS = st.builds(
    FilterTerm,
    st.sampled_from(["", "judge", "task"]),
    st.just(":"),
    _VALUES.filter(lambda value: value.count("*") < 5),
    st.booleans(),
)


@given(st.lists(_TERMS, max_size=5))
def test_a_filter_reads_back_what_it_shows(terms: list[FilterTerm]) -> None:
    shown = Filter(tuple(terms))
    assert parse_filter(str(shown)) == shown


@given(st.text(max_size=60) | st.sampled_from([f.example for f in FIELDS.values()]))
def test_any_text_is_a_filter_or_a_sentence(read: JudgmentView, text: str) -> None:
    try:
        kept(read, text)
    except FilterError as error:
        assert str(error)


def test_the_sample_of_the_readers_is_that_of_the_filters(tmp_path: Path) -> None:
    """What the filters find wrong is what scoring counts as wrong, of a judge with one sample."""
    folder = write(tmp_path / "run")
    source = read_run(folder)
    wrong = sum(
        j.judge == "a" and j.success is True and truth(source.labels.get(j.key)) is False
        for j in source.judgments
    )
    assert len(kept(read_view(folder), "judge:a wrong:fp")) == wrong == 2


def test_text_is_found_in_reasoning_goals_and_answers_whatever_its_case(tmp_path: Path) -> None:
    reasons = ["Order 4711 was refunded", "to the café's account", "nothing; 'quoted' \"here\""]
    far = "x " * 300
    lines = [said(n, True, judge="a", reasoning=far + text) for n, text in enumerate(reasons)]
    view = read_view(write(tmp_path / "run", lines))
    assert kept(view, "refund") == kept(view, '"ORDER 47"') == [0]
    assert kept(view, '"order refunded"') == []
    assert kept(view, "cafe") == [1]
    assert kept(view, "-cafe") == [0, 2]
    for text in ('"quoted\' \\"here"', "'*", '"\\"*"', '"a\0b"', '"reasoning:x"'):
        kept(view, text)
    assert kept(view, '"quoted\' \\"here"') == [2]
    described = {key(1): Described(far + "buy a giraffe", far + "\ud800 bought it", 3)}
    assert kept(view, "giraffe") == kept(view, "steps:3") == []
    view = view.described(described)
    assert kept(view, "giraffe") == kept(view, '"bought it"') == kept(view, "steps:3") == [1]
    short = read_view(tmp_path / "run", longest=160)
    assert kept(short, "refund") == []


@pytest.mark.parametrize("sort", [f"{sign}{name}" for name in SORTS for sign in ("", "-")])
@pytest.mark.parametrize("text", ["", "-judge:c"])
def test_pages_are_the_table(read: JudgmentView, sort: str, text: str) -> None:
    chosen, sorting = parse_filter(text), parse_sorting(sort)
    whole = sorted_rows(read, chosen, sorting).tolist()
    forwards, backwards = [], []
    page = judgment_page(read, chosen, sorting, limit=7)
    assert page.before is None
    assert page.total == len(whole) == int(chosen.judgments(read).sum())
    while True:
        forwards += page.rows
        if page.after is None:
            break
        page = judgment_page(read, chosen, sorting, after=page.after, limit=7)
    assert forwards == whole
    backwards = page.rows
    while page.before is not None:
        page = judgment_page(read, chosen, sorting, before=page.before, limit=7)
        assert page.after is not None
        backwards = page.rows + backwards
    assert backwards == whole


@pytest.mark.parametrize("name", ["score", "cost", "seconds"])
def test_sorting_is_by_value_with_the_unknown_last(read: JudgmentView, name: str) -> None:
    for falling in (False, True):
        sorting = parse_sorting(f"-{name}" if falling else name)
        rows = sorted_rows(read, Filter(), sorting).tolist()
        values = [read.record(row)[name] for row in rows]
        known = [value for value in values if value is not None]
        assert known == sorted(known, reverse=falling)
        assert 0 < len(known) < len(values) == len(judgments())
        assert values[: len(known)] == known


def test_a_row_that_the_filter_leaves_out_has_neighbours(read: JudgmentView) -> None:
    chosen, sorting = parse_filter("judge:a"), parse_sorting("-task")
    whole = sorted_rows(read, chosen, sorting)
    other = int(np.flatnonzero(~chosen.judgments(read))[5])
    before = judgment_page(read, chosen, sorting, before=other).rows
    after = judgment_page(read, chosen, sorting, after=other).rows
    assert before + after == whole.tolist()
    assert before
    assert after


@pytest.mark.parametrize("row", [-1, 10**9])
def test_a_row_that_is_not_there_is_named(read: JudgmentView, row: int) -> None:
    with pytest.raises(UserError, match="no judgment"):
        judgment_page(read, Filter(), after=row)
    with pytest.raises(UserError, match="nothing is sorted by this"):
        parse_sorting("luck")


@pytest.mark.usefixtures("own_folder")
def test_it_holds_what_the_readers_hold(tmp_path: Path) -> None:
    folder = write(tmp_path / "run")
    view, source = read_view(folder), read_run(folder)
    assert [*view.judgments] == [*source.judgments]
    for row, judgment in enumerate(source.judgments):
        record = view.record(row)
        assert record["task_id"] == judgment.key.task_id
        for name in ("judge", "sample", "status", "success", "score"):
            assert record[name] == getattr(judgment, name), name
        costs = [call.cost for call in judgment.calls]
        known = [cost for cost in costs if cost is not None]
        cost = sum(known) if len(known) == len(costs) else None
        assert record["cost"] == (None if cost is None else pytest.approx(cost))
        assert record["tokens"] == sum(130 for _ in judgment.calls)
        assert (record["seconds"] or 0) == sum(call.seconds for call in judgment.calls)
        label = source.labels.get(judgment.key)
        unsure = label is not None and label.success is None
        assert record["expert"] == ("unsure" if unsure else label and label.success)
        reward = source.rewards.get(judgment.key)
        assert record["rule"] == (None if reward is None else reward > 0.5)


@pytest.mark.usefixtures("own_folder")
def test_samples_of_one_judge_that_disagree_make_a_trajectory_unstable(tmp_path: Path) -> None:
    answers = {0: (True, True), 1: (False, False), 2: (True, False), 3: (True, None)}
    lines = [
        said(task, success, judge="a", sample=sample)
        for task, both in answers.items()
        for sample, success in enumerate(both)
    ]
    lines.append(said(0, False, judge="b"))  # another judge's, no sample of the first
    view = read_view(write(tmp_path / "run", lines))
    unstable = {view.keys.key(place).task_id for place in np.flatnonzero(view.unstable).tolist()}
    assert unstable == {key(2).task_id}


@pytest.mark.usefixtures("own_folder")
def test_a_trajectory_counts_each_judge_once_as_scoring_does(tmp_path: Path) -> None:
    folder = write(tmp_path / "run")
    view = read_view(folder)
    votes: dict[str, list[int]] = {}
    for observed in observed_verdicts(read_run(folder), "exclude").values():
        for place, answered, said_yes in zip(
            observed.index, observed.answered, observed.predictions, strict=True
        ):
            counts = votes.setdefault(observed.reference.keys.key(place).task_id, [0, 0])
            if answered:
                counts[0 if said_yes == 1 else 1] += 1
    assert len(votes) == 10
    for place, trajectory in enumerate(view.keys):
        if trajectory.task_id in votes:
            assert view.votes[:2, place].tolist() == votes[trajectory.task_id]
        assert view.votes[:, place].sum() == 3


@pytest.mark.usefixtures("own_folder")
def test_other_labels_stand_in_the_place_of_the_runs(tmp_path: Path) -> None:
    folder, other = write(tmp_path / "run"), write(tmp_path / "labels")
    write_labels(other, [label(11, True)])
    view = read_view(folder, f"trajudge:{other / LABELS}")
    assert [key.task_id for key in view.keys.at(view.expert == 1)] == ["webarena.11"]
    assert [one.success for one in view.opinions(key(11))] == [True]


@pytest.mark.usefixtures("own_folder")
def test_every_annotator_is_heard(tmp_path: Path) -> None:
    folder = write(tmp_path / "run")
    second = label(1, False).model_copy(update={"annotator": "B", "role": Role.SECONDARY})
    store.write(folder / LABELS, [*store.load(folder / LABELS), second])
    view = read_view(folder)
    assert [(one.annotator, one.success) for one in view.opinions(key(1))] == [
        ("A", True),
        ("B", False),
    ]


@pytest.mark.usefixtures("own_folder")
def test_a_run_that_grows_is_read_again(tmp_path: Path) -> None:
    every = judgments()
    run = OpenedRun("run", write(tmp_path / "run", every[:3]))
    assert len(run.view().judgments) == 3
    assert run.view() is run.view()
    line = judgment_line(every[3])
    with (run.folder / JUDGMENTS).open("ab") as file:
        file.write(line[:50])
        file.flush()
        run._next = 0.0
        assert len(run.view().judgments) == 3
        file.write(line[50:])
    run._next = 0.0
    assert [*run.view().judgments][3].judge == every[3].judge
    with (run.folder / JUDGMENTS).open("ab") as file:
        file.write(b'{"key": 1}\n')
    run._next = 0.0
    with pytest.raises(UserError, match=r"judgments\.jsonl, line 5"):
        run.view()


def two(folder: Path) -> list[Path]:
    first = write(folder / "first")
    other = [said(task, task > 3, judge="a" if task % 2 else "z") for task in range(8, 16)]
    second = write(folder / "second", other)
    write_labels(second, [label(8, True), label(15, False)])
    return [first, second]


def combined(folders: list[Path]) -> JudgmentView:
    return combine_views({folder.name: read_view(folder) for folder in folders}, folders)


@pytest.mark.usefixtures("own_folder")
def test_several_runs_hold_what_the_combined_sources_hold(tmp_path: Path) -> None:
    folders = two(tmp_path)
    view, source = combined(folders), combine([read_run(folder) for folder in folders])
    names = {str(folder): folder.name for folder in folders}
    for row, judgment in enumerate(source.judgments):
        record, judge = view.record(row), judgment.judge
        for path, name in names.items():
            judge = judge.replace(path, name)
        assert (record["judge"], record["task_id"]) == (judge, judgment.key.task_id)
        assert (record["success"], record["status"]) == (judgment.success, judgment.status)
        label = source.labels.get(judgment.key)
        unsure = label is not None and label.success is None
        assert record["expert"] == ("unsure" if unsure else label and label.success)
    assert view.judgments.source.tolist() == [0] * len(judgments()) + [1] * 8
    assert len(view.keys) == 16


@pytest.mark.usefixtures("own_folder")
def test_filters_ask_over_all_judges(tmp_path: Path) -> None:
    """Of task 8 a and z say yes, b no (two samples that differ), and c yes."""
    view = combined(two(tmp_path))
    found = view.keys.at(parse_filter("disagree>=1 expert:yes").trajectories(view))
    assert [key.task_id for key in found] == [f"webarena.{task}" for task in (0, 2, 4, 8)]


@pytest.mark.usefixtures("own_folder")
def test_parts_of_one_judge_are_one_judge_and_other_settings_are_another(tmp_path: Path) -> None:
    """Two runs judge the two halves of the tasks; a third has the settings of neither."""
    halves = [[said(task, True, judge="a") for task in tasks] for tasks in (range(6), range(6, 9))]
    folders = [write(tmp_path / f"half{n}", lines) for n, lines in enumerate(halves)]
    assert combined(folders).judgments.judges == ("a",)
    other = write(tmp_path / "other", [said(9, True, judge="a")])
    write_manifest(other, {"judge": "a", "data": "trajudge:absent", "prompt_hash": "other"})
    view = combined([*folders, other])
    assert view.judgments.judges == ("a (half0)", "a (half1)", "a (other)")
    assert np.bincount(view.judgments.judge).tolist() == [6, 3, 1]


@pytest.mark.usefixtures("own_folder")
def test_the_worst_come_first_by_who_agrees_and_then_by_score(tmp_path: Path) -> None:
    """Three judges of one run; the rule accepts task 1 and task 2."""
    accepts = {"a": "1234", "b": "124", "c": "1"}
    scores = {("a", "2"): 0.6, ("a", "3"): 0.9, ("a", "4"): 0.8, ("b", "2"): None}
    judgments = [
        said(task, task in accepted, judge=judge, score=scores.get((judge, task), 0.7))
        for judge, accepted in accepts.items()
        for task in "1234"
    ]
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / JUDGMENTS).write_bytes(b"".join(map(judgment_line, judgments)))
    write_labels(folder, [label(task, False) for task in "1234"])
    write_rewards(folder, {key(task): float(task in "12") for task in "1234"})
    view = read_view(folder)
    rows = sorted_rows(view, parse_filter("wrong:fp"), parse_sorting("-agree"))
    shown = [(judgments[row].judge, judgments[row].key.task_id[-1]) for row in rows]
    assert shown == [
        *(("a", "1"), ("b", "1"), ("c", "1")),  # three judges and the rule
        *(("a", "2"), ("b", "2")),  # two judges and the rule; the score of b is not known
        *(("a", "4"), ("b", "4")),  # two judges
        ("a", "3"),
    ]
    agreeing = [int(view.agreeing[row]) for row in rows]
    assert agreeing == [4, 4, 4, 3, 3, 2, 2, 1]
    assert view.evaluators.sum(axis=0).tolist() == [4, 4, 4, 4]
