"""The report's page: rendered, its screenshots in it (left out from the end until it fits) or in
files beside it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple

import orjson
from markupsafe import Markup

from trajudge.app.pages.templates import static_text, templates
from trajudge.app.reports.content import Content, ShownCase
from trajudge.app.reports.pictures import SmallPicture, small_picture
from trajudge.app.reports.settings import ReportConfig
from trajudge.eval.reporting.results import results_json
from trajudge.eval.scoring.records import LABEL_TITLES
from trajudge.trajectories.util.errors import ImageUnreadable, UserError
from trajudge.trajectories.util.surrogates import without_surrogates

FORMAT = 1
# A data URL beside its tag, in bytes.
_TAG = 200


class Document(NamedTuple):
    """The file's bytes; ``pictures`` screenshots stand in it, ``dropped`` did not fit."""

    content: bytes
    pictures: int
    dropped: int


class CasePicture(NamedTuple):
    """A case's screenshot at its ``source``, or the ``problem`` why there is none."""

    picture: SmallPicture | None
    source: str
    problem: str = ""


def report_document(content: Content, config: ReportConfig) -> Document:
    """Render the page; equal content gives equal bytes. Raises UserError where even without
    screenshots it is larger than allowed."""
    bare = _render(content, config, {})
    room = config.max_bytes - len(bare)
    if room < 0:
        raise UserError(
            f"--max-size {config.max_size:g}: the report takes {len(bare) / 1e6:.1f} MB without "
            "screenshots: allow more, or show fewer cases with --show N"
        )
    pictures, dropped = _pictures(content.cases, config, room)
    if not pictures:
        return Document(bare, 0, dropped)
    whole = _render(content, config, pictures)
    return Document(whole, sum(one.picture is not None for one in pictures.values()), dropped)


def _pictures(
    cases: list[ShownCase], config: ReportConfig, room: int
) -> tuple[dict[int, CasePicture], int]:
    """Make the screenshots that fit into ``room`` bytes, those of the first cases first; return
    them by the place of their case, with the number of those left out."""
    made: dict[int, CasePicture] = {}
    dropped = 0
    for place, shown in enumerate(cases if config.shows_pictures else ()):
        if shown.evidence is None or shown.evidence.screenshot is None:
            continue
        if dropped:
            dropped += 1
            continue
        try:
            picture = small_picture(shown.evidence.screenshot)
        except ImageUnreadable as error:
            problem = str(error)[:200]
            made[place] = CasePicture(None, "", problem)
            room -= len(problem.encode()) + _TAG
            continue
        source = picture.written(config.folder) if config.folder else picture.data_url()
        room -= len(source) + _TAG
        if room < 0:
            dropped += 1
        else:
            made[place] = CasePicture(picture, source)
    return made, dropped


def _render(content: Content, config: ReportConfig, pictures: Mapping[int, CasePicture]) -> bytes:
    style, script = static_text("base.css") + static_text("report.css"), static_text("report.js")
    page = (
        templates()
        .get_template("report.html")
        .render(
            **content._asdict(),
            finding=content.finding(),
            warnings=content.warnings(),
            title=LABEL_TITLES[content.question],
            pictures=pictures,
            with_pictures=config.shows_pictures,
            style=style,
            script=script,
            policy=_policy(style, script, "'self' file:" if config.folder else "data:"),
            machine_readable=_machine_readable(content),
        )
    )
    return page.encode("utf-8", "replace")


def _policy(style: str, script: str, images: str) -> str:
    """Allow this style and this script alone, ``images`` of the report, and nothing else."""
    return "; ".join(
        [
            "default-src 'none'",
            f"img-src {images}",
            f"style-src 'sha256-{_digest(style)}'",
            f"script-src 'sha256-{_digest(script)}'",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _digest(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()


def _machine_readable(content: Content) -> Markup:
    """Encode scores and cases as JSON that no text in it can end."""
    cases = [
        {
            **shown.case.key.model_dump(),
            "label": shown.case.label,
            "official_reward": shown.case.reward,
            "verdicts": [
                {"judge": v.judge, "answer": v.answer, "status": v.status, "score": v.score}
                for v in shown.case.verdicts
            ],
        }
        for shown in content.cases
    ]
    whole = {
        "format": FORMAT,
        "question": content.question,
        "results": orjson.loads(results_json(content.scores)),
        "cases": cases,
    }
    text = orjson.dumps(without_surrogates(whole)).decode()
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text)  # noqa: S704 - JSON without a letter that HTML reads
