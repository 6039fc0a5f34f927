"""Commands and numbers: judge (the main job), score, and the metrics behind their tables."""
