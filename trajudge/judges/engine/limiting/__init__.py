"""When a request may go out: concurrency, rates, waiting."""
