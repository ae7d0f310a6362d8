"""Measurements that are recorded: each case runs its tests first, then measures."""
