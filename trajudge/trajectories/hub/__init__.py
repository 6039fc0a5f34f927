"""A lazy local mirror of a Hugging Face dataset."""
