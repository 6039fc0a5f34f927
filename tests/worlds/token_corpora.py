"""Text of many kinds, and OpenAI's own encoders to count it with.

Real trees and records (``TRAJUDGE_REAL_DATA``), prompts of judges, the bundled sample, Python's
source, and Debian's translations, manuals and licences. The tables come from litellm's wheel.
"""

from __future__ import annotations

import gettext
import gzip
import os
import random
import re
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from trajudge.judges.show import described
from trajudge.trajectories import store
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.sample import sample_path
from trajudge.trajectories.tokens import ENCODINGS

LANGUAGES = (
    "ru uk bg el ar fa he hi mr ne bn ta te th zh_CN zh_TW ja ko de fr es pl cs tr vi fi hu ka hy "
    "pt_BR it sv nl da nb ro sk hr lt et ca id pt eo gl eu sl sr lv is be"
)
JUDGES = ("simplified", "aer-c", "nnetnav")
LONGEST, LEAST = 120_000, 20_000  # bytes of a corpus


def encodings() -> dict[str, Any]:
    """OpenAI's encoders, their tables read from litellm's wheel."""
    found = find_spec("litellm")
    if found is None or found.origin is None:
        sys.exit("litellm is not installed: its wheel holds the tables (pip install litellm)")
    tables = Path(found.origin).parent / "litellm_core_utils" / "tokenizers"
    os.environ["TIKTOKEN_CACHE_DIR"] = str(tables)
    import tiktoken

    return {name: tiktoken.get_encoding(f"{name}_base") for name in ENCODINGS}


def corpora(languages: str = LANGUAGES) -> dict[str, str]:
    """Text by name; a name's last letter tells its half: 0 to fit on, 1 to hold out."""
    made: dict[str, str] = {}
    for name, texts in sources(languages):
        for half in (0, 1):
            text = "\n".join(islice(texts, half, None, 2))
            cut = text.encode()[:LONGEST].decode("utf-8", "ignore")
            if len(cut.encode()) >= LEAST:
                made[f"{name} {half}"] = cut
    return made


def sources(languages: str) -> Iterator[tuple[str, list[str]]]:
    for language in languages.split():
        yield language, [*_translations(language), *_manuals(language)]
    yield "manuals", _manuals("")
    yield "licences", [_read(p) for p in sorted(Path("/usr/share/common-licenses").iterdir())]
    yield "python", [_read(p) for p in sorted(Path(os.__file__).parent.glob("*.py"))[:40]]
    copyrights = map(_read, sorted(Path("/usr/share/doc").glob("*/copyright")))
    yield "urls", [url for text in copyrights for url in re.findall(r"https?://[^\s\"<>),]+", text)]
    runs = [item for item in store.read(sample_path()) if isinstance(item, Trajectory)]
    seen = [step.observation for run in runs for step in run.steps]
    random.Random(0).shuffle(seen)
    yield "sample trees", [one.axtree for one in seen if one.axtree]
    yield "sample pruned trees", [one.axtree_pruned for one in seen if one.axtree_pruned]
    yield "prompts", [described(judge, {}, run) for judge in JUDGES for run in runs[::3]]
    yield "symbols", _symbols()
    yield from _real_data()


def _real_data() -> Iterator[tuple[str, list[str]]]:
    """Trees as BrowserGym wrote them, task files, judgments, addresses; papers."""
    folder = os.environ.get("TRAJUDGE_REAL_DATA")
    if not folder:
        return
    from trajudge.eval.store.inputs import open_spec
    from trajudge.trajectories.loaders import open_source

    read = open_source(open_spec(f"browsergym:{folder}/browsergym"))
    seen = [s.observation for run in read if isinstance(run, Trajectory) for s in run.steps]
    yield "real trees", [one.axtree for one in seen if one.axtree]
    logs = open_source(open_spec(f"{folder}/trajectory_judge"))
    told = [run for run in islice(logs, 120) if isinstance(run, Trajectory)]
    yield "real prompts", [described("simplified", {}, run) for run in told]
    yield "real pruned trees", [one.axtree_pruned for one in seen if one.axtree_pruned]
    files = sorted(Path(folder).rglob("*.json*"))
    texts = [_read(path)[:40_000] for path in files if path.stat().st_size > 500]
    yield "json", texts[:400]
    yield "json lines", [line for text in texts for line in text.splitlines()][:20_000]
    found = (url for text in texts for url in re.findall(r"https?://[^\s\"'<>\\]+", text))
    yield "real urls", list(dict.fromkeys(found))
    papers = sorted((Path(folder).parent / "papers").glob("*.txt"))
    yield "papers", [part for p in papers for part in _read(p)[:60_000].split("\n\n")]


def _translations(language: str) -> list[str]:
    texts = []
    for path in sorted(Path("/usr/share/locale").glob(f"{language}/LC_MESSAGES/*.mo")):
        try:
            with path.open("rb") as file:
                catalog: dict[Any, str] = vars(gettext.GNUTranslations(file))["_catalog"]
        except (OSError, UnicodeDecodeError):
            continue
        texts.append("\n".join(text for key, text in catalog.items() if key))
    return texts


def _manuals(language: str) -> list[str]:
    pages = sorted(Path("/usr/share/man", language).glob("man1/*.gz"))[:60]
    return [gzip.decompress(page.read_bytes()).decode("utf-8", "replace") for page in pages]


def _symbols() -> list[str]:
    """Icons, emoji and keys, which no text of the others holds."""
    rng = random.Random(1)
    blocks = [(0x1F300, 0x1FAFF), (0xE000, 0xE200), (0x2190, 0x2BFF), (0x1D400, 0x1D7FF)]
    made = []
    for _ in range(300):
        low, high = rng.choice(blocks)
        made.append("".join(chr(rng.randrange(low, high)) for _ in range(60)))
        made.append(rng.randbytes(60).hex())
        made.append(
            "".join(rng.choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP0123456789", k=90))
        )
    return made


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
