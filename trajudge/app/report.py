"""``trajudge report``: the page, its pictures (in it until it is full, or in files next to it), and
what the terminal shows.
"""

from __future__ import annotations

import re
import sys
from base64 import b64encode
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from markupsafe import Markup
from PIL import Image

from trajudge.app.rendering import static_text, templates, visible
from trajudge.app.report_content import Content, report_content
from trajudge.app.settings import ReportConfig
from trajudge.eval.reporting.results import results_json
from trajudge.eval.scoring.records import LABEL_TITLES
from trajudge.trajectories.images import UNCHANGED, load_picture
from trajudge.trajectories.model import ImageRef
from trajudge.util.commands import OK
from trajudge.util.errors import ImageUnreadable, UserError
from trajudge.util.files import check_file, make_folder, save_bytes, without_surrogates, write_bytes
from trajudge.util.machine import collection_paused
from trajudge.util.tables import first_screen, fitted, screen_width

WIDTH, HEIGHT, QUALITY = 900, 1_400, 45
"""Pixels at most, and JPEG's quality from 0 to 95, at which words stay sharp; WebP takes six times
as long."""


class SmallPicture(NamedTuple):
    """``data`` is JPEG; width and height in pixels."""

    data: bytes
    width: int
    height: int

    def source(self, folder: Path | None) -> str:
        """Return its address: of the file that is written into ``folder/img``, without a folder
        all of it. Raises UserError for a file that cannot be written."""
        if folder is None:
            return f"data:image/jpeg;base64,{b64encode(self.data).decode()}"
        file = folder / "img" / f"{sha256(self.data).hexdigest()}.jpg"
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(file, self.data)
        except OSError as error:
            raise UserError(f"{file}: cannot be written ({error.strerror})") from error
        return f"img/{file.name}"


def small_picture(ref: ImageRef) -> SmallPicture:
    """Decode a screenshot, shrink it, and cut the bottom of a very long page. Raises
    ImageUnreadable (one sentence); the size is checked before it is decoded."""
    loaded = load_picture(ref, UNCHANGED)
    with Image.open(BytesIO(loaded.data)) as image:
        whole = image if image.mode == "RGB" else image.convert("RGB")
        if whole.width > WIDTH:
            height = max(1, round(whole.height * WIDTH / whole.width))
            whole = whole.resize((WIDTH, height), Image.Resampling.BILINEAR)
        if whole.height > HEIGHT:
            whole = whole.crop((0, 0, whole.width, HEIGHT))
        whole.info.clear()  # of the file's metadata nothing goes along
        encoded = BytesIO()
        whole.save(encoded, "JPEG", quality=QUALITY)
    return SmallPicture(encoded.getvalue(), whole.width, whole.height)


def remove_pictures(folder: Path) -> None:
    """Remove what ``written`` wrote for an earlier report: it may show what this one leaves out.
    Raises OSError."""
    for file in folder.glob("img/*.jpg"):
        if re.fullmatch("[0-9a-f]{64}", file.stem):
            file.unlink()


FORMAT = 1
_THREADS = 2


class FilledPage(NamedTuple):
    """The file's bytes; so many ``pictures`` stand in it, ``dropped`` did not fit."""

    content: bytes
    pictures: int
    dropped: int


class _Asked(NamedTuple):
    ref: ImageRef
    name: str
    alt: str

    def left_out(self) -> bytes:
        return self._note("left out: the file would be too large.")

    def shown(self, shrinking: Future[SmallPicture], folder: Path | None) -> tuple[bytes, bool]:
        """Return the picture, or why it cannot be shown, as HTML, and whether it is the picture."""
        try:
            small = shrinking.result()
        except ImageUnreadable as error:
            return self._note("cannot be shown: {}", visible(str(error), 200)), False
        tag = Markup('<img src="{}" width="{}" height="{}" loading="lazy" alt="{}">')
        source = small.source(folder)
        return tag.format(source, small.width, small.height, self.alt).encode(), True

    def _note(self, sentence: str, *values: Markup) -> bytes:
        text = Markup('<span class="soft">{} ' + sentence + "</span>").format(self.name, *values)  # noqa: S704 - our own sentence
        return _bytes(text)


class Album:
    """The pictures of a page in its order. The page is rendered once, with a mark for each; then
    those up to the first that does not fit take their places."""

    def __init__(self) -> None:
        self._asked: list[_Asked] = []

    def mark(self, ref: ImageRef, name: str, alt: str = "") -> Markup:
        """Ask for a picture where this mark stands, which no text of others can be."""
        self._asked.append(_Asked(ref, name, alt or name))
        return Markup("<!--picture-->")

    def fill(self, page: str, config: ReportConfig) -> FilledPage:
        """Put the pictures into a page of at most ``config.max_bytes``. Raises UserError where it
        is larger without any."""
        texts = [_bytes(text) for text in page.split("<!--picture-->")]
        filled = [asked.left_out() for asked in self._asked]
        room = config.max_bytes - sum(map(len, [*texts, *filled]))
        if room < 0:
            raise UserError(
                f"--max-size {config.max_size:g}: the report takes "
                f"{(config.max_bytes - room) / 1e6:.1f} MB without pictures: allow more, or show "
                "fewer cases with --show N"
            )
        pictures, at = 0, 0
        with closing(_shrunk([asked.ref for asked in self._asked])) as shrinking:
            for at, each in enumerate(shrinking):
                tag, is_picture = self._asked[at].shown(each, config.folder)
                room -= len(tag) - len(filled[at])
                if room < 0:
                    break
                filled[at], pictures = tag, pictures + is_picture
        dropped = len(filled) - at if room < 0 else 0
        parts = (part for pair in zip(texts, [*filled, b""], strict=True) for part in pair)
        return FilledPage(b"".join(parts), pictures, dropped)


def _shrunk(refs: Sequence[ImageRef]) -> Generator[Future[SmallPicture]]:
    """Shrink pictures in threads, a few ahead of who takes them."""
    waiting: deque[Future[SmallPicture]] = deque()
    pool = ThreadPoolExecutor(_THREADS)
    try:
        for ref in refs:
            waiting.append(pool.submit(small_picture, ref))
            if len(waiting) > _THREADS:
                yield waiting.popleft()
        yield from waiting
    finally:
        pool.shutdown(cancel_futures=True)


def report_document(content: Content, config: ReportConfig) -> FilledPage:
    """Render the page; equal content gives equal bytes. Raises UserError where even without
    pictures it is larger than allowed."""
    album = Album()
    page = templates().get_template("report.html")
    return album.fill(page.render(**_context(content, config), picture=album.mark), config)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


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


def _written(content: Content, document: FilledPage, config: ReportConfig) -> list[str]:
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
