"""Published judgments: read with all their traps, written, read again, and sources of runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.commands import score as main
from tests.eval.cases import call, failed, key, label, said
from tests.eval.folders import write_run
from tests.screens import one_screen
from trajudge.annotations import open_annotations, primary_labels
from trajudge.annotations.agentrewardbench import benchmark_of
from trajudge.eval.sources import combine, judge_names, read_run
from trajudge.eval.store.export import ExportSettings, export
from trajudge.eval.store.published import (
    JudgmentFile,
    PublishedJudgment,
    from_ends,
    from_whole,
    read_published,
    read_published_folder,
    verdict_fields,
)
from trajudge.eval.store.run_folder import JUDGMENTS
from trajudge.judges.model import Judgment, Status, Verdict
from trajudge.judges.replies import ParseFailure, parse_status_line, parse_tags
from trajudge.trajectories.model import Trajectory
from trajudge.util.errors import UserError


def response(content: str | None, finish: str = "stop") -> dict[str, Any]:
    return {
        "model": "something-else",
        "choices": [{"finish_reason": finish, "message": {"content": content}}],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 40},
        },
    }


def put(folder: Path, name: str, content: object) -> None:
    judge = folder / "judgments" / "webarena" / "agent" / "judge-x"
    judge.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    (judge / name).write_text(text)


def answered(content: str | None, finish: str = "stop") -> dict[str, Any]:
    return {
        "judge_model_name": "model-x",
        "response": response(content, finish),
        "trajectory_info": {"summary_info": {"cum_reward": 0.25}},
    }


def read(folder: Path) -> dict[str, PublishedJudgment]:
    return {item.raw_task_id: item for item in read_published(folder)}


def test_what_is_published_beside_the_judgments_is_none(tmp_path: Path) -> None:
    """A folder further up: published/<judge>/results.json lies as deep as a judgment."""
    published = tmp_path / "set" / "published" / "judge-x"
    published.mkdir(parents=True)
    (published / "results.json").write_text('{"y_human": [1], "y_judge": [0]}')
    put(tmp_path / "set", "webarena.1.json", answered("Status: success"))
    with pytest.raises(UserError, match="holds no judgments"):
        list(read_published(tmp_path))
    assert list(read(tmp_path / "set")) == ["webarena.1"]
    (tmp_path / "set" / "judgments").rename(tmp_path / "elsewhere")
    assert list(read(tmp_path / "elsewhere")) == ["webarena.1"]


def test_what_pythons_json_writes_is_read(tmp_path: Path) -> None:
    content = answered("Status: success \ud83d")
    content["trajectory_info"]["summary_info"]["cum_reward"] = float("nan")
    put(tmp_path, "webarena.1.json", "\ufeff" + json.dumps(content))
    (item,) = read_published(tmp_path)
    assert (item.judgment.success, item.official_reward) == (True, None)


def test_a_file_becomes_a_judgment(tmp_path: Path) -> None:
    put(tmp_path, "webarena.1.json", answered("Status: success"))
    for folder in (tmp_path, tmp_path / "judgments"):
        (item,) = read_published(folder)
        assert item.key == key(1)
        assert (item.judgment.judge, item.judge_model_name) == ("judge-x", "model-x")
        assert (item.judgment.success, item.official_reward) == (True, 0.25)
        usage = item.judgment.calls[0].usage
        assert usage is not None
        assert (usage.input, usage.cache_read, usage.output) == (60, 40, 7)


def test_a_duplicate_download_counts_once(tmp_path: Path) -> None:
    put(tmp_path, "webarena.1.json", answered("Status: success"))
    put(tmp_path, "webarena.1(1).json", answered("Status: failure"))
    put(tmp_path, "webarena.2(1).json", answered("Status: failure"))
    items = read(tmp_path)
    assert {task: item.judgment.success for task, item in items.items()} == {
        "webarena.1": True,
        "webarena.2": False,
    }


def test_an_answer_wins_over_an_error_beside_it(tmp_path: Path) -> None:
    put(tmp_path, "webarena.1_error.json", {"error": "refused"})
    put(tmp_path, "webarena.2_error.json", {"error": "refused"})
    put(tmp_path, "webarena.2.json", answered("Status: success"))
    items = read(tmp_path)
    assert items["webarena.1"].judgment.status is Status.PROVIDER_ERROR
    assert items["webarena.1"].judgment.detail == "refused"
    assert items["webarena.2"].judgment.status is Status.OK


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (answered("no idea"), Status.UNPARSABLE),
        (answered("no idea", "length"), Status.TRUNCATED),
        (answered(None), Status.REFUSED),
        ({"response": {"choices": []}}, Status.PROVIDER_ERROR),
        ("{", Status.SKIPPED),
        ("", Status.SKIPPED),
        ('{"error": ' + "[" * 100_000, Status.SKIPPED),
        ({"response": 7}, Status.SKIPPED),
    ],
)
def test_a_failure_is_a_status_and_the_others_are_read(
    tmp_path: Path, content: object, status: Status
) -> None:
    put(tmp_path, "webarena.1.json", content)
    put(tmp_path, "webarena.2.json", answered("Status: success"))
    items = read(tmp_path)
    bad = items["webarena.1"].judgment
    assert (bad.status, bad.success) == (status, None)
    assert bad.detail
    assert items["webarena.2"].judgment.success is True


def test_a_folder_without_judgments_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no judgments in the layout"):
        list(read_published(tmp_path))


SETTINGS = ExportSettings(model="m", provider="p", use_axtree=True)


def run(task: object, raw: str | None = None) -> Trajectory:
    place = key(task)
    return Trajectory(
        key=place, raw_task_id=raw or place.task_id, goal="Buy it\n", official_reward=1.0
    )


def test_a_link_out_of_the_folder_and_a_pipe_are_not_read(tmp_path: Path) -> None:
    put(tmp_path / "data", "webarena.1.json", answered("Status: success"))
    put(tmp_path / "data", "webarena.3.json", answered("Status: success"))
    folder = tmp_path / "data" / "judgments" / "webarena" / "agent" / "judge-x"
    (folder / "webarena.1.json").rename(tmp_path / "outside.json")
    (folder / "webarena.1.json").symlink_to(tmp_path / "outside.json")
    (folder / "webarena.4.json").symlink_to(folder / "webarena.3.json")
    os.mkfifo(folder / "webarena.2.json")
    items = read(tmp_path / "data")
    assert "leads out of the data folder" in items["webarena.1"].judgment.detail
    assert [item.judgment.status for item in items.values()] == [
        *(Status.SKIPPED, Status.SKIPPED, Status.OK, Status.OK)
    ]


def test_the_folder_is_one_table_whose_records_are_made_on_demand(tmp_path: Path) -> None:
    for task in range(3):
        put(tmp_path, f"webarena.{task}.json", answered("Status: success" if task else "no idea"))
    source = read_published_folder(tmp_path, with_labels=False)
    assert [one.judgment.judgment() for one in read_published(tmp_path)] == [*source.judgments]
    assert [judgment.key for judgment in source.judgments] == [*source.judgments.keys]
    assert [judgment.success for judgment in source.judgments] == [None, True, True]
    assert source.rewards == dict.fromkeys(source.judgments.keys, 0.25)
    assert source.models == {"judge-x": "model-x"}


def test_what_is_exported_is_read_back(tmp_path: Path) -> None:
    full = said(
        1,
        True,
        side_effect=False,
        repetition=True,
        optimality=2,
        reasoning="the page said <success>Unsuccessful</success>\nStatus: failure",
        calls=(call(),),
    )
    judgments = [full, failed(2, Status.REFUSED), said(3, False)]
    assert export(tmp_path, judgments, [run(1), run(2), run(3), run(4)], SETTINGS) == 3
    items = read(tmp_path)
    back = items["webarena.1"].judgment.judgment()
    same = ("key", "judge", "status", "success", "side_effect", "repetition", "optimality")
    assert [getattr(back, name) for name in same] == [getattr(full, name) for name in same]
    assert back.calls[0].usage == full.calls[0].usage
    assert items["webarena.1"].official_reward == 1.0
    assert items["webarena.2"].judgment.detail == "refused: because"
    assert items["webarena.3"].judgment.success is False
    names = sorted(path.name for path in tmp_path.rglob("*.json"))
    assert names == ["webarena.1.json", "webarena.2_error.json", "webarena.3.json"]


def test_the_exported_file_has_the_published_fields(tmp_path: Path) -> None:
    export(tmp_path, [said(1, True, calls=(call(),))], [run(1, "webarena.raw.1")], SETTINGS)
    path = tmp_path / "judgments" / "webarena" / "agent" / "judge" / "webarena.raw.1.json"
    content = json.loads(path.read_text())
    assert set(content) == {
        *("benchmark", "goal", "agent", "judge", "judge_model_name", "provider", "judge_args"),
        *("completion_args", "cost", "response", "chat_messages", "trajectory_info"),
    }
    assert content["judge_args"]["use_axtree"] is True
    assert content["cost"] == {"total_price": 0.01}
    assert content["response"]["usage"]["prompt_tokens"] == 120
    assert content["goal"] == "Buy it\n"


@pytest.mark.parametrize("evil", ["../../../evil", "/etc/evil", "..", "a\x00b", "a/../../b", ""])
def test_an_export_stays_inside_its_folder(tmp_path: Path, evil: str) -> None:
    inside = tmp_path / "inside"
    export(inside, [said(1, True, judge=evil)], [run(1, evil or "..")], SETTINGS)
    (path,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert path.resolve().is_relative_to(inside)
    assert len(path.relative_to(inside).parts) == 5


def test_two_attempts_do_not_overwrite_each_other(tmp_path: Path) -> None:
    first, second = run(1), run(1)
    second = second.model_copy(update={"key": first.key.model_copy(update={"attempt": 1})})
    again = said(1, False).model_copy(update={"key": second.key})
    with pytest.raises(UserError, match="one file for"):
        export(tmp_path, [said(1, True), again], [first, second], SETTINGS)


def test_half_a_character_is_exported_as_a_replacement(tmp_path: Path) -> None:
    export(tmp_path, [said(1, True, reasoning="\ud800")], [run(1)], SETTINGS)
    assert read(tmp_path)["webarena.1"].judgment.reasoning == "\ufffd"


def test_the_first_sample_is_exported(tmp_path: Path) -> None:
    samples: list[Judgment] = [said(1, False, sample=1), said(1, True, sample=0)]
    export(tmp_path, samples, [run(1)], SETTINGS)
    assert read(tmp_path)["webarena.1"].judgment.success is True


def test_agent_reward_benchs_own_parser_reads_the_export(tmp_path: Path) -> None:
    package = pytest.importorskip("agent_reward_bench.judge", exc_type=ImportError)
    metrics = pytest.importorskip("agent_reward_bench.eval.metrics", exc_type=ImportError)
    judgment = said(1, True, side_effect=False, repetition=True, optimality=3, reasoning="<loop>")
    export(tmp_path, [judgment], [run(1)], SETTINGS)
    (path,) = tmp_path.rglob("*.json")
    reply = json.loads(path.read_text())["response"]["choices"][0]["message"]["content"]
    parsed = package.parse_judgment(reply)
    numbers = {name: metrics.numerize(v) for name, v in parsed.items() if name != "reasoning"}
    assert numbers == {
        "trajectory_success": 1,
        "trajectory_side_effect": 0,
        "trajectory_optimality": 3,
        "trajectory_looping": 1,
    }


@pytest.mark.real_data
@pytest.mark.parametrize(("judge", "stored"), [("webjudge-7b", 779), ("webjudge-gpt-4o", 78)])
def test_every_stored_test_verdict_is_the_published_one(arb: Path, judge: str, stored: int) -> None:
    texts = {
        item.key: item.judgment for item in read_published(arb) if item.judgment.judge == judge
    }
    labels = primary_labels(open_annotations(f"agentrewardbench:{arb}"))
    results = json.loads((arb / "published" / judge / "results.json").read_text())["webjudge"]
    compared = 0
    for benchmark, agents in results.items():
        for agent, cell in agents.items():
            # The arrays carry no ids: they follow the annotations' order, test split, none unsure.
            keys = [
                k
                for k, v in labels.items()
                if v.split == "test"
                and v.success is not None
                and (benchmark_of(k), k.agent) == (benchmark, agent)
            ]
            if not keys:
                continue
            success = cell["trajectory_success"]
            assert [labels[k].success for k in keys] == success["y_human"]
            for k, verdict in zip(keys, success["y_judge"], strict=True):
                if k in texts:
                    assert texts[k].success == verdict, k
                    compared += 1
    assert compared == stored


@pytest.mark.real_data
def test_every_stored_text_holds_a_verdict_and_duplicates_count_once(arb: Path) -> None:
    items = list(read_published(arb))
    assert len(list((arb / "judgments").rglob("*.json"))) == 1037
    assert {item.judgment.status for item in items} == {Status.OK}
    assert len({item.key for item in items}) == 926
    assert {item.judge_model_name for item in items} == {"webjudge-7B", "gpt-4o-2024-11-20"}


@pytest.mark.parametrize(
    "trap",
    [
        {},
        {"goal": 'a goal with "chat_messages": {} and "trajectory_info": {} in it'},
        {"goal": "long " * 10_000},
        {"judge_args": {"use_axtree": True, "chat_messages": "x" * 40_000}},
    ],
    ids=["plain", "keys in a text", "a head without the key", "the key further down"],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_a_large_file_read_from_its_ends_gives_what_the_whole_gives(
    tmp_path: Path, trap: dict[str, object], indent: int | None
) -> None:
    text = "<reasoning>Fine.</reasoning><success>Successful</success><side>No</side>"
    file: dict[str, object] = {
        "judge_model_name": "m",
        "judge_args": {"use_axtree": True, "use_screenshot": False},
        "response": {
            "choices": [{"message": {"content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 3},
        },
        "chat_messages": {"regular": ['"trajectory_info": {', "é" * 30_000], "pruned": []},
        "trajectory_info": {"valid": True, "summary_info": {"cum_reward": 0.5}},
    }
    file = {"goal": "g", **file, **trap}
    small = {**file, "goal": "g", "chat_messages": {}, "judge_args": {"use_axtree": True}}
    for name, content in (("large", file), ("small", small)):
        folder = tmp_path / name / "webarena" / "agent" / "judge"
        folder.mkdir(parents=True)
        (folder / "webarena.1.json").write_text(json.dumps(content, indent=indent))
    (large,), (whole,) = (read_published(tmp_path / name) for name in ("large", "small"))
    assert large.judgment == whole.judgment
    assert large.judgment.success is True
    assert large.official_reward == 0.5


KEYS = ("chat_messages", "trajectory_info", "response", "judge_args", "judge_model_name", "error")
TEXTS = st.one_of(
    st.text(max_size=8),
    st.sampled_from([*KEYS, *(f'"{key}"' for key in KEYS), '","trajectory_info":{}}', "\\", '\\"']),
)
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(TEXTS, st.sampled_from(KEYS)), inner, max_size=3),
    ),
    max_leaves=6,
)
RESPONSE = st.fixed_dictionaries(
    {"choices": st.lists(st.fixed_dictionaries({"message": st.just({"content": "x"})}), max_size=2)}
)
FILE = st.fixed_dictionaries(
    {},
    optional={
        "judge_model_name": TEXTS,
        "judge_args": st.one_of(
            st.none(),
            st.fixed_dictionaries({}, optional={"use_axtree": st.booleans(), "more": ANYTHING}),
        ),
        "response": st.one_of(st.none(), RESPONSE),
        "error": ANYTHING,
        "chat_messages": ANYTHING,
        "trajectory_info": st.fixed_dictionaries(
            {},
            optional={
                "flags": ANYTHING,
                "summary_info": st.just({"cum_reward": 0.5}),
                "chat_messages": ANYTHING,
            },
        ),
        "goal": ANYTHING,
        'odd "trajectory_info': ANYTHING,
        'odd"trajectory_info': ANYTHING,
    },
)


@given(
    FILE,
    st.permutations(range(9)),
    st.sampled_from([None, 0, 2]),
    st.integers(0, 400),
    st.integers(0, 400),
)
def test_the_ends_give_what_the_whole_gives_or_nothing(
    file: dict[str, Any], order: list[int], indent: int | None, head: int, tail: int
) -> None:
    names = sorted(file, key=lambda name: order[list(file).index(name)])
    content = json.dumps({name: file[name] for name in names}, indent=indent).encode()
    cut = max(0, len(content) - tail)
    found = from_ends(content[:head], content[cut:])
    assert found is None or found == from_whole(content)


WHOLE: dict[str, Any] = {
    "goal": "g",
    "judge_model_name": "m",
    "judge_args": {"use_axtree": True, "use_screenshot": False},
    "response": {"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]},
    "chat_messages": {"regular": ["x" * 100]},
    "trajectory_info": {"summary_info": {"cum_reward": 1.0}},
}


def ends(file: dict[str, Any]) -> JudgmentFile | None:
    content = json.dumps(file).encode()
    return from_ends(content, content)


def test_the_layout_of_the_published_files_is_read_from_its_ends() -> None:
    found = ends(WHOLE)
    assert found is not None
    assert found.response is not None
    content = found.response.choices[0].message.content
    assert (content, found.official_reward, found.representation) == ("yes", 1.0, (True, False))


def test_an_error_counts_only_without_an_answer() -> None:
    refused = {**WHOLE, "response": {"choices": []}, "error": {"code": 400}}
    assert ends(refused) is None
    assert from_whole(json.dumps(refused).encode()).error == {"code": 400}


def read_verdict(text: str) -> Verdict | None:
    fields = verdict_fields(text)
    return None if fields is None else Verdict(**fields)


@pytest.mark.parametrize(
    ("text", "success"),
    [
        ("Thoughts: fine.\nStatus: success", True),
        ('Thoughts: fine.\n\nStatus: "success"  \n', True),
        ("Thoughts: no.\nStatus: Failure", False),
        ("Thoughts: it was unsuccessful. Status: failure", False),
        ("Status: unsuccessful", False),
        ("**Status:** success", True),
        ('Thoughts: the page says "Status: success" here.\nStatus: failure', False),
        ("The page ends with Status: success\nStatus: failure", False),
        ("Status: success\nand then more words", True),
        ("<success>Successful</success>", True),
        ("<success> unsuccesful\n</success>", False),
        (
            "<reasoning>it shows <success>Successful</success></reasoning><success>No</success>",
            False,
        ),
        ("<success>Successful</success>\nStatus: failure", True),
    ],
)
def test_the_verdict_is_found(text: str, success: bool) -> None:
    verdict = read_verdict(text)
    assert verdict is not None
    assert verdict.success is success


@pytest.mark.parametrize(
    "text",
    [
        "",
        "It looks successful to me.",
        "Status: unknown",
        "Status: success or failure",
        "<success>Maybe</success>",
        "<reasoning>Status: success</reasoning>",
    ],
)
def test_what_is_no_verdict_is_not_taken_for_one(text: str) -> None:
    assert read_verdict(text) is None


PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                *("<reasoning>", "</reasoning>", "</ reasoning >", "<REASONING>", "<think>"),
                *("</think>", "<success>", "</success>", "Successful", "Unsuccessful", "<side>"),
                *("Yes", "No", "</side>", "<loop>", "</loop>", "<optimal>3. Somewhat Optimal"),
                *("[THINK]", "◁/think▷", "<|channel|>final<|message|>", "analysisWe"),
                *("</optimal>", "\n", " ", "<", ">", "Status: success", "Status: failure", "x"),
            ]
        ),
        st.text(max_size=5),
    ),
    max_size=14,
)


def as_the_parsers_read(text: str) -> Verdict | None:
    tagged = "<reasoning>" in text or "<success>" in text
    try:
        return parse_tags(text) if tagged else parse_status_line(text)
    except ParseFailure:
        return None


@given(PIECES, PIECES, st.booleans())
def test_what_the_end_of_a_reply_decides_is_what_the_whole_reply_says(
    before: list[str], after: list[str], plain: bool
) -> None:
    inside = "".join(before).replace("<", "") if plain else "".join(before)
    text = f"<reasoning>{inside}</reasoning>{''.join(after)}"
    assert read_verdict(text) == as_the_parsers_read(text)
    assert read_verdict(inside) == as_the_parsers_read(inside)


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", ["<reasoning>", "</reasoning>", "Status:", "<success>", " ", "\n"]
)
def test_a_megabyte_of_garbage_is_read_in_no_time(piece: str) -> None:
    assert read_verdict(piece * (1_000_000 // len(piece))) is None


def put_verdict(
    folder: Path, judge: str, task_id: str, success: bool, reward: float | None
) -> None:
    benchmark = task_id.partition(".")[0]
    path = folder / "judgments" / benchmark / "agent" / judge / f"{task_id}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    words = f"Status: {'success' if success else 'failure'}"
    content = {
        "response": {"choices": [{"message": {"content": words}, "finish_reason": "stop"}]},
        "trajectory_info": {"summary_info": {"cum_reward": reward}},
    }
    path.write_text(json.dumps(content))


def test_the_first_reward_that_is_known_counts_whichever_judge_tells_it(tmp_path: Path) -> None:
    put_verdict(tmp_path, "a", "visualwebarena.resized.1", True, None)
    put_verdict(tmp_path, "b", "visualwebarena.1", True, 1.0)
    put_verdict(tmp_path, "c", "visualwebarena.resized.1", True, 0.5)
    put_verdict(tmp_path, "c", "visualwebarena.2", True, None)
    source = read_published_folder(tmp_path, with_labels=False)
    one, two = (key(task, "visualwebarena") for task in (1, 2))
    assert source.rewards == {one: 1.0, two: None}
    assert {j.key for j in source.judgments} == {one, two}


def test_the_last_of_repeated_judgments_counts_and_contradictions_are_told_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the command that made the run goes on with it: they are no samples of one trajectory."""
    labels = [label(task, True) for task in range(4)]
    first = [said(0, True), said(1, True), said(2, True), failed(3, Status.PROVIDER_ERROR)]
    more = [said(0, False), said(2, True), said(3, True), said(3, False, sample=1)]
    run = write_run(tmp_path / "run", [*first, *more], labels)
    source = read_run(run)
    assert [(j.key, j.success) for j in source.judgments if not j.sample] == [
        (key(1), True),
        (key(0), False),
        (key(2), True),
        (key(3), True),
    ]
    assert main([str(run)]) == 0
    told = " ".join(capsys.readouterr().err.split())
    assert (
        f"{run / JUDGMENTS}: holds 3 judgments more than once, 1 of them with another verdict: "
        "the last of each counts"
    ) in told


