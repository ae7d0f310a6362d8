"""Captured queries, keys and values -> what is true of each head."""

from largeprompt.audit.arrays import audit_arrays
from largeprompt.audit.result import AuditResult

__all__ = ["AuditResult", "audit_arrays"]
