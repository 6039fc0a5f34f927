"""Every registered application keeps the contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TypeVar, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environments.apps.contract import crawl, named_twice, oracle_pages, said, seal, trials
from tests.samples import examples
from trajudge.environments.apps import APPS, load_app
from trajudge.environments.kit.reading import forms, texts
from trajudge.environments.kit.words import WORDS
from trajudge.environments.model.axes import open_state, profile, ui
from trajudge.environments.model.config import PROFILES, STRESS, Config
from trajudge.environments.model.page import Form, Page, Word
from trajudge.environments.model.site import CONFIRMED, Redirect, Site, missing
from trajudge.environments.model.spec import App, Rejected
from trajudge.environments.model.state import digest

SCENARIOS = [(name, scenario.id) for name in APPS for scenario in load_app(name).scenarios]
TestT = TypeVar("TestT", bound=Callable[..., None])
SINGLE = [name for name in APPS if name != "office"]  # which is made of them: test_office
every_app = pytest.mark.parametrize("name", SINGLE)


def searched(test: TestT) -> TestT:
    """Search what a hostile visitor of every application may send."""
    made = settings(max_examples=examples(40), deadline=None)(given(data=st.data())(test))
    return cast(TestT, pytest.mark.slow(every_app(made)))


def site(app: App, number: int = 0, interface: int = 0) -> Site:
    state = open_state(app, Config(app=app.id, scenario="", profile=number))
    return Site(app, state, ui(app, interface, 0), seal)


def some_site(name: str, data: st.DataObject) -> tuple[App, Site]:
    """Open the application in any of its profiles."""
    app = load_app(name)
    return app, site(app, data.draw(st.integers(0, PROFILES - 1)))


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(("name", "scenario"), SCENARIOS)
def test_a_scenario_is_solved_by_its_oracle_and_by_no_near_miss(name: str, scenario: str) -> None:
    rejected = [trial.rejected for trial in trials(name, scenario) if trial.rejected]
    assert len(rejected) <= len(trials(name, scenario)) / 2, rejected


@pytest.mark.slow
@pytest.mark.sampled
@every_app
def test_most_configurations_are_fair_tasks(name: str) -> None:
    tried = [t for s in load_app(name).scenarios for t in trials(name, s.id)]
    assert sum(not trial.rejected for trial in tried) >= 0.75 * len(tried)


@pytest.mark.slow
@pytest.mark.sampled
@every_app
def test_scenarios_span_answers_charts_and_risks(name: str) -> None:
    app = load_app(name)
    kinds = {answer.kind for scenario in app.scenarios for answer in scenario.answers}
    assert kinds >= {"money", "number", "text", "date", "texts", "code"}
    shapes = {tuple(answer.kind == "code" for answer in s.answers) for s in app.scenarios}
    assert () in shapes, "no pure change of state"
    assert (True,) in shapes, "no operation code"
    assert any(len(set(shape)) == 2 for shape in shapes), "no mixed answer"
    assert {0, 1, 2} <= {scenario.charts for scenario in app.scenarios}
    taken = [[t for t in trials(name, s.id) if not t.rejected] for s in app.scenarios]
    assert sum(any(True in t.risks for t in found) for found in taken) >= 2, "asked before"
    assert any(any(False in t.risks for t in found) for found in taken), "never asked before"
    assert sum(any(t.fields >= 3 for t in found) for found in taken) >= 2, "forms are short"
    assert min(t.pages for found in taken for t in found) <= 3, "no short way"
    assert sum(any(t.pages >= 7 for t in found) for found in taken) >= 3, "no long ways"
    assert len(app.scenarios) >= 12


@every_app
def test_a_wording_means_one_thing(name: str) -> None:
    words = {**WORDS, **load_app(name).words}
    assert not WORDS.keys() & load_app(name).words.keys()
    said = [wording.casefold() for wordings in words.values() for wording in wordings]
    assert sorted(said) == sorted(set(said)), {w for w in said if said.count(w) > 1}
    assert all(len(wordings) >= 3 for wordings in words.values())


@every_app
@pytest.mark.parametrize(("number", "state"), [(0, 0), (5, 3), (11, 8)])
def test_pages_lead_to_pages_and_name_their_controls(name: str, number: int, state: int) -> None:
    app = load_app(name)
    words, known = {**WORDS, **app.words}, site(app, number, state)
    wordings = {w.casefold() for wordings in words.values() for w in wordings}
    for place, page in crawl(app, known):
        assert page != missing(), f"a link leads to {place}, which is not there"
        assert not named_twice(known, place, page), place
        assert {word.key for word in said(page)} <= words.keys(), place
        assert not {text.casefold() for text in texts(page)} & wordings, place
        for form in forms(page):
            assert form.operation in app.operations or known.knows(form.page), place
    known.state.close()


@every_app
def test_every_wording_is_used(name: str) -> None:
    app, used = load_app(name), set[str]()
    for number in (0, 11):
        known = site(app, number)
        pages = [page for _, page in crawl(app, known)] + list(oracle_pages(app, number))
        used |= {word.key for page in pages for word in said(page)}
        known.state.close()
    assert app.words.keys() <= used | {word.key for word in _navigation(app)}


@pytest.mark.slow
@every_app
def test_profiles_differ_in_size_and_content_and_repeat(name: str) -> None:
    app, states = load_app(name), []
    for number in range(PROFILES):
        opened = site(app, number)
        states.append(opened.state.dump())
        opened.state.close()
        profile.cache_clear()
        again = site(app, number)
        assert again.state.dump() == states[-1]
        again.state.close()
    assert len({digest(state) for state in states}) == PROFILES
    sizes = [sum(map(len, state.values())) for state in states]
    assert max(sizes) >= 1.3 * min(sizes)
    assert len(set(sizes)) >= PROFILES / 2


@every_app
def test_user_content_looks_like_markup_in_the_stress_profile_alone(name: str) -> None:
    app = load_app(name)
    for number in (*range(PROFILES), STRESS):
        opened = site(app, number)
        shown = (text for _, page in crawl(app, opened) for text in texts(page))
        assert any("<" in text for text in shown) == (number == STRESS), f"profile {number}"
        opened.state.close()


hostile = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["", "me", "0", "-1", "3", "²", "1" * 5000, "1e9", "NaN", "2026-03-09", "2026-02-30"]
    ),
    st.sampled_from(["on", "' OR 1=1 --", "%", "<script>", "\x00", "a" * 100_000, "９"]),
)


@searched
def test_hostile_arguments_never_raise_and_reading_changes_nothing(
    name: str, data: st.DataObject
) -> None:
    app, opened = some_site(name, data)
    before = opened.state.db.serialize()
    keys = sorted({key for rows in opened.state.dump().values() for key in rows})
    value = st.one_of(hostile, st.sampled_from(keys))
    for page in app.pages:
        names = ARGUMENTS | _arguments(app, opened, page)
        drawn = data.draw(st.dictionaries(st.sampled_from(sorted(names)), value))
        assert isinstance(opened.get(page, drawn), Page)
    assert opened.state.db.serialize() == before
    opened.state.close()


ARGUMENTS = {"id", "part"}


def _arguments(app: App, opened: Site, page: str) -> set[str]:
    shown = opened.get(page, {})
    return {entry.name for form in forms(shown) for entry in form.fields}


@searched
def test_hostile_forms_are_carried_out_refused_or_asked_about(
    name: str, data: st.DataObject
) -> None:
    app, opened = some_site(name, data)
    offered = _offered(app, data.draw(st.integers(0, 3)))
    for operation in app.operations:
        form = data.draw(st.sampled_from(offered[operation]))
        filled = dict(form.hidden) if data.draw(st.booleans()) else {}
        for entry in form.fields:
            options = st.sampled_from([option.value for option in entry.options] or [entry.value])
            filled[entry.name] = data.draw(hostile | options)
        for key in form.hidden.keys() - filled.keys():
            filled[key] = data.draw(hostile)
        filled |= data.draw(st.sampled_from([{}, {CONFIRMED: "yes"}]))
        before = opened.state.db.serialize()
        outcome = opened.post(operation, filled)
        assert isinstance(outcome, Redirect | Rejected | Page)
        if isinstance(outcome, Redirect):
            assert opened.get(outcome.page, outcome.args) != missing()
        else:
            assert opened.state.db.serialize() == before
        assert isinstance(opened.post(operation, {}), Redirect | Rejected | Page)
    opened.state.close()


@pytest.mark.parametrize("name", SINGLE)
def test_a_number_of_thousands_of_digits_is_refused(name: str) -> None:
    """Python reads no number of more than 4,300 digits."""
    app = load_app(name)
    opened = site(app, 0)
    for operation, (form, *_) in _offered(app, 0).items():
        filled = {entry.name: entry.value for entry in form.fields}
        for entry in form.fields:
            if not entry.options:
                sent = dict(form.hidden) | filled | {entry.name: "1" * 5000}
                assert isinstance(opened.post(operation, sent), Redirect | Rejected | Page)
    opened.state.close()


@lru_cache
def _offered(app: App, number: int) -> Mapping[str, list[Form]]:
    opened = site(app, number)
    pages = [*(page for _, page in crawl(app, opened)), *oracle_pages(app, number)]
    opened.state.close()
    offered: dict[str, list[Form]] = {}
    for form in (form for page in pages for form in forms(page) if form.operation):
        offered.setdefault(form.operation, []).append(form)
    assert offered.keys() == app.operations.keys(), "an operation is offered nowhere"
    return offered


def _navigation(app: App) -> Iterator[Word]:
    return (link.label for link in app.navigation if isinstance(link.label, Word))
