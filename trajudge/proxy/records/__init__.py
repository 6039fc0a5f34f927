"""What a run through the proxy leaves on disk: events as JSON lines, a network trace per task."""
