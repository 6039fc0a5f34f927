"""What is kept of calls: replies, leases, payments, what was really sent."""
