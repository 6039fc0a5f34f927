"""The label store: offers, leases, submissions, second stage, adjudication."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest

from tests.annotations.queues import Clock, answers, disputed, item, label, names, queue
from trajudge.annotations.model import Role
from trajudge.annotations.queue import (
    LEASE_MILLISECONDS,
    FormAnswers,
    LabelConflict,
    LabelQueue,
    LabelRefused,
    QueueSettings,
    cleaned,
    create_queue,
)
from trajudge.annotations.queue_files import queue_annotations
from trajudge.util.errors import UserError


def test_first_readings_go_out_before_second_ones_and_each_item_once_to_a_person(
    tmp_path: Path,
) -> None:
    store = queue(tmp_path, [item(0, wanted=2), item(1), item(2, wanted=2)])
    a, b = names(store, "a", "b")
    first = store.claim_next(a)
    assert first is not None and first.item == 1
    assert label(store, b) == 2
    assert label(store, b) == 3
    assert label(store, b) == 1  # the second reading of what a holds
    assert store.claim_next(b) is None
    assert label(store, a) == 1
    assert label(store, a) == 3
    assert store.claim_next(a) is None
    assert astuple(store.progress(a))[:4] == (5, 5, 3, 3)


def test_a_lease_ends_and_the_item_goes_to_another(tmp_path: Path) -> None:
    clock = Clock()
    store = queue(tmp_path, [item(0)], clock)
    a, b = names(store, "a", "b")
    assert store.claim_next(a) is not None
    assert store.claim_next(b) is None
    clock.seconds += LEASE_MILLISECONDS / 1000 - 1
    assert store.renew(a, 1)
    clock.seconds += 2
    assert store.claim_next(b) is None  # renewed by activity
    clock.seconds += LEASE_MILLISECONDS / 1000
    assert label(store, b) == 1
    assert not store.renew(a, 1)
    with pytest.raises(LabelRefused, match="finished or given to others"):
        store.submit(a, 1, answers(), 0, "late")
    assert store.claim_next(a) is None


def test_whose_lease_ended_may_finish_while_nobody_else_took_the_item(tmp_path: Path) -> None:
    clock = Clock()
    store = queue(tmp_path, [item(0), item(1)], clock)
    (a,) = names(store, "a")
    store.claim_next(a)
    version = store.save_draft(a, 1, answers("no"), 0)
    clock.seconds += 10 * LEASE_MILLISECONDS
    offer = store.claim_next(a)
    assert offer is not None and offer.item == 1
    store.submit(a, 1, answers("no"), version, "r")


def test_a_draft_is_kept_and_a_submission_sent_twice_is_one_event(tmp_path: Path) -> None:
    store = queue(tmp_path, [item(0)])
    (a,) = names(store, "a")
    store.claim_next(a)
    who = (a, 1)
    half = FormAnswers(success="yes", comment="so far")
    version = store.save_draft(*who, half, 0)
    assert store.save_draft(*who, half, version) == version
    assert store.own_reading(*who).answers == half
    with pytest.raises(LabelRefused, match="side effect, repetition, optimality not answered"):
        store.submit(*who, half, version, "one")
    first = store.submit(*who, answers(), version, "one")
    assert store.submit(*who, answers(), version, "one") == first
    kinds = Counter(event["kind"] for event in store.events())
    assert kinds == {"opened": 1, "draft": 1, "submitted": 1}
    with pytest.raises(LabelRefused):
        store.save_draft(*who, half, first)


def test_two_windows_do_not_overwrite_each_other(tmp_path: Path) -> None:
    store = queue(tmp_path, [item(0)])
    (a,) = names(store, "a")
    store.claim_next(a)
    who = (a, 1)
    version = store.save_draft(*who, answers("no"), 0)
    with pytest.raises(LabelConflict) as conflict:
        store.save_draft(*who, answers("yes"), 0)
    assert (conflict.value.version, conflict.value.answers) == (version, answers("no"))
    assert store.save_draft(*who, answers("yes"), version) > version
    assert store.own_reading(*who).answers == answers("yes")


def test_what_was_skipped_or_given_back_goes_to_others(tmp_path: Path) -> None:
    store = queue(tmp_path, [item(0), item(1)])
    a, b = names(store, "a", "b")
    store.claim_next(a)
    with pytest.raises(LabelRefused, match="say why"):
        store.give_up("skipped", a, 1, " ", "s")
    with pytest.raises(LabelRefused, match="not yours to label"):
        store.give_up("skipped", b, 1, "it is another's", "s")
    store.give_up("skipped", a, 1, "in a language that I do not read", "s")
    store.give_up("skipped", a, 1, "again", "s")
    store.claim_next(a)
    store.give_up("released", a, 2, "given back", "r")
    assert store.claim_next(a) is None
    assert [label(store, b), label(store, b)] == [1, 2]
    with pytest.raises(LabelRefused, match="not yours to label"):
        store.give_up("skipped", b, 2, "it is labelled", "t")


def test_a_label_of_a_file_counts_once_a_person_and_fills_the_item(tmp_path: Path) -> None:
    store = queue(tmp_path, [item(0, wanted=2)])
    people = names(store, "a", "a2", "b", "c")
    order = [0, 0, 2, 3]
    taken = [store.import_label(people[n], 1, answers(), f"r{at}") for at, n in enumerate(order)]
    assert taken == [True, False, True, False]


def test_texts_and_names_have_their_limits(tmp_path: Path) -> None:
    store = queue(tmp_path, [item(0)])
    assert cleaned("x" * 20_000) == "x" * 20_000
    with pytest.raises(LabelRefused, match="longer than 20,000 characters"):
        cleaned("x" * 20_001)
    assert store.add_person("x" * 100)[0].name == "x" * 100
    with pytest.raises(UserError, match="give 1 to 100 printable"):
        store.add_person("x" * 101)


def test_a_submission_can_be_opened_again_for_five_minutes(tmp_path: Path) -> None:
    clock = Clock()
    store = queue(tmp_path, [item(0), item(1)], clock)
    a, b = names(store, "a", "b")
    assert store.reopen(a) is None
    label(store, a, "yes")
    assert store.reopen(a) == 1
    assert store.reopen(a) == 1
    offer = store.claim_next(b)
    assert offer is not None and offer.item == 2  # nobody else gets it meanwhile
    assert label(store, a, "no") == 1
    assert [(x.annotator, x.success) for x in queue_annotations(store)] == [("a", False)]
    clock.seconds += 299.999
    assert store.reopen(a) == 1
    assert label(store, a, "no") == 1
    clock.seconds += 300
    assert store.reopen(a) is None


def test_the_informed_stage_stands_beside_the_blind_label(tmp_path: Path) -> None:
    store = queue(tmp_path, [item(0), item(1)], informed=True)
    (a,) = names(store, "a")
    store.claim_next(a)
    who = (a, 1)
    with pytest.raises(LabelRefused, match="only after a submission"):
        store.show_verdicts(*who, ("aer",))
    store.submit(*who, answers("yes"), 0, "blind")
    with pytest.raises(LabelRefused):
        store.revise(*who, answers("no"), "revised")
    store.show_verdicts(*who, ("aer", "rule-based"))
    store.show_verdicts(*who, ("aer", "rule-based"))
    assert store.reopen(a) is None  # the blind label is settled once verdicts were shown
    number = store.revise(*who, answers("no"), "revised")
    assert store.revise(*who, answers("no"), "revised") == number
    with pytest.raises(LabelRefused, match="once"):
        store.revise(*who, None, "again")
    (blind,) = queue_annotations(store)
    (informed,) = queue_annotations(store, "informed")
    assert (blind.success, blind.blind, blind.seen) == (True, True, ())
    assert (informed.success, informed.blind) == (False, False)
    assert informed.seen == ("aer", "rule-based")


@pytest.mark.parametrize(("second", "kept"), [(None, True), ("yes", True), ("no", False)])
def test_the_second_stage_records_whether_the_answers_were_kept(
    second: str | None, kept: bool, tmp_path: Path
) -> None:
    store = queue(tmp_path, [item(0)], informed=True)
    (a,) = names(store, "a")
    store.claim_next(a)
    store.submit(a, 1, answers("yes"), 0, "blind")
    store.show_verdicts(a, 1, ("aer",))
    store.revise(a, 1, None if second is None else answers(second), "revised")
    with sqlite3.connect(store.folder / "labels.sqlite") as connection:
        revised = "SELECT payload FROM event WHERE kind = 'revised'"
        ((payload,),) = connection.execute(revised).fetchall()
    assert json.loads(payload)["kept"] is kept


def test_nobody_adjudicates_their_own_item(tmp_path: Path) -> None:
    store, a, _, judge = disputed(tmp_path)
    with pytest.raises(LabelRefused, match="Only an adjudicator"):
        store.adjudicate(a, 1, answers(), "because", "x")
    with sqlite3.connect(store.folder / "labels.sqlite") as connection:
        connection.execute("UPDATE person SET role = 'adjudicator' WHERE id = ?", (a,))
    assert store.disputes(a) == []
    with pytest.raises(LabelRefused, match="labelled or opened themselves"):
        store.adjudicate(a, 1, answers(), "because", "x")
    (dispute,) = store.disputes(judge)
    assert dispute.questions == ("success",)
    with pytest.raises(LabelRefused, match="reason"):
        store.adjudicate(judge, 1, answers("no"), "", "y")
    event = store.adjudicate(judge, 1, answers("no"), "it was not bought", "y")
    assert store.adjudicate(judge, 1, answers("no"), "it was not bought", "y") == event
    assert store.disputes(judge) == []
    roles = [(x.annotator, x.role, x.success) for x in queue_annotations(store)]
    assert roles == [
        ("a", Role.PRIMARY, True),
        ("b", Role.SECONDARY, False),
        ("j", Role.ADJUDICATED, False),
        ("a", Role.PRIMARY, True),
    ]


def test_an_item_is_sent_back_once(tmp_path: Path) -> None:
    clock = Clock()
    create_queue(tmp_path, QueueSettings(), [item(0, wanted=2)])
    store = LabelQueue(tmp_path, clock)
    a, b = names(store, "a", "b")
    judge = store.add_person("j", "adjudicator")[0].id
    label(store, a, "yes")
    label(store, b, "no")
    store.send_back(judge, 1, "look at step 4")
    assert store.disputes(judge) == []
    offer = store.claim_next(a)
    assert offer is not None and offer.returned == "look at step 4"
    clock.seconds += 60
    assert label(store, a, "yes") == label(store, b, "no") == 1
    assert store.claim_next(a) is None
    (dispute,) = store.disputes(judge)
    assert dispute.returned
    with pytest.raises(LabelRefused, match="once"):
        store.send_back(judge, 1, "again")
    assert astuple(store.progress())[:2] == (2, 2)


def test_events_are_only_appended(tmp_path: Path) -> None:
    store, a, *_ = disputed(tmp_path)
    store.guideline_shown(a, "v1")
    store.guideline_shown(a, "v1")
    with (
        sqlite3.connect(tmp_path / "labels.sqlite") as connection,
        pytest.raises(sqlite3.IntegrityError, match="only appended"),
    ):
        connection.execute("UPDATE event SET payload = '{}'")


def test_a_token_admits_its_person_and_the_store_keeps_no_token(tmp_path: Path) -> None:
    store = queue(tmp_path, [item(0)])
    person, token = store.add_person("a")
    assert store.person_by_token(token) == person
    assert store.person_by_token("other") is None
    assert token not in str(person.token_hash)
    with pytest.raises(UserError, match="already"):
        store.add_person("a")
    with pytest.raises(UserError, match="printable"):
        store.add_person("\u202ea")


def test_a_queue_is_made_once_and_a_folder_without_one_says_how(tmp_path: Path) -> None:
    queue(tmp_path, [item(0)])
    with pytest.raises(UserError, match="holds a queue already"):
        queue(tmp_path, [item(0)])
    with pytest.raises(UserError, match="trajudge label build"):
        LabelQueue(tmp_path / "none")
    with pytest.raises(UserError, match=r"agent-a/webarena\.0 is in the queue twice"):
        create_queue(tmp_path / "other", QueueSettings(), [item(1), item(0), item(0)])


def test_any_order_of_actions_keeps_the_rules(tmp_path: Path) -> None:
    """A random walk over all actions: no item above its wanted count, none twice to a person."""
    clock = Clock()
    items = [item(i, wanted=1 + i % 3) for i in range(12)]
    store = queue(tmp_path, items, clock)
    crowd = names(store, *"abcde")
    random = np.random.default_rng(7)
    opened: Counter[tuple[int, int]] = Counter()
    for step in range(400):
        person = int(random.choice(crowd))
        clock.seconds += float(random.choice([1, 60, 1000]))
        offer = store.claim_next(person)
        if offer is None:
            store.reopen(person)
            continue
        who = (person, offer.item)
        version = store.own_reading(*who).version
        action = random.choice(["submit", "draft", "skip", "leave"], p=[0.5, 0.3, 0.1, 0.1])
        if action == "draft":
            store.save_draft(*who, FormAnswers(comment=str(step)), version)
        elif action == "submit":
            store.submit(*who, answers(str(random.choice(["yes", "no"]))), version, str(step))
        elif action == "skip" and not offer.returned and version == 0:
            store.give_up("skipped", *who, "unclear", str(step))
    labels = {(e["item"], e["person"]) for e in store.events() if e["kind"] == "submitted"}
    counts = Counter(number for number, _ in labels)
    assert all(counts[number] <= stored.wanted for number, stored in store.items())
    opened.update((e["item"], e["person"]) for e in store.events("opened"))
    assert set(opened.values()) == {1}
    assert sum(counts.values()) > 12


WORKER = """
import sys
from pathlib import Path
from threading import Thread
from tests.annotations.queues import answers
from trajudge.annotations.queue import LabelQueue

