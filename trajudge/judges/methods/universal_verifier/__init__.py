"""The Universal Verifier: its stages, their replies, and the judge (``judge``)."""

from trajudge.judges.methods.universal_verifier.judge import UniversalVerifier

__all__ = ["UniversalVerifier"]