def test_a_broken_file_is_named_however_often_the_folder_is_read(
    tmp_path: Path,
) -> None:
    for task in (1, 2, 3):
        put_verdict(tmp_path, "a", f"webarena.{task}", True, 1.0)
    broken = tmp_path / "judgments" / "webarena" / "agent" / "a" / "webarena.2.json"
    broken.write_bytes(broken.read_bytes()[:40])
    for _ in range(2):
        source = read_published_folder(tmp_path, with_labels=False)
        (note,) = source.notes
        assert "1 file of a cannot be read" in note
        assert f"{broken}: cannot be read: " in note
        assert [j.status for j in source.judgments].count(Status.SKIPPED) == 1


def test_judges_are_compared_benchmark_by_benchmark_where_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        "annotator_name,benchmark,task_id,model_name,trajectory_success,trajectory_side_effect,"
    ]
    rows[0] += "trajectory_optimality,trajectory_looping"
    for benchmark in ("webarena", "visualwebarena"):
        for task in range(12):
            right = task % 2 == 0
            put_verdict(tmp_path, "good", f"{benchmark}.{task}", right, None)
            put_verdict(tmp_path, "odd", f"{benchmark}.{task}", right != (task < 6), None)
            label = "Successful" if right else "Unsuccessful"
            rows.append(f"A,{benchmark},{benchmark}.{task},agent,{label},No,Unsure,No")
    (tmp_path / "annotations.csv").write_text("\n".join(rows) + "\n")
    words = ["--judgments", str(tmp_path), "--json"]
    found = []
    for more in ([], ["--compare", "benchmark"]):
        assert main([*words, *more]) == 0
        comparison = json.loads(capsys.readouterr().out)["comparison"]
        found.append({d["benchmark"] for d in comparison["differences"]})
    assert found == [{"overall"}, {"overall", "webarena", "visualwebarena"}]
    assert main([*words[:-1], "--compare", "benchmark", "--by", "agent"]) == 0
    lines = one_screen(capsys.readouterr().out, 100)
    assert "All tables: --full; agent by agent and benchmark by benchmark:" in lines
    assert [line.split()[:4] for line in lines[-2:]] == [
        ["VisualWebArena", "good", ">", "odd"],
        ["WebArena", "good", ">", "odd"],
    ]


