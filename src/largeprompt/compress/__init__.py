"""A long prompt as fewer numbers: exact atoms beside linear limits, with an error."""
