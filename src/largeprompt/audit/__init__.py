"""Captured queries, keys and values -> what is true of each head."""

from largeprompt.audit.arrays import audit_arrays
from largeprompt.audit.comparison import Comparison, compare_audits
from largeprompt.audit.merge import merge_audits
from largeprompt.audit.result import AuditResult, load_audit
from largeprompt.audit.selection import Question

__all__ = [
    "AuditResult",
    "Comparison",
    "Question",
    "audit_arrays",
    "compare_audits",
    "load_audit",
    "merge_audits",
]
