"""What a leaderboard compares: folders of runs, published verdicts, judges without a model."""
