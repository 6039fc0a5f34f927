"""Where the server listens, and what it takes."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, SecretStr

from trajudge.rewards.settings import RewardConfig
from trajudge.trajectories.model import Record


class RewardServerConfig(Record):
    """``folder`` keeps pushed trajectories, their images and what was paid. ``queue`` rewards are
    at work at most; ``patience`` seconds is how long an id may be unknown. ``token`` None: everyone
    who reaches the address may ask, which only loopback addresses allow."""

    reward: RewardConfig
    folder: Path
    host: str = "127.0.0.1"
    port: int = Field(default=8377, ge=0, le=65_535)
    token: SecretStr | None = None
    queue: int = Field(default=1_000, ge=1)
    patience: float = Field(default=10.0, ge=0)
