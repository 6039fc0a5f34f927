"""A judge that never reads what the agent says of itself: one call turns it into claims, another
checks them against the record, with citations that the code looks up."""
