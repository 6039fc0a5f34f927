"""What pages keep between starts stays out of the cache of whoever runs the tests."""

from tests.eval.conftest import cache_home  # noqa: F401 - a fixture
