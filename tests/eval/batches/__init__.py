"""Tests of eval/batches."""
