"""``trajudge report``: the page, its pictures (in it until it is full, or in files next to it), and
what the terminal shows.
"""

from __future__ import annotations

import re
import sys
from base64 import b64encode
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from markupsafe import Markup
from PIL import Image

from trajudge.app.rendering import static_text, templates
from trajudge.app.report_content import CaseEvidence, Content, report_content
from trajudge.app.settings import ReportConfig
from trajudge.eval.reporting.results import results_json
from trajudge.eval.scoring.records import LABEL_TITLES
from trajudge.trajectories.images import load_picture
from trajudge.trajectories.model import ImageRef
from trajudge.util.commands import OK
from trajudge.util.errors import ImageUnreadable, UserError
from trajudge.util.files import check_file, make_folder, save_bytes, write_bytes
from trajudge.util.jsonl import without_surrogates
from trajudge.util.machine import collection_paused
from trajudge.util.tables import first_screen, fitted, screen_width

WIDTH, HEIGHT, QUALITY = 900, 1_400, 60
"""Pixels at most, and WebP's quality from 0 to 100."""
_LARGEST = 2**31
_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})


class SmallPicture(NamedTuple):
    """``data`` is WebP; width and height in pixels."""

    data: bytes
    width: int
    height: int

    def data_url(self) -> str:
        return f"data:image/webp;base64,{b64encode(self.data).decode()}"

    def written(self, folder: Path) -> str:
        """Write it into ``folder/img`` and return its address there. Raises UserError."""
        file = folder / "img" / f"{sha256(self.data).hexdigest()}.webp"
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(file, self.data)
        except OSError as error:
            raise UserError(f"{file}: cannot be written ({error.strerror})") from error
        return f"img/{file.name}"


def small_picture(ref: ImageRef) -> SmallPicture:
    """Decode a screenshot, shrink it, and cut the bottom of a very long page. Raises
    ImageUnreadable (one sentence); the size is checked before it is decoded."""
    loaded = load_picture(
        ref, max_side=_LARGEST, max_pixels=_LARGEST, max_bytes=_LARGEST, media_types=_TYPES
    )
    with Image.open(BytesIO(loaded.data)) as image:
        whole = image.convert("RGB")
    if whole.width > WIDTH:
        height = max(1, round(whole.height * WIDTH / whole.width))
        whole = whole.resize((WIDTH, height), Image.Resampling.BILINEAR)
    whole = whole.crop((0, 0, whole.width, min(whole.height, HEIGHT)))
    encoded = BytesIO()
    whole.save(encoded, "WEBP", quality=QUALITY, method=2)
    return SmallPicture(encoded.getvalue(), whole.width, whole.height)


def remove_pictures(folder: Path) -> None:
    """Remove what ``written`` wrote for an earlier report: it may show what this one leaves out.
    Raises OSError."""
    for file in folder.glob("img/*.webp"):
        if re.fullmatch("[0-9a-f]{64}", file.stem):
            file.unlink()


FORMAT = 1
# A data URL beside its tag, in bytes.
_TAG = 200
_THREADS = 2


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

    def put(self, refs: Sequence[ImageRef]) -> list[CasePicture | None]:
        """Return every picture, or why it cannot be shown; None if it does not fit."""
        placed: list[CasePicture | None] = []
        for shrinking in _shrunk(refs):
            placed.append(self._placed(shrinking))
            if placed[-1] is None:
                self.dropped = len(refs) - len(placed) + 1
                break
        return [*placed, *[None] * (len(refs) - len(placed))]

    def _placed(self, shrinking: Future[SmallPicture]) -> CasePicture | None:
        try:
            picture = shrinking.result()
        except ImageUnreadable as error:
            problem = str(error)[:200]
            self._room -= len(problem.encode()) + _TAG
            return CasePicture(None, "", problem)
        source = picture.written(self._folder) if self._folder else picture.data_url()
        self._room -= len(source) + _TAG
        if self._room < 0:
            return None
        self.taken += 1
        return CasePicture(picture, source)


