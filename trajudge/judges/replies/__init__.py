"""From a model's reply to a verdict."""
