"""Pages of a queue: labelling blind, the informed stage, adjudication, agreement, the audit."""
