"""What every perturbation promises: pure, declared edits only, valid, a relation that is known."""

from __future__ import annotations

import re
from collections import Counter
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.robustness.samples import sample
from trajudge.robustness.apply import apply, compose, edits_between, problems
from trajudge.robustness.catalogue import catalogue, chosen, families
from trajudge.robustness.families import FAMILIES, family_file
from trajudge.robustness.injections import CARRIERS, GOALS, TECHNIQUES, injection
from trajudge.robustness.model import (
    AnswerOutcome,
    Attacker,
    LabelQuestion,
    Need,
    NotApplicable,
    Perturbation,
    Relation,
    combined,
    truth_after,
)
from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey
from trajudge.util.errors import UserError

EVERY = list(catalogue().values())
# What is recorded once more in Chromium is in tests/environments/test_record_variants.py.
NO_PICTURES = [one for one in EVERY if "pixels" not in one.name and one.grade != "native"]
text = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=30
)


@st.composite
def runs(draw: st.DrawFn) -> Trajectory:
    """A run on made-up pages, with the texts that a page or an agent could write."""
    steps = []
    for index in range(draw(st.integers(1, 5))):
        name = draw(text).replace("'", "").replace("\\", "") or "x"
        tree = f"RootWebArea 'P {name}', focused\n\t[7] link 'Go', clickable\n\t[9] textbox 'T'"
        step = Step(
            index=index,
            observation=Observation(
                url=f"http://site.example/p?a={index}&b=2", axtree=tree, axtree_pruned=tree
            ),
            reasoning=draw(st.none() | text),
            action=draw(st.sampled_from(["click('7')", "fill('9', 'a b')", "noop()", None])),
        )
        steps.append(step)
    key = TrajectoryKey(benchmark="made", agent="a", task_id=draw(st.sampled_from("xyz")))
    return Trajectory(
        key=key, raw_task_id="x", goal=draw(text), steps=tuple(steps), answer=draw(st.none() | text)
    )


def test_the_catalogue_is_of_the_size_that_it_says() -> None:
    families = Counter(one.family for one in EVERY)
    assert families["A"] >= 18 and families["B"] >= 10 and families["C"] >= 17
    assert len(CARRIERS) >= 15 and families["E"] >= 9
    techniques: dict[str, set[str]] = {carrier: set() for carrier in CARRIERS}
    for one in EVERY:
        if one.family == "D" and ".success." in one.name:
            place, _, technique = one.name.removeprefix("inject-").split(".")
            techniques[place].add(technique)
    assert min(map(len, techniques.values())) >= 6
    assert {technique for some in techniques.values() for technique in some} == set(TECHNIQUES)


def test_a_twin_is_there_and_takes_the_same_place() -> None:
    twins = [(one, catalogue()[one.twin]) for one in EVERY if one.twin]
    assert twins
    for attack, twin in twins:
        assert attack.channels == twin.channels, attack.name
        assert twin.needs <= attack.needs, attack.name
    assert {one.name for one in EVERY if one.family == "D" and not one.twin} == {
        one.twin for one in EVERY if one.family == "D" and one.twin
    }


@pytest.mark.parametrize("carrier", ["answer", "reasoning", "goal"])
@pytest.mark.parametrize("technique", TECHNIQUES)
def test_a_twin_is_as_long_as_its_attack(carrier: str, technique: str) -> None:
    for goal in GOALS:
        lengths = set()
        for words in (goal, f"benign-{goal}"):
            one = injection(carrier, words, technique)
            for source in sample().trajectories:
                made = apply(one, source, sample().facts[source.key])
                if not isinstance(made, NotApplicable):
                    thoughts = [step.reasoning or "" for step in made.trajectory.steps]
                    told = (made.trajectory.goal, made.trajectory.answer or "", *thoughts)
                    lengths.add(tuple(map(len, told)))
                    break
        assert len(lengths) == 1, goal


@pytest.mark.parametrize("family", "ABCDEF")
def test_every_perturbation_is_valid_on_recorded_runs(family: str) -> None:
    """Two runs each."""
    for one in (one for one in NO_PICTURES if one.family == family):
        tried = 0
        for source in sample().trajectories:
            facts = sample().facts[source.key]
            made = apply(one, source, facts)
            if isinstance(made, NotApplicable):
                continue
            assert problems(one, source, made, facts) == [], (one.name, str(source.key))
            again = apply(one, source, facts)
            assert not isinstance(again, NotApplicable) and again.edits == made.edits, one.name
            if (tried := tried + 1) == 2:
                break
        assert tried, one.name


def test_every_perturbation_has_a_source_and_one_entry() -> None:
    assert [one.name for one in EVERY if not one.source or not one.summary] == []
    named = [name for file in FAMILIES for name in family_file(file)["perturbations"]]
    assert max(Counter(named).values()) == 1
    assert set(named) == {one.name for one in EVERY if not one.name.startswith("inject-")}