store = LabelQueue(Path(sys.argv[1]))

def work(person):
    while (offer := store.claim_next(person)) is not None:
        who = (person, offer.item)
        version = store.own_reading(*who).version
        number = store.submit(*who, answers(), version, f"{offer.item}")
        sys.stdout.write(f"{number}\\n")
        sys.stdout.flush()

threads = [Thread(target=work, args=(int(person),)) for person in sys.argv[2:]]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


@pytest.mark.slow
def test_two_processes_of_four_annotators_lose_nothing_when_one_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "queue"
    store = queue(folder, [item(i, wanted=2) for i in range(120)])
    crowd = [str(person) for person in names(store, *"abcdefgh")]
    halves = [crowd[:4], crowd[4:]]
    command = [sys.executable, "-c", WORKER, str(folder)]
    workers = [
        subprocess.Popen([*command, *half], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for half in halves
    ]
    killed = workers[0]
    assert killed.stdout is not None
    first = [killed.stdout.readline() for _ in range(20)]
    os.kill(killed.pid, signal.SIGKILL)
    outputs = [worker.communicate() for worker in workers]
    again = subprocess.run([*command, *halves[0]], capture_output=True, check=True)
    assert b"locked" not in outputs[1][1] + again.stderr
    acknowledged = b"".join([*first, *(out for out, _ in outputs), again.stdout]).split()
    events = list(store.events("submitted"))
    submitted = {event["id"] for event in events}
    assert {int(number) for number in acknowledged} <= submitted
    assert len({(e["person"], e["item"]) for e in events}) == len(submitted)
    assert astuple(store.progress())[:4] == (240, 240, 120, 120)
