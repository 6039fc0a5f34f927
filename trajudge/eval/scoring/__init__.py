"""From judgments and labels to scores with intervals and comparisons."""
