"""One sample of an inspect_ai log as a trajectory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trajudge.trajectories.loaders.common.pictures import inline_picture
from trajudge.trajectories.loaders.files import Damaged, numbers, readable, text
from trajudge.trajectories.loaders.inspect_logs.files import Sample
from trajudge.trajectories.loaders.messages.reading import image_source, read_events
from trajudge.trajectories.loaders.messages.stepping import course_of
from trajudge.trajectories.loaders.values import Values
from trajudge.trajectories.model import ImageRef, Trajectory, TrajectoryKey
from trajudge.trajectories.thoughts import split_thoughts

_ATTACHMENT = "attachment://"
# What inspect's ``value_to_float`` makes of texts: its grades, and words in any case.
_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_MAX_WARNINGS = 50


def make_trajectory(sample: Sample, key: TrajectoryKey) -> Trajectory:
    """Make the trajectory of a sample. Raises Damaged for one without messages' list."""
    warnings: list[str] = []
    attached = _Attachments(sample.value("attachments"), warnings)
    messages = attached.resolved(sample.value("messages"))
    if not isinstance(messages, list):
        raise Damaged("has no list of messages")
    question = attached.resolved(sample.value("input"))
    values = Values(warnings)
    prompts, pictures = _asked(question, values), _pictures(question)
    goal = "\n".join([*prompts, *_choices(sample.value("choices"))])
    goal_images = tuple(attached.open_image(source) for source in pictures)
    seen = [_without(message, pictures) for message in messages]
    events = read_events(seen, attached.open_image, warnings)
    course = course_of(events, {goal, "\n".join(prompts), *prompts, *_given(messages)}, warnings)
    stopped = sample.limit is not None or sample.error is not None
    answer = None if stopped else _completion(attached.resolved(sample.value("output")), values)
    return Trajectory(
        key=key,
        raw_task_id=key.task_id,
        goal=goal,
        goal_images=goal_images,
        steps=course.steps,
        answer=answer,
        official_reward=_reward(sample.value("scores"), warnings),
        terminated=answer is not None,
        truncated=sample.limit is not None,
        telemetry=course.telemetry | _spent(sample),
        metadata={
            **_ended(sample),
            "warnings": [*dict.fromkeys(warnings)][:_MAX_WARNINGS],
        },
    )


class _Attachments:
    """The long texts and pictures of a sample, which stand in it once, under their hash."""

    def __init__(self, attachments: object, warnings: list[str]) -> None:
        self._contents = attachments if isinstance(attachments, dict) else {}
        self._warnings = warnings
        self._images = 0

    def resolved(self, value: Any) -> Any:
        """Put every attachment in its place; one that an attachment names in turn stays."""
        if isinstance(value, str):
            return self._content(value)
        if isinstance(value, list):
            return [self.resolved(one) for one in value]
        if isinstance(value, dict):
            return {name: self.resolved(one) for name, one in value.items()}
        return value

    def open_image(self, source: str) -> ImageRef:
        """Open a picture; one on the recorder's disk or elsewhere is not fetched."""
        self._images += 1
        if source.lower().startswith("data:"):
            ref = inline_picture(source, f"number {self._images}", self._warnings)
            return ref or ImageRef(problem="the picture is empty")
        problem = f"number {self._images} is not in the log: {readable(source)[:80]!r}"
        self._warnings.append(f"The picture {problem}.")
        return ImageRef(problem=f"the picture {problem}")

    def _content(self, value: str) -> str:
        if not value.startswith(_ATTACHMENT):
            return value
        content = self._contents.get(value.removeprefix(_ATTACHMENT))
        if isinstance(content, str):
            return content
        self._warnings.append(f"The log lacks the attachment {readable(value)[13:53]!r}.")
        return value


def _asked(entries: object, values: Values) -> list[str]:
    """Return the texts that the user asked: the input, or those of its messages."""
    if isinstance(entries, str):
        return [readable(entries)]
    texts = _texts(_of_user(entries))
    words = None if texts or _pictures(entries) else values.text(entries or None, "input")
    return [words] if words else texts


