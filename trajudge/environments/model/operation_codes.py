"""Operation codes: a keyed hash of a row as it is, so that no code can be made up or kept.

Every row has a valid-looking code, right or wrong, and only the verifier knows which row was meant
(in place of WebForge's deceptive codes, appendix D.5, which are the same in every run).
"""

from __future__ import annotations

import hmac
import json
from base64 import b32encode
from collections.abc import Mapping
from hashlib import sha256

from trajudge.environments.model.state import Value

LENGTH = 10
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"  # of base 32


def run_key(secret: bytes, run: str) -> bytes:
    """Return the key of one run, of which its codes say nothing."""
    return hmac.digest(secret, run.encode(), sha256)


def operation_code(key: bytes, scenario: str, table: str, row: Mapping[str, Value]) -> str:
    """Return the code of a row: ten letters and digits, another one as soon as a column changes."""
    content = json.dumps([scenario, table, dict(row)], sort_keys=True)
    return b32encode(hmac.digest(key, content.encode(), sha256)).decode()[:LENGTH]
