"""A community site's moderation desk: reports, decisions, appeals, audit log (moderation)."""
