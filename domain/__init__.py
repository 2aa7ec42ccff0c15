"""The words everyone speaks: statuses, cases, attempts, verdicts, schemas, memory entries, errors."""
