"""Outcomes, opinions and polarities: the closed vocabularies of an episode."""

from enum import StrEnum


class Status(StrEnum):
    """Outcome of one attempt.

    ``EXECUTED`` is a query that ran and that nobody judged; the other four are the method's.
    """

    CORRECT = "CORRECT"
    DENOTATION_MISMATCH = "DENOTATION_MISMATCH"
    EXECUTION_ERROR = "EXECUTION_ERROR"
    TIMEOUT = "TIMEOUT"
    EXECUTED = "EXECUTED"


class Opinion(StrEnum):
    """What an oracle makes of an attempt; ``NONE`` means that nobody judged it."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    NONE = "none"


class Polarity(StrEnum):
    """Whether a memory is a verified correction or a direction that failed."""

    POSITIVE = "positive"
    NEGATIVE = "negative"


class Regime(StrEnum):
    """Who confirms: a comparison of denotations, or nobody (the DBMS alone)."""

    DENOTATION_CONFIRMED = "denotation_confirmed"
    DBMS_ONLY = "dbms_only"