def part(folder: Path, tasks: range, **manifest: Any) -> Path:
    judged = [said(task, task % 3 > 0) for task in tasks]
    return write_run(folder, judged, [label(task, task % 2 > 0) for task in tasks], **manifest)


def test_what_runs_of_one_judge_hold_on_different_trajectories_is_one_judges(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = part(tmp_path / "whole", range(20), selection={"split": "all"})
    halves = [
        part(tmp_path / "first", range(9), selection={"benchmarks": ["a"]}, data="trajudge:a"),
        part(tmp_path / "second", range(9, 20), training_keys=[], data="trajudge:b"),
    ]
    assert [*combine([read_run(half) for half in halves]).judgments] == [*read_run(whole).judgments]
    screens = []
    for runs in ([whole], halves):
        assert main([*map(str, runs), "--full", "--baselines", "off"]) == 0
        screens.append(capsys.readouterr().out)
    assert screens[0] == screens[1]


@pytest.mark.parametrize(
    ("tasks", "manifest"), [(range(8, 20), {}), (range(9, 20), {"model": "gpt-4.1"})]
)
def test_runs_that_share_a_trajectory_or_differ_in_a_setting_are_told_apart(
    tmp_path: Path, tasks: range, manifest: dict[str, Any]
) -> None:
    runs = [part(tmp_path / "first", range(9)), part(tmp_path / "second", tasks, **manifest)]
    assert judge_names([read_run(run) for run in runs]) == [
        {"judge": f"judge ({run})"} for run in runs
    ]
