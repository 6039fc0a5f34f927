"""Trivial baselines: what each says of a run, and that no verdict rests on its own task."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from tests.eval.baselines.runs import labelled, run
from trajudge.annotations import Label
from trajudge.eval import baselines as models
from trajudge.eval.baselines import BASELINES, Examples, claims_success, trivial_baselines
from trajudge.judges.model import Status
from trajudge.stats.intervals import Floats
from trajudge.trajectories.model import Step, Trajectory, TrajectoryKey

RUNS = [
    run(task, f"I found the {'cheapest' if task % 3 else 'wrong'} lamp {task}.", agent=agent)
    for task in range(12)
    for agent in ("a", "b")
]
LABELS = {one.key: labelled(one, bool(int(one.raw_task_id.split(".")[1]) % 3)) for one in RUNS}


def test_every_labelled_run_gets_one_judgment_a_baseline() -> None:
    unlabelled = run(99, "Done.")
    unsure = run(98, "Done.")
    labels = {**LABELS, unsure.key: labelled(unsure, None)}
    found = trivial_baselines([*RUNS, unlabelled, unsure], labels)
    assert found.notes == ()
    keys: dict[str, list[TrajectoryKey]] = defaultdict(list)
    for each in found.judgments:
        assert each.status is Status.OK
        keys[each.judge].append(each.key)
    assert list(keys) == [*BASELINES]
    for judged in keys.values():
        assert judged == sorted(LABELS, key=lambda key: key.order)
    assert not any(j.success for j in found.judgments if j.judge == "always-fail")


def test_words_of_the_answer_are_learnt_from_other_tasks() -> None:
    judgments = trivial_baselines(RUNS, LABELS, names=["tfidf-answer"]).judgments
    assert all(each.success is LABELS[each.key].success for each in judgments)
    assert all(each.score is not None and 0 < each.score < 1 for each in judgments)


def test_words_count_as_scikit_learn_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 300 terms and more the 40 most frequent are kept, by both."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(2)
    words = [*(f"word{n}" for n in range(30)), "É_x", "a", "7", "No!", "isn't"]
    answers = [" ".join(rng.choice(words, size=rng.integers(1, 25))) for _ in range(120)]
    runs = [run(task, answer) for task, answer in enumerate(answers)]
    truth = {one.key: "word3" in str(one.answer) or bool(rng.random() < 0.2) for one in runs}
    examples = Examples.of(runs, truth)
    train, test = np.arange(80), np.arange(80, 120)
    monkeypatch.setattr(models, "_MOST_TERMS", 40)
    ours = models.fit_tfidf(examples.at(train), examples.at(test))
    by_key = {one.key: str(one.answer) for one in runs}
    texts = [by_key[key] for key in examples.keys]
    terms = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, max_features=40)
    model = LogisticRegression(max_iter=1000)
    model.fit(terms.fit_transform([texts[at] for at in train]), examples.labels[train])
    theirs = model.predict_proba(terms.transform([texts[at] for at in test]))[:, 1]
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["tfidf-answer", "telemetry"])
def test_no_verdict_rests_on_a_label_of_its_own_task(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted: list[tuple[set[str], set[str]]] = []
    original = models.TRAINED[name]

    def fit(train: Examples, test: Examples) -> Floats:
        fitted.append((set(train.groups.tolist()), set(test.groups.tolist())))
        return original(train, test)

    monkeypatch.setitem(models.TRAINED, name, fit)
    trivial_baselines(RUNS, LABELS, names=[name])
    assert all(not train & test for train, test in fitted)
    judged = [task for _, test in fitted for task in test]
    assert sorted(judged) == sorted({f"webarena/webarena.{task}" for task in range(12)})


def test_the_same_runs_in_any_order_give_the_same_bytes() -> None:
    order = np.random.default_rng(1).permutation(len(RUNS))
    first = trivial_baselines(RUNS, LABELS, seed=3).judgments
    again = trivial_baselines([RUNS[place] for place in order], LABELS, seed=3).judgments
    assert [j.model_dump_json() for j in first] == [j.model_dump_json() for j in again]


def test_what_cannot_be_fitted_is_left_out_with_its_reason() -> None:
    silent = [run(task, None) for task in range(4)]
    labels: dict[TrajectoryKey, Label] = {
        one.key: labelled(one, task == 0) for task, one in enumerate(silent)
    }
    found = trivial_baselines(silent, labels)
    assert {j.judge for j in found.judgments} == {"always-fail"}
    assert [note.split(":")[0] for note in found.notes] == [*BASELINES[1:]]
    assert "no run recorded an answer" in found.notes[0]
    assert "fewer than two tasks" in found.notes[2]
    assert trivial_baselines(silent, {}).judgments == ()


# Last words of agents in AgentRewardBench and Online-Mind2Web, shortened.
@pytest.mark.parametrize(
    ("answer", "claim"),
    [
        ("The cheapest is the Fortis at $28.45.", True),
        ("I have successfully added the comment to the post.", True),
        ("Unfortunately the page keeps asking for a log-in.", False),
        ("The Fidelity website is not loading due to a network error.", False),
        ("I couldn't find a rental that matches.", False),
        ("I was unable to complete the booking.", False),
        ("", False),
        ("  \n", False),
        (None, False),
    ],
)
def test_a_claim_is_an_answer_that_does_not_give_up(answer: str | None, claim: bool) -> None:
    steps = (Step(index=0, action="send_msg_to_user('…')"),)
    assert claims_success(run(1, answer).model_copy(update={"steps": steps})) is claim


def test_to_declare_a_task_infeasible_claims_no_success() -> None:
    last: Trajectory = run(1, "The product is sold out.").model_copy(
        update={"steps": (Step(index=0, action="report_infeasible('sold out')"),)}
    )
    assert not claims_success(last)
