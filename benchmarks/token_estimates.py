"""How near token estimates are to OpenAI's own tables, corpus by corpus, and how they are fitted.

``python -m benchmarks.token_estimates`` prints estimate / count; ``--fit`` writes the weights anew.
Corpora: real trees and records (``TRAJUDGE_REAL_DATA``), prompts of judges, the bundled sample,
Python's source, and Debian's translations, manuals and licences; odd-numbered halves are never
fitted on. Beside the ratio of a whole corpus, at most 120 kB, stand the least and the largest of
its parts of 20 kB. The tables come from litellm's wheel. Nothing of the corpora enters the weights
but sums over classes of bytes.
"""

from __future__ import annotations

import argparse
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
from time import process_time
from typing import Any, cast

import numpy as np
import orjson

from trajudge.judges.show import described
from trajudge.trajectories import store
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.sample import sample_path
from trajudge.trajectories.tokens import (
    ENCODINGS,
    WEIGHTS,
    Encoding,
    byte_classes,
    count_tokens,
    counting_for,
)

LANGUAGES = (
    "ru uk bg el ar fa he hi mr ne bn ta te th zh_CN zh_TW ja ko de fr es pl cs tr vi fi hu ka hy "
    "pt_BR it sv nl da nb ro sk hr lt et ca id pt eo gl eu sl sr lv is be"
)
JUDGES = ("simplified", "aer-c", "nnetnav")
LONGEST, LEAST = 120_000, 20_000  # bytes of a corpus
HEADROOM = 1.05
_CHUNK, _CHUNKS = 3_000, 120  # characters of a piece to fit on, pieces of a corpus


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
    for name, texts in _sources(languages):
        for half in (0, 1):
            text = "\n".join(islice(texts, half, None, 2))
            cut = text.encode()[:LONGEST].decode("utf-8", "ignore")
            if len(cut.encode()) >= LEAST:
                made[f"{name} {half}"] = cut
    return made


def _sources(languages: str) -> Iterator[tuple[str, list[str]]]:
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


def fit(known: dict[str, Any]) -> None:
    """Write the weights: non-negative least squares of the relative error, every corpus alike."""
    table, kinds = byte_classes()
    chunks: list[str] = []
    shares: list[float] = []
    for _, texts in _sources(LANGUAGES):
        mine = _pieces("\n".join(texts[::2]))
        chunks += mine
        shares += [1 / max(len(mine), 1) ** 0.5] * len(mine)
    pairs = np.array([_pairs(chunk, table, kinds) for chunk in chunks], dtype=np.float32)
    # What no text shows: most bytes of rare characters are a token of their own.
    ascii_kinds = np.array(
        [any(table[byte] == kind for byte in range(128)) for kind in range(kinds)]
    )
    prior = np.where(ascii_kinds[:, None] & ascii_kinds[None, :], 0.4, 0.8).ravel()
    written: dict[str, list[int]] = {}
    for name, encoding in known.items():
        counts = np.array([len(encoding.encode_ordinary(chunk)) for chunk in chunks])
        rows = pairs * (np.array(shares) / counts).astype(np.float32)[:, None]
        weights = _least_squares(rows, np.array(shares) * HEADROOM, prior)
        written[name] = np.rint(weights * 1000).astype(int).tolist()
    WEIGHTS.write_bytes(orjson.dumps(written) + b"\n")


def _least_squares(rows: Any, wanted: Any, prior: Any, ridge: float = 1e-3) -> Any:
    """Find weights from 0 to 1 with ``rows @ weights`` near ``wanted``, near ``prior`` too."""
    from scipy.optimize import minimize

    scale = 1 / np.sqrt((rows**2).sum(axis=0) + ridge**2)
    scaled = (rows * scale).astype(np.float32)

    def loss(x: Any) -> tuple[float, Any]:
        off = scaled @ x.astype(np.float32) - wanted.astype(np.float32)
        drawn = (x * scale - prior) * ridge
        slope = 2 * (scaled.T @ off).astype(float) + 2 * ridge * drawn * scale
        return float((off.astype(float) ** 2).sum() + (drawn**2).sum()), slope

    # No pair may cost more than a token: a rare one would, to make up for what lies beside it.
    bounds = [(0, 1 / each) for each in scale]
    options = {"maxiter": 1500, "maxfun": 3000, "maxcor": 30}
    found = minimize(
        loss, prior / scale, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    return found.x * scale


def _pieces(text: str) -> list[str]:
    """At most ``_CHUNKS`` of ``_CHUNK`` characters, evenly spread."""
    places = range(0, len(text) - _CHUNK + 1, _CHUNK)
    step = max(1.0, len(places) / _CHUNKS)
    chosen = (places[int(number * step)] for number in range(int(len(places) / step)))
    return [text[place : place + _CHUNK] for place in chosen]


def _pairs(text: str, table: bytes, kinds: int) -> Any:
    encoded = text.encode("utf-8", "surrogatepass")
    classes = np.frombuffer(encoded.translate(table), np.uint8).astype(np.int64)
    return np.bincount(classes[:-1] * kinds + classes[1:], minlength=kinds**2)


def measure(texts: dict[str, str], known: dict[str, Any]) -> None:
    """Print estimate / count, and the CPU time for 20 kB."""
    head = "".join(f"{name:>10}{'its parts':>14}" for name in known)
    sys.stdout.write(f"{'corpus':<24}{head}\n")
    for name, text in texts.items():
        line = f"{name:<24}"
        parts = [part.decode("utf-8", "ignore") for part in _cut(text.encode())]
        for encoding, encoder in known.items():
            whole, *found = (ratio(each, encoding, encoder) for each in (text, *parts))
            line += f"{whole:>10.3f}  {min(found):>5.3f}–{max(found):>5.3f}"
        sys.stdout.write(line + "\n")
    page = next(iter(texts.values()))[:20_000]
    tree = texts.get("sample trees 0", page)[:20_000]
    for name, text in (("a tree", tree), ("another script", page)):
        seconds = min(_seconds(text) for _ in range(50))
        sys.stdout.write(f"CPU for 20,000 characters of {name}: {seconds * 1e6:.0f} µs\n")


def ratio(text: str, encoding: str, encoder: Any) -> float:
    """Estimate over count."""
    with counting_for(cast(Encoding, encoding)):
        return count_tokens(text) / len(encoder.encode_ordinary(text))


def _cut(encoded: bytes) -> list[bytes]:
    return [
        encoded[at : at + LEAST] for at in range(0, max(len(encoded) - LEAST // 2, LEAST), LEAST)
    ]


def _seconds(text: str) -> float:
    started = process_time()
    count_tokens(text)
    return process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fit", action="store_true", help="write the weights anew")
    options = parser.parse_args()
    known = encodings()
    if options.fit:
        fit(known)  # a process that has rendered prompts has read the weights before
        return
    measure(corpora(), known)


if __name__ == "__main__":
    main()
