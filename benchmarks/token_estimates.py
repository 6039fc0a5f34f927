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
import sys
from time import process_time
from typing import Any, cast

import numpy as np
import orjson

from tests.worlds.token_corpora import LANGUAGES, LEAST, corpora, encodings, sources
from trajudge.trajectories.tokens import (
    WEIGHTS,
    Encoding,
    byte_classes,
    count_tokens,
    counting_for,
)

HEADROOM = 1.05
_CHUNK, _CHUNKS = 3_000, 120  # characters of a piece to fit on, pieces of a corpus


def fit(known: dict[str, Any]) -> None:
    """Write the weights: non-negative least squares of the relative error, every corpus alike."""
    table, kinds = byte_classes()
    chunks: list[str] = []
    shares: list[float] = []
    for _, texts in sources(LANGUAGES):
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
