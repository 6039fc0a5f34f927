"""Pickles read as data; nothing that they name is run."""
