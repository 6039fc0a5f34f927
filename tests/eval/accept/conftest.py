"""The trainers, for the tests of this folder."""

from tests.trainers import packages

__all__ = ["packages"]
