"""The commands of sharded runs: ``trajudge run work`` and ``trajudge run merge``."""