def _shrunk(refs: Sequence[ImageRef]) -> Iterator[Future[SmallPicture]]:
    """Shrink pictures in threads, a few ahead of who takes them."""
    waiting: deque[Future[SmallPicture]] = deque()
    with ThreadPoolExecutor(_THREADS) as pool:
        for ref in refs:
            waiting.append(pool.submit(small_picture, ref))
            if len(waiting) > 2 * _THREADS:
                yield waiting.popleft()
        yield from waiting


def report_document(content: Content, config: ReportConfig) -> Document:
    """Render the page; equal content gives equal bytes. Raises UserError where even without
    pictures it is larger than allowed."""
    shown = [case.evidence for case in content.cases] if config.shows_pictures else []
    refs = [ref for evidence in shown if evidence for ref in _refs(evidence)]
    context = _context(content, config)
    bare = _render(context, _by_case(shown, [None] * len(refs)))
    room = config.max_bytes - len(bare)
    if room < 0:
        raise UserError(
            f"--max-size {config.max_size:g}: the report takes {len(bare) / 1e6:.1f} MB without "
            "pictures: allow more, or show fewer cases with --show N"
        )
    album = Album(room, config.folder)
    whole = _render(context, _by_case(shown, album.put(refs))) if refs else bare
    return Document(whole, album.taken, album.dropped)


def _refs(evidence: CaseEvidence) -> list[ImageRef]:
    """List the pictures of a case, the screenshot last."""
    return [*evidence.goal_images, *([evidence.screenshot] if evidence.screenshot else [])]


def _by_case(
    shown: Sequence[CaseEvidence | None], pictures: Iterable[CasePicture | None]
) -> dict[int, CasePictures]:
    """Give the pictures to their cases, whose places are the keys."""
    following = iter(pictures)
    return {
        place: CasePictures(
            tuple(next(following) for _ in evidence.goal_images),
            next(following) if evidence.screenshot else None,
        )
        for place, evidence in enumerate(shown)
        if evidence is not None
    }


def _context(content: Content, config: ReportConfig) -> dict[str, Any]:
    """Collect what the page shows besides pictures."""
    style, script = static_text("base.css") + static_text("report.css"), static_text("report.js")
    return {
        **content._asdict(),
        "finding": content.finding(),
        "warnings": content.warnings(),
        "title": LABEL_TITLES[content.question],
        "with_pictures": config.shows_pictures,
        "style": style,
        "script": script,
        "policy": _policy(style, script, "'self' file:" if config.folder else "data:"),
        "machine_readable": _machine_readable(content),
    }


def _render(context: Mapping[str, Any], pictures: Mapping[int, CasePictures]) -> bytes:
    page = templates().get_template("report.html").render(**context, pictures=pictures)
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


def report(config: ReportConfig) -> int:
    """Write the report and print where it is. Raises UserError."""
    if not config.score.runs and config.score.judgments is None:
        raise UserError("nothing to report: give the folder of a run, or --judgments DIR")
    sys.stdout.write(write_report(config))
    return OK


def write_report(config: ReportConfig) -> str:
    """Write the report and return the screen's lines. Raises UserError for what cannot be read,
    scored or written; an earlier file then stays."""
    if not config.folder:
        check_file(config.out, "--out")
    with collection_paused():
        content = report_content(config)
    page = config.page
    try:
        if config.folder:
            make_folder(config.folder, "--folder")
            remove_pictures(config.folder)
        document = report_document(content, config)
        save_bytes(page, document.content)
    except OSError as error:
        raise UserError(f"{page}: cannot be written ({error.strerror})") from error
    width = screen_width()
    return first_screen(
        fitted(content.finding, width),
        [],
        _written(content, document, config),
        fitted(lambda most: [f"warning: {line}" for line in content.warnings(most)], width),
        rest=f"Everything else: {page}",
        more=str(page),
    )


def _written(content: Content, document: Document, config: ReportConfig) -> list[str]:
    lines = [
        f"{config.page}: {len(document.content) / 1e6:.1f} MB, {len(content.cases)} of "
        f"{content.wrong:,} trajectories with a wrong verdict, {document.pictures} pictures"
    ]
    if document.dropped:
        lines.append(
            f"{document.dropped} pictures did not fit into {config.max_size:g} MB: allow more "
            "with --max-size MB, or write a folder with --folder DIR"
        )
    return lines
