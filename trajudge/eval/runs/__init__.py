"""How a run of judges is planned and executed: settings, models, sessions, pricing, progress."""
