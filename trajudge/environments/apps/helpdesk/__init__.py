"""A company's request desk: tickets, purchases, leave, staff, rooms (enterprise process)."""
