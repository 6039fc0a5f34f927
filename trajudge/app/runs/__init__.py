"""Pages of runs: their list, an overview of each, and the table of its judgments."""
