"""The pages of a queue over real sockets: who may do what, and what is never shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from tests.app.labelling.sites import Client, Site, queue_site
from tests.app.made_runs import Task, png
from tests.app.serving import served
from tests.eval.cases import key
from trajudge.annotations import open_annotations
from trajudge.annotations.model import Label, Role
from trajudge.annotations.queue import (
    FormAnswers,
    LabelQueue,
    QueueItem,
    QueueSettings,
    create_queue,
)
from trajudge.annotations.queue_files import queue_annotations
from trajudge.app.audit_pages import FrameVerdicts, rank_items, read_rule_texts
from trajudge.app.label_forms import blocks_of, marked, unmarked
from trajudge.app.label_pages import label_room
from trajudge.app.workspace import Workspace
from trajudge.eval.cli import main
from trajudge.eval.labelling.agreement import queue_quality
from trajudge.eval.scoring.records import OVERALL
from trajudge.stats.agreement import annotator_agreement
from trajudge.trajectories import store as trajectory_store
from trajudge.trajectories.model import (
    ImageRef,
    Observation,
    Step,
    Trajectory,
    TrajectoryKey,
)
from trajudge.util.errors import UserError

TASKS = [Task(str(number), number % 2 == 0, number % 3 == 0) for number in range(6)]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with queue_site(tmp_path, TASKS, double=1.0) as running:
        yield running


def test_who_comes_chooses_a_name_first(site: Site) -> None:
    stranger = Client(site)
    assert stranger.get("/queue/next").headers["location"] == "/people"
    assert stranger.post("/people", name=" ").status == 422
    ann = Client(site, "Ann")
    assert "You are" in ann.get("/").text
    assert ann.post("/people", name="Ann").status == 303
    assert "<strong><bdi>Ann</bdi></strong>" in ann.get("/").text
    for path in ("/queue/adjudicate", "/queue/agreement", "/queue/audit", "/queue/audit.csv"):
        assert ann.get(path).status == 403
    assert Client(site, "Joe", "adjudicator").get("/queue/next").status == 403


def test_a_browser_is_another_person_in_another_queue(tmp_path: Path) -> None:
    """Browsers send the cookies of a host to each of its ports."""
    with queue_site(tmp_path / "a", TASKS) as first, queue_site(tmp_path / "b", TASKS) as second:
        ann, other = Client(first, "Ann"), Client(second, "Joe")
        other.cookies = {**ann.cookies, **Client(second).cookies}
        assert other.get("/").headers["location"] == "/people"


def test_a_form_is_drafted_marked_submitted_and_opened_again(site: Site) -> None:
    ann = Client(site, "Ann")
    path = ann.next_item()
    refused = ann.post(path, action="submit", success="yes", comment="so far", **ann.hidden())
    assert refused.status == 422
    assert "side effect, repetition, optimality not answered" in refused.text
    assert "so far" in refused.text  # what was answered is kept
    ann.page = ann.get(path + "?step=2&tab=tree")
    marked = ann.post(
        path + "?step=2&tab=tree",
        action="mark",
        mark_step="1",
        mark_kind="axtree",
        mark_note="the total",
        success="no",
        **ann.hidden(),
    )
    assert marked.headers["location"] == path + "?step=2&tab=tree"
    ann.page = ann.get(path)
    assert "the total" in ann.page.text
    stale = ann.post(path, action="draft", success="no", **{**ann.hidden(), "version": "1"})
    assert stale.status == 409
    whole = {"side_effect": "unsure", "why_side_effect": "not shown", "repetition": "no"}
    fields = {**whole, "success": "no", "optimality": "2", "confidence": "3", **ann.hidden()}
    for _ in range(2):  # sent twice, as by a second click
        assert ann.post(path, action="submit", **fields).headers["location"] == "/queue/next"
    (label,) = queue_annotations(site.store)
    assert (label.success, label.side_effect, label.optimality, label.confidence) == (
        False,
        None,
        2,
        3,
    )
    assert label.unsure_why == {"side_effect": "not shown"}
    assert [(mark.step, mark.note) for mark in label.evidence] == [(1, "the total")]
    assert label.guideline_version and label.blind
    assert ann.get(path).status == 404
    assert ann.post("/queue/reopen").headers["location"] == path
    assert ann.get(path).status == 200


def test_another_persons_item_is_not_open(site: Site) -> None:
    ann, joe = Client(site, "Ann"), Client(site, "Joe")
    path = ann.next_item()
    assert joe.get(path).status == 404
    refused = joe.post(path, action="draft", success="yes", version="0", request="x")
    assert refused.status in (404, 422)
    assert joe.next_item() != path


def test_an_item_is_skipped_with_a_reason_or_given_back(site: Site) -> None:
    ann = Client(site, "Ann")
    path = ann.next_item()
    assert ann.post(path, action="skip", skip_reason="", **ann.hidden()).status == 422
    assert ann.post(path, action="skip", skip_reason="broken", **ann.hidden()).status == 303
    other = ann.next_item()
    assert other != path
    assert ann.post(other, action="release", **ann.hidden()).headers["location"] == "/"


def test_answers_that_are_none_are_refused(site: Site) -> None:
    ann = Client(site, "Ann")
    path = ann.next_item()
    for field, value in (("success", "maybe"), ("optimality", "9"), ("confidence", "7")):
        answer = ann.post(path, action="draft", **{**ann.hidden(), field: value})
        assert answer.status == 422
    assert ann.post(path, action="mark", mark_kind="x", **ann.hidden()).status == 422


def test_what_no_page_sends_is_one_sentence(site: Site) -> None:
    ann = Client(site, "Ann")
    path = ann.next_item()
    digits = "9" * 5_000
    for field in ("version", "confidence", "optimality", "seconds", "mark_step", "person"):
        for value in (digits, "\u0663", "-1", "nan", "\ud800".encode("utf-8", "surrogatepass")):
            for action in ("draft", "mark"):
                fields = {**ann.hidden(), "mark_kind": "action", "action": action, field: value}
                assert ann.post(path, **fields).status in (303, 409, 422)
    texts = {"comment": b"\xff\x00\xed\xa0\x80", "why_success": b"\xed\xa0\x80", "request": b"\x00"}
    ann.page = ann.get(path)
    assert ann.post(path, action="draft", **{**ann.hidden(), **texts}).status == 303
    for other in ("item", "verdicts", "adjudicate", "audit"):
        assert ann.get(f"/queue/{other}/{10**40}").status in (404, 405)
    (own,) = (name for name in ann.cookies if name.startswith("trajudge-annotator-"))
    ann.cookies[own] = digits[:3_000]
    assert ann.get("/").headers["location"] == "/people"


def test_the_informed_stage_is_an_event_of_its_own(tmp_path: Path) -> None:
    with queue_site(tmp_path, TASKS, informed=True) as site:
        ann = Client(site, "Ann")
        path = ann.next_item()
        number = path.rpartition("/")[2]
        assert ann.get(f"/queue/verdicts/{number}").status == 404  # not before the submission
        whole = {"side_effect": "no", "repetition": "no", "optimality": "3"}
        made = ann.post(path, action="submit", success="yes", **whole, **ann.hidden())
        assert made.headers["location"] == f"/queue/verdicts/{number}"
        page = ann.get(made.headers["location"])
        assert "judge" in page.text and "rule-based" in page.text
        key = page.text.split('name="request" value="')[1].split('"')[0]
        revised = {"action": "revise", "request": key, **whole}
        assert ann.post(f"/queue/verdicts/{number}", **revised).status == 422
        made = ann.post(f"/queue/verdicts/{number}", success="no", **revised)
        assert made.headers["location"] == "/queue/next"
        assert ann.post("/queue/reopen").status == 409
        (blind,), (informed,) = (queue_annotations(site.store, s) for s in ("blind", "informed"))
        assert (blind.success, informed.success, informed.seen) == (
            True,
            False,
            ("judge", "rule-based"),
        )


def test_two_annotators_and_an_adjudicator(site: Site) -> None:
    ann, bob = Client(site, "Ann"), Client(site, "Bob")
    paths = [ann.label("yes") for _ in TASKS]
    for _ in TASKS:
        bob.label("no" if len(bob.answers) % 2 else "yes")
    assert bob.next_item() == ""
    assert "Nothing is left for you" in bob.answers[-1].text
    joe = Client(site, "Joe", "adjudicator")
    listed = joe.get("/queue/adjudicate").text
    number = listed.split("/queue/adjudicate/")[1].split('"')[0]
    page = joe.get(f"/queue/adjudicate/{number}")
    assert "Annotator A" in page.text and "Annotator B" in page.text
    assert "Ann<" not in page.text and "Bob" not in page.text
    path = f"/queue/adjudicate/{number}"
    whole = {"side_effect": "no", "repetition": "no", "optimality": "1", "request": "k"}
    assert joe.post(path, success="no", **whole).status == 422
    assert joe.post(path, success="no", reason="never paid", **whole).status == 303
    assert joe.get(path).status == 404
    labels = queue_annotations(site.store)
    assert sum(label.role is Role.ADJUDICATED for label in labels) == 1
    assert len(paths) == len(set(paths)) == len(TASKS)


def test_the_page_of_agreement_is_what_the_statistics_say(site: Site) -> None:
    ann, bob = Client(site, "Ann"), Client(site, "Bob")
    said = ["yes", "no", "yes", "unsure", "no", "yes"]
    for first, second in zip(said, ["yes", "yes", "yes", "no", "no", "no"], strict=True):
        ann.label(first)
        bob.next_item()  # leased, so that both get the same order
        bob.label(second)
    joe = Client(site, "Joe", "adjudicator")
    shown = orjson.loads(site.served.ask(
        "/queue/agreement", Accept="application/json",
        Cookie="; ".join(f"{n}={v}" for n, v in joe.cookies.items()),
    ).text)  # fmt: skip
    opinions: dict[str, list[Label]] = {}
    for label in queue_annotations(site.store):
        opinions.setdefault(label.key.task_id, []).append(label)
    values = {True: 1.0, False: 0.0, None: float("nan")}
    pairs = [
        [values[x.success] for x in several] for several in opinions.values() if len(several) > 1
    ]
    tasks = [task for task, several in opinions.items() if len(several) > 1]
    expected = annotator_agreement(list(zip(*pairs, strict=True)), tasks)
    (success,) = (x for x in shown["agreements"] if x["label"] == "success")
    assert abs(success["raw"] - expected.raw.estimate[0]) < 1e-12
    assert abs(success["kappa"] - expected.kappa.estimate[0]) < 1e-12
    assert abs(success["alpha"] - expected.alpha.estimate[0]) < 1e-12
    assert "Cohen" in joe.get("/queue/agreement").text


def test_the_reference_agreement_of_agentrewardbench(real_data: Path, tmp_path: Path) -> None:
    """Test split, success: n = 84, raw 0.893, kappa 0.777 (specs: 4.9)."""
    source = f"agentrewardbench:{real_data / 'agentrewardbench'}"
    labels = [x for x in open_annotations(source) if x.split == "test"]
    wanted: dict[TrajectoryKey, int] = {}
    for label in labels:
        wanted[label.key] = wanted.get(label.key, 0) + 1
    items = [
        QueueItem(key=key, raw_task_id=key.task_id, wanted=n) for key, n in wanted.items() if n > 1
    ]
    create_queue(tmp_path, QueueSettings(), items)
    assert main(["label", "import", str(tmp_path), "--annotations", source]) == 0
    store = LabelQueue(tmp_path)
    success = next(
        x
        for x in queue_quality(store).agreements
        if x.label == "success" and x.benchmark == OVERALL
    )
    assert success.n == 84
    assert round(success.raw or 0, 3) == 0.893
    assert round(success.kappa or 0, 3) == 0.777


def test_the_audit_ranks_what_judges_contradict_and_keeps_a_register(site: Site) -> None:
    joe = Client(site, "Joe", "adjudicator")
    page = joe.get("/queue/audit").text
    number = page.split('id="item-')[1].split('"')[0]
    item = joe.get(f"/queue/audit/{number}").text
    assert "Its text is not known" in item
    assert "no label yet" in item
    made = joe.post(f"/queue/audit/{number}", ruling="task_broken", note="=cmd()")
    assert made.headers["location"] == f"/queue/audit/{number}"
    assert joe.post(f"/queue/audit/{number}", ruling="nonsense").status == 422
    assert joe.post("/queue/audit/999", ruling="rule_wrong").status == 404
    assert "task broken" in joe.get("/queue/audit").text
    register = joe.get("/queue/audit.csv").text.splitlines()
    assert len(register) == 2
    assert register[1].endswith("task_broken,'=cmd(),Joe")


def test_labels_weigh_the_judges_of_the_audit(tmp_path: Path) -> None:
    """The judge says yes to even tasks and is right in two of three; the rule says what it says,
    so that only labels can tell where it is wrong."""
    tasks = [Task(f"{n:02}", n % 2 == 0 and n % 3 != 0, n % 2 == 0) for n in range(30)]
    with queue_site(tmp_path, tasks) as site:
        verdicts = FrameVerdicts(site.store.folder)
        before = rank_items(site.store, verdicts)
        assert before.labels == 0
        said = [(one.success, one.score) for one in verdicts.of(key("00"))]
        assert said == [(True, 0.8), (True, None)]  # the rule gives no score
        assert [row.rank for row in before.items] == [*range(1, 31)]
        truth = {key(task.name): bool(task.truth) for task in tasks}
        person = site.store.add_person("Bob")[0].id
        while (offer := site.store.claim_next(person)) is not None:
            drawn = site.store.item(offer.item)
            assert drawn is not None
            success = "yes" if truth[drawn.key] else "no"
            answers = FormAnswers(success=success, side_effect="no", repetition="no", optimality=3)
            site.store.submit(person, offer.item, answers, 0, f"x{offer.item}")
        after = rank_items(site.store, verdicts)
        assert after.labels == 30
        top = after.items[0]
        assert top.rule is True  # it calls ten of fifteen right, and no wrong
        assert top.wrong == pytest.approx(1 / 3, abs=0.1)
        (judge,) = top.with_it
        assert top.against == ()
        assert not any(row.with_it and row.against for row in after.items)
        assert (judge.right, judge.labelled) == (10, 15)


QUERIES = (
    *("?step=2", "?tab=tree", "?tab=tree&diff=1&step=2", "?tab=answer"),
    *("?tab=metadata", "?tab=state"),
)
AGENT, SENTINEL = "agent-SENTINEL-7c1", "SENTINEL-9e4f"


def test_no_byte_of_a_blind_page_tells_a_verdict_or_the_agent(tmp_path: Path) -> None:
    """Sentinels stand in every field that a blind page must not show."""
    runs = []
    for number in range(12):
        key = TrajectoryKey(benchmark="webarena", agent=AGENT, task_id=f"{number}")
        problem = ImageRef(problem=f"/data/{AGENT}/0.png is gone")
        seen = Observation(url="http://shop.test/", axtree="[1] link 'x'", screenshot=problem)
        steps = (
            Step(index=0, observation=seen, action="click('1')"),
            Step(index=1, observation=seen),
        )
        runs.append(
            Trajectory(
                key=key, raw_task_id=f"{number}", goal="Buy a mug", answer="Done.", steps=steps,
                official_reward=0.123456789, telemetry={SENTINEL: 0.123456789},
                goal_images=(ImageRef(data=png(shade=number)), problem),
                metadata={"warnings": [SENTINEL], SENTINEL: SENTINEL},
            )
        )  # fmt: skip
    trajectory_store.write(tmp_path / "data", runs)
    items = [
        QueueItem(
            key=run.key, raw_task_id=f"{SENTINEL}{at}", stratum=f"webarena / {AGENT} / {SENTINEL}",
            inclusion_probability=0.123456789, reason=SENTINEL, position=at,
            gold={"success": True} if at % 2 else None,
        )
        for at, run in enumerate(runs)
    ]  # fmt: skip
    items.append(
        items[0].model_copy(update={"key": items[0].key.model_copy(update={"task_id": "gone"})})
    )
    create_queue(tmp_path / "queue", QueueSettings(strategy=SENTINEL, runs=(SENTINEL,)), items)
    store = LabelQueue(tmp_path / "queue")
    with served(Workspace({}, (f"trajudge:{tmp_path / 'data'}",)), [label_room(store)]) as server:
        ann = Client(Site(server, store), "Ann")
        for _ in range(13):
            path = ann.get("/queue/next").headers["location"]
            ann.page = ann.get(path)
            if ann.page.status == 404:  # the trajectory that is not in the data
                made = ann.post(path, action="skip", skip_reason="gone", **ann.hidden())
                assert made.status == 303
                continue
            for query in (
                "?step=2",
                "?tab=tree",
                "?tab=tree&diff=1&step=2",
                "?tab=answer",
                "?tab=metadata",
                "?tab=state",
            ):
                ann.get(path + query)
            ann.post(path, action="submit", success="yes", **ann.hidden())
            whole = {"side_effect": "no", "repetition": "no", "optimality": "3"}
            ann.page = ann.get(path)
            made = ann.post(path, action="submit", success="yes", **whole, **ann.hidden())
            assert made.status == 303
        for path in ("/", "/queue/next", "/queue/item/1", "/queue/verdicts/1", "/t/webarena/x/1/0"):
            ann.get(path)
    sent = "".join(str(answer.headers) + answer.text for answer in ann.answers)
    assert len(ann.answers) > 12 * 8
    assert "Picture 1 of the goal" in sent
    assert len(store.readings()) == 12
    assert len(queue_annotations(store)) == 6  # without the hidden checks
    for hidden in (AGENT, SENTINEL, "0.123456789", "0.1234", "hidden check", "gold"):
        assert hidden not in sent, hidden


def test_guidelines_are_a_small_subset_and_all_else_is_text() -> None:
    blocks = blocks_of(
        "# Rules\n\n- **one**: `x`\n- two\n  more\n\n<script>a</script> [l](javascript:b)"
    )
    assert [block.kind for block in blocks] == ["heading", "list", "paragraph"]
    assert [span.kind for span in blocks[1].lines[0]] == ["strong", "text", "code"]
    assert blocks[2].lines[0][0].text == "<script>a</script> [l](javascript:b)"


def test_a_list_goes_on_until_something_else_comes() -> None:
    blocks = blocks_of("- a\n- b\n\n- c\nmore\n\nd\n- e")
    assert [(block.kind, len(block.lines)) for block in blocks] == [
        ("list", 2), ("list", 1), ("paragraph", 1), ("list", 1)
    ]  # fmt: skip
    assert "".join(span.text for span in blocks[1].lines[0]) == "c more"


def test_a_mark_is_taken_back_by_its_place() -> None:
    answers = FormAnswers()
    for step in ("3", "4", "4", "5"):
        answers = marked(answers, {"mark_step": step, "mark_kind": "action"})
    assert [mark.step for mark in answers.evidence] == [3, 4, 5]
    assert [mark.step for mark in unmarked(answers, "1").evidence] == [3, 5]


@pytest.mark.real_data
def test_published_task_files_are_read(real_data: Path) -> None:
    folder = real_data / "webarena"
    for name, words in (
        ("test.raw.json", ('"exact_match": "Quest Lumaflex\u2122 Band"', '"string_match"')),
        ("webarena-verified.json", ('"AgentResponseEvaluator"', '"retrieve"')),
    ):
        texts = read_rule_texts(folder / name)
        assert len(texts) == 812
        known = texts.get(key("0").task_id)
        assert known is not None
        assert all(word in known.specification for word in words)
        assert "reference_url" not in known.specification  # it is empty there
        assert "top-1 best-selling" in known.intent


def test_a_file_of_ones_own_and_one_that_is_none(tmp_path: Path) -> None:
    file = tmp_path / "tasks.json"
    file.write_text(json.dumps([{"task_id": "own.7", "eval": {"must": ["x"], "none": []}}]))
    assert read_rule_texts(file)["own.7"].specification == '{\n  "must": [\n    "x"\n  ]\n}'
    for text in ("{}", "[1]", "", "[" * 100_000):
        file.write_text(text)
        with pytest.raises(UserError, match="is not a list of tasks"):
            read_rule_texts(file)
    with pytest.raises(UserError, match="is not a list of tasks"):
        read_rule_texts(tmp_path / "absent.json")
