"""The report's page: rendered, its pictures in it (left out from the end until it fits) or in files
beside it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import orjson
from markupsafe import Markup

from trajudge.app.pages.templates import static_text, templates
from trajudge.app.reports.content import Content, ShownCase
from trajudge.app.reports.pictures import SmallPicture, small_picture
from trajudge.app.settings import ReportConfig
from trajudge.eval.reporting.results import results_json
from trajudge.eval.scoring.records import LABEL_TITLES
from trajudge.trajectories.model import ImageRef
from trajudge.util.errors import ImageUnreadable, UserError
from trajudge.util.jsonl import without_surrogates

FORMAT = 1
# A data URL beside its tag, in bytes.
_TAG = 200


class Document(NamedTuple):
    """The file's bytes; so many ``pictures`` stand in it, ``dropped`` did not fit."""

    content: bytes
    pictures: int
    dropped: int


class CasePicture(NamedTuple):
    """A picture at its ``source``, or the ``problem`` why there is none."""

    picture: SmallPicture | None
    source: str
    problem: str = ""


class CasePictures(NamedTuple):
    """The pictures of a case's goal and its screenshot; None: there is none, or it did not fit."""

    goal: tuple[CasePicture | None, ...]
    screenshot: CasePicture | None


class Album:
    """The pictures of a page in the order in which they are put in, up to the first that does not
    fit into ``room`` bytes. Those of a ``folder`` are files there."""

    def __init__(self, room: int, folder: Path | None) -> None:
        self._room, self._folder = room, folder
        self.taken = self.dropped = 0

    def put(self, ref: ImageRef) -> CasePicture | None:
        """Return the picture, or why it cannot be shown; None if it does not fit."""
        if self.dropped:
            self.dropped += 1
            return None
        try:
            picture = small_picture(ref)
        except ImageUnreadable as error:
            problem = str(error)[:200]
            self._room -= len(problem.encode()) + _TAG
            return CasePicture(None, "", problem)
        source = picture.written(self._folder) if self._folder else picture.data_url()
        self._room -= len(source) + _TAG
        if self._room < 0:
            self.dropped += 1
            return None
        self.taken += 1
        return CasePicture(picture, source)


def report_document(content: Content, config: ReportConfig) -> Document:
    """Render the page; equal content gives equal bytes. Raises UserError where even without
    pictures it is larger than allowed."""
    cases = content.cases if config.shows_pictures else ()
    bare = _render(content, config, _pictures(cases, lambda _: None))
    room = config.max_bytes - len(bare)
    if room < 0:
        raise UserError(
            f"--max-size {config.max_size:g}: the report takes {len(bare) / 1e6:.1f} MB without "
            "pictures: allow more, or show fewer cases with --show N"
        )
    album = Album(room, config.folder)
    pictures = _pictures(cases, album.put)
    whole = _render(content, config, pictures) if pictures else bare
    return Document(whole, album.taken, album.dropped)


def _pictures(
    cases: Sequence[ShownCase], put: Callable[[ImageRef], CasePicture | None]
) -> dict[int, CasePictures]:
    """Put the pictures in, those of the first cases first; return them by the place of their
    case."""
    made: dict[int, CasePictures] = {}
    for place, shown in enumerate(cases):
        if (seen := shown.evidence) is None:
            continue
        goal = tuple(map(put, seen.goal_images))
        made[place] = CasePictures(goal, put(seen.screenshot) if seen.screenshot else None)
    return made


def _render(content: Content, config: ReportConfig, pictures: Mapping[int, CasePictures]) -> bytes:
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
