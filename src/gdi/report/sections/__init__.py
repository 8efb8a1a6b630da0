"""The sections of a report, one module per question. Each function returns a section, or None if it has no data."""
