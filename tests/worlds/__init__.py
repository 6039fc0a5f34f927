"""Data and samples whose truth is known, for tests and benchmarks."""
