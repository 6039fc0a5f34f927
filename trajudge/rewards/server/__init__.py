"""The reward server: one judge behind HTTP, in its own protocol and in those of trainers."""