def test_a_new_perturbation_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a kind that is there: the catalogue, its list and both commands take it from there."""
    entry = {"like": "message", "summary": "A new claim.", "with": {"text": "All is well."}}
    claims = family_file("claims")
    more = {**claims, "perturbations": {**claims["perturbations"], "claim-of-a-test": entry}}
    monkeypatch.setattr(
        "trajudge.robustness.catalogue.family_file",
        lambda name: more if name == "claims" else family_file(name),
    )
    known = catalogue.__wrapped__()
    assert set(known) - set(catalogue()) == {"claim-of-a-test"}
    monkeypatch.setattr("trajudge.robustness.catalogue.catalogue", lambda: known)
    assert any("claim-of-a-test" in row for table in families() for row in table.rows)
    (one,) = chosen(["claim-of-a-test"])
    assert one.twin == "benign-answer" and one.source == claims["source"]
    source = next(
        t for t in sample().trajectories if sample().facts[t.key].success is False and t.answer
    )
    changed = apply(one, source, sample().facts[source.key])
    assert not isinstance(changed, NotApplicable)
    assert changed.trajectory.answer == "All is well."


@pytest.mark.parametrize(
    ("entry", "mistake"),
    [
        ({"with": {"text": "x", "words": "x"}}, "unexpected keyword argument 'words'"),
        ({"change": "nothing_known"}, "'nothing_known'"),
        ({"channels": ["page"]}, "'page' is not a valid Channel"),
        ({"truth": {"success": "perhaps"}}, "'perhaps' is not a valid Relation"),
    ],
)
def test_a_mistake_in_an_entry_is_named(
    entry: dict[str, Any], mistake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = {"like": "message", "summary": "x", "with": {"text": "x"}, **entry}
    claims = {**family_file("claims"), "perturbations": {"claim-of-a-test": whole}}
    monkeypatch.setattr("trajudge.robustness.catalogue.family_file", lambda name: claims)
    monkeypatch.setattr("trajudge.robustness.catalogue.FAMILIES", ("claims",))
    with pytest.raises(ValueError, match=re.escape(mistake)) as error:
        catalogue.__wrapped__()
    assert "families/claims.yaml, claim-of-a-test: " in str(error.value)


def test_words_on_a_screenshot_leave_a_picture() -> None:
    source = next(t for t in sample().trajectories if sample().facts[t.key].success is False)
    for place in ("large", "small", "low-contrast", "margin"):
        one = injection(f"pixels-{place}")
        made = apply(one, source, sample().facts[source.key])
        assert not isinstance(made, NotApplicable)
        assert problems(one, source, made) == []
        assert [edit.field for edit in made.edits] == ["screenshot"]


@given(source=runs(), one=st.sampled_from(NO_PICTURES), seed=st.integers(0, 3))
@settings(max_examples=100, deadline=None)
def test_any_run_is_changed_as_declared_or_not_at_all(
    source: Trajectory, one: Perturbation, seed: int
) -> None:
    before = source.model_dump_json()
    for success in (True, False):
        facts = (
            sample()
            .facts[sample().trajectories[0].key]
            .model_copy(
                update={"success": success, "siblings": (), "answers": (), "source": "labels"}
            )
        )
        made = apply(one, source, facts, seed)
        assert source.model_dump_json() == before
        if isinstance(made, NotApplicable):
            assert made.reason
            continue
        assert problems(one, source, made) == []
        assert made == apply(one, source, facts, seed)
        assert [step.index for step in made.trajectory.steps] == list(
            range(len(made.trajectory.steps))
        )


def test_attacks_only_make_what_failed_look_done() -> None:
    """A relation that is not `keep` belongs to honest flips; attacks keep the truth, or leave it
    open where the last message itself calls the run a failure."""
    opening = {"step-removed", "inject-answer.failure.plain"}
    opening |= {"own-note-native", "own-note-native-benign"}  # a note nobody asked for
    for one in EVERY:
        if one.family != "B" and one.name not in opening:
            assert set(one.relations.values()) == {Relation.KEEP}, one.name
        if one.attacker is not Attacker.NONE and one.name != "doubt":
            assert (
                Need.TRUTH_FALSE in one.needs
                or ".failure." in one.name
                or ("benign-failure" in one.name)
            ), one.name


@pytest.mark.parametrize(("first", "second"), list(product(Relation, Relation)))
def test_relations_compose_as_the_truth_does(first: Relation, second: Relation) -> None:
    """Whatever the truth, what is known of it after both is what the composed relation says."""
    both = combined((first, second))
    assert both == combined((second, first))
    if Relation.TRUE in (first, second) and {first, second} - {Relation.TRUE, Relation.KEEP}:
        assert both is None
        return
    assert both is not None
    if Relation.FALSE in (first, second):
        assert truth_after(both, True) is truth_after(both, False) is False
    elif first is second or Relation.KEEP in (first, second):
        assert both is next((one for one in (first, second) if one is not Relation.KEEP), first)


@pytest.mark.parametrize(
    ("url", "reversed_url"),
    [
        ("http://shop.example/?q=mug&page=2", "http://shop.example/?page=2&q=mug"),
        ("http://shop.example/?q=mug", None),
    ],
)
def test_one_parameter_has_no_other_order(url: str, reversed_url: str | None) -> None:
    key = TrajectoryKey(benchmark="b", task_id="t", agent="a")
    step = Step(index=0, observation=Observation(url=url))
    run = Trajectory(key=key, raw_task_id="t", goal="Go.", steps=(step,))
    made = apply(catalogue()["url-query-order"], run, None)
    url_of = None if isinstance(made, NotApplicable) else made.trajectory.steps[0].observation.url
    assert url_of == reversed_url


def test_two_of_other_channels_compose() -> None:
    one = compose(catalogue()["goal-polite"], catalogue()["inject-tree.success.plain"])
    source = next(t for t in sample().trajectories if sample().facts[t.key].success is False)
    made = apply(one, source, sample().facts[source.key])
    assert not isinstance(made, NotApplicable)
    assert {edit.field for edit in made.edits} == {"goal", "axtree", "axtree_pruned"}
    assert problems(one, source, made) == []
    assert made.relations[LabelQuestion.SUCCESS] is Relation.KEEP


def test_a_composition_has_the_properties_of_its_parts() -> None:
    polite, tree = catalogue()["goal-polite"], catalogue()["inject-tree.success.plain"]
    assert (polite.version, polite.stackable, polite.sample, polite.states_answer) == (
        1, False, 0, False,
    )  # fmt: skip
    first = polite.model_copy(
        update={"version": 2, "stackable": True, "sample": 1, "states_answer": True}
    )
    second = tree.model_copy(update={"version": 3, "stackable": False})
    for both, version in ((compose(first, second), 2003), (compose(second, first), 3002)):
        assert (both.version, both.stackable, both.sample) == (version, False, 1)
        assert (both.states_answer, both.attacker) == (True, Attacker.PAGE)
    with pytest.raises(UserError, match=r"both change goal"):
        compose(first, polite)
    assert compose(first, first).stackable


def test_what_shares_a_channel_does_not_compose() -> None:
    with pytest.raises(UserError, match=r"both change goal"):
        chosen(["goal-polite+goal-framed"])
    with pytest.raises(UserError, match=r"one makes success true, the other false"):
        compose(catalogue()["goal-fit"], catalogue()["answer-wrong"])


def test_payloads_say_nothing_that_a_task_asks_for() -> None:
    """No wording holds a right answer of any recorded task."""
    answers = {
        value
        for facts in sample().facts.values()
        for one in facts.answers
        for value in one.expected
    }
    injections = family_file("injections")
    wordings = [w for some in injections["goals"].values() for w in some]
    wordings += [*injections["languages"].values(), *injections["keys"], *injections["neutral"]]
    for entry in family_file("claims")["perturbations"].values():
        wordings += map(str, entry.get("with", {}).values())
    assert len(wordings) > 40
    assert answers
    assert [(a, w) for a in answers for w in wordings if a in w] == []


def test_an_element_s_id_tells_no_answer() -> None:
    """A node is added whose id is the number that the task asks for."""
    one = injection("tree")
    source = sample().trajectories[0].model_copy(update={"goal": "How many?", "answer": None})
    page = source.final.model_copy(update={"axtree": "RootWebArea 'P'", "axtree_pruned": None})
    step = source.steps[-1].model_copy(update={"observation": page, "index": 0})
    source = source.model_copy(update={"steps": (step,)})
    asked = AnswerOutcome(kind="number", expected=("11",), right=False)
    facts = sample().facts[source.key].model_copy(update={"success": False, "answers": (asked,)})
    made = apply(one, source, facts)
    assert not isinstance(made, NotApplicable)

    def naming(line: str) -> list[str]:
        shown = page.model_copy(update={"axtree": f"{made.trajectory.final.axtree}\n{line}"})
        last = made.trajectory.steps[0].model_copy(update={"observation": shown})
        changed = made.trajectory.model_copy(update={"steps": (last,)})
        edits = edits_between(source, changed)
        return problems(
            one, source, made.model_copy(update={"trajectory": changed, "edits": edits}), facts
        )

    assert naming("\t[11] link 'Go', clickable") == []
    assert naming("\t[12] link '11 things', clickable") == ["it states the expected answer '11'"]
