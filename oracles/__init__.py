"""Who judges an attempt when no benchmark does."""

from merit_sql.oracles.execution import ExecutionOracle

__all__ = ["ExecutionOracle"]