def _pictures(entries: object) -> list[str]:
    """Return where the pictures are that the user asked about: they belong to the goal."""
    contents = (message.get("content") for message in _of_user(entries))
    parts = (part for content in contents if isinstance(content, list) for part in content)
    return [source for part in parts if (source := _picture(part))]


def _without(message: object, pictures: list[str]) -> object:
    """Return a message without the pictures of the goal, which the input put there."""
    content = message.get("content") if isinstance(message, dict) else None
    if not pictures or not isinstance(message, dict) or not isinstance(content, list):
        return message
    is_asked = message.get("role") == "user"
    rest = [part for part in content if not (is_asked and _picture(part) in pictures)]
    return {**message, "content": rest}


def _picture(part: object) -> str:
    return image_source(part) if isinstance(part, dict) and part.get("type") == "image" else ""


def _of_user(entries: object) -> list[dict[str, Any]]:
    messages = entries if isinstance(entries, list) else []
    return [one for one in messages if isinstance(one, dict) and one.get("role") == "user"]


def _given(messages: list[Any]) -> list[str]:
    """Return the texts of the messages that the input became, in the words of a solver's prompt."""
    return _texts(
        [one for one in messages if isinstance(one, dict) and one.get("source") == "input"]
    )


def _texts(messages: list[dict[str, Any]]) -> list[str]:
    texts = []
    for message in messages:
        content = message.get("content")
        for part in content if isinstance(content, list) else [content]:
            words = text(part.get("text") if isinstance(part, dict) else part)
            texts += [words] if words else []
    return texts


def _choices(choices: object) -> list[str]:
    listed = choices if isinstance(choices, list) else []
    return [f"{chr(ord('A') + at)}) {readable(str(one))}" for at, one in enumerate(listed[:26])]


def _completion(output: object, values: Values) -> str | None:
    """Return the model's last words without its thoughts; early versions wrote them among the
    choices alone."""
    if not isinstance(output, dict):
        return None
    if "completion" in output:
        words = values.text(output["completion"], "completion")
        return text(split_thoughts(words)[1]) if words else None
    choices = output.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    words = "\n".join(_texts([message])) if isinstance(message, dict) else ""
    return text(split_thoughts(words)[1])


def _reward(scores: object, warnings: list[str]) -> float | None:
    """Return the value of the only score as a number in [0, 1], as inspect's ``value_to_float``
    reads it; what that takes for 0 because it is no number is None here, with a warning."""
    if scores is not None and not isinstance(scores, dict):
        Values(warnings).refuse(scores, "field scores")
    named = scores if isinstance(scores, dict) else {}
    if len(named) > 1:
        names = ", ".join(readable(str(name)) for name in sorted(named))
        warnings.append(f"There are several scores ({names[:200]}): none is the reward.")
    if len(named) != 1:
        return None
    [score] = named.values()
    if not isinstance(score, dict):
        Values(warnings).refuse(score, "score")
        return None
    value = score.get("value")
    if isinstance(value, str):
        value = _GRADES.get(value, _WORDS.get(value.casefold(), value))
    reward = Values(warnings).number(value, "score")
    if reward is not None and not 0 <= reward <= 1:
        warnings.append("The score is no number from 0 to 1: there is no reward.")
        return None
    return reward


def _spent(sample: Sample) -> dict[str, float]:
    """Return the seconds and the tokens of all models together."""
    usage = sample.model_usage if isinstance(sample.model_usage, dict) else {}
    models = [one for one in usage.values() if isinstance(one, Mapping)]
    tokens = {
        name: sum(numbers(model).get(name, 0.0) for model in models)
        for name in ("input_tokens", "output_tokens")
        if models
    }
    times = {"elapsed": sample.total_time, "working_time": sample.working_time}
    return numbers({**times, **tokens})


def _ended(sample: Sample) -> dict[str, str]:
    """Return why the run ended before its end: the error's message, the limit's type."""
    reasons: dict[str, str] = {}
    for name, record, field in (
        ("error", sample.error, "message"),
        ("limit", sample.limit, "type"),
    ):
        reason = text(record.get(field)) if isinstance(record, dict) else None
        reasons |= {name: reason[:2000]} if reason else {}
    return reasons
