"""How models are called, as a typed record; its fields are named as the options of ``options``."""

from __future__ import annotations

from pydantic import Field

from trajudge.trajectories.model import Record, Seed

HOTTEST = 2.0  # OpenAI's and Gemini's bound; open models take more, and answer noise there


class CallConfig(Record):
    """How models are called, and what that may cost.

    ``timeout`` in seconds, ``wait`` the seconds that a server may take to load its model,
    ``max_cost`` in US dollars (None: no limit), ``rpm`` and ``tpm`` requests and tokens per minute,
    ``context`` the model's window in tokens where it is not known. ``max_tokens`` None: by what the
    model can (``Capability.default_max_tokens``). ``extra_body`` and ``extra_headers`` are JSON
    objects, ``models`` is a file of the user's entries or JSON.
    """

    adapter: str | None = None
    script: str | None = None
    base_url: str | None = None
    temperature: float = Field(default=0.0, ge=0, le=HOTTEST)
    max_tokens: int | None = Field(default=None, ge=1)
    reasoning_effort: str | None = None
    thinking_budget: int | None = Field(default=None, ge=1)
    extra_body: str | None = None
    extra_headers: str | None = None
    models: str | None = None
    seed: Seed = 0
    concurrency: int = Field(default=32, ge=1)
    rpm: float | None = Field(default=None, gt=0)
    tpm: float | None = Field(default=None, gt=0)
    context: int | None = Field(default=None, ge=1)
    timeout: float = Field(default=300.0, gt=0)
    wait: float | None = Field(default=None, gt=0)
    max_cost: float | None = Field(default=None, ge=0)
    prices: str | None = None
    cache: str | None = None
    dry_run: bool = False
