"""The failure classifier: ordered rules over the status and the DBMS's message, never over the SQL."""

import re
from dataclasses import dataclass

from merit_sql.domain.failure import FailureKind, FailureType
from merit_sql.domain.status import Status

UNKNOWN = "Unknown"
"""Subtype where the message decides nothing finer."""

LONGEST_END = 2_000
"""Characters that are read at either end of a message: tokens quoted in its middle can be megabytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One row of a table: any of `phrases`, anywhere in what the DBMS itself said, gives this type."""

    phrases: tuple[str, ...]
    kind: FailureKind
    subtype: str

    def decides(self, message: str) -> str | None:
        """The phrase as it stands in `message`, whatever its case; None where the rule does not apply."""
        for phrase in self.phrases:
            found = re.search(re.escape(phrase), message, re.IGNORECASE)
            if found:
                return found.group()
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTable:
    """The rules of one DBMS, first match wins, and where its messages quote the user's own text.

    What `quoted` matches shrinks to its group ``kept`` before any rule looks at the message, so that a
    table named ``timed out`` is a missing table and no timeout. The leftmost match decides what is quoted.
    """

    dialect: str
    quoted: re.Pattern[str]
    rules: tuple[Rule, ...]

    def own_words(self, message: str) -> str:
        """`message` without the names and tokens of the user that it quotes."""
        if len(message) > 2 * LONGEST_END:
            message = message[:LONGEST_END] + message[-LONGEST_END:]
        return self.quoted.sub(lambda match: match.group("kept") or "", message)


SQLITE = RuleTable(
    dialect="sqlite",
    quoted=re.compile(
        r"""
          near\ ".*"(?=:\ syntax\ error)
        | '.*'(?=\ is\ not\ a\ function)
        | (?P<kept>
              no\ such\ [a-z\ ]{1,40}:
            | (?:ambiguous\ column\ name|unrecognized\ token|circular\ reference|unknown\ join\ type):
            | duplicate\ with\ table\ name:
            | misuse\ of\ aggregate(?:\ function|:)
            | misuse\ of\ (?:aliased\ aggregate|(?:aliased\ )?window\ function)
            | (?:wrong\ number\ of\ arguments\ to|unable\ to\ use)\ function
            | too\ many\ arguments\ on
            | cannot\ join\ using\ column
            | (?:bad\ json\ path:|json\ path\ error\ near)
            | (?:^|:\ )table(?=\ .*\ has\ )
          )\ .*
        """,
        re.VERBOSE | re.IGNORECASE | re.DOTALL,
    ),
    rules=(
        Rule(phrases=("timed out",), kind=FailureKind.EXECUTION, subtype="Timeout"),
        Rule(phrases=("no such table",), kind=FailureKind.SCHEMA_LINKING, subtype="Missing Table"),
        Rule(phrases=("no such column",), kind=FailureKind.SCHEMA_LINKING, subtype="Missing Column"),
        Rule(phrases=("no such view",), kind=FailureKind.SCHEMA_LINKING, subtype="Missing View"),
        Rule(phrases=("ambiguous column name",), kind=FailureKind.SCHEMA_LINKING, subtype="Ambiguous Column"),
        Rule(phrases=("no such function",), kind=FailureKind.SYNTAX, subtype="Unknown Function"),
        Rule(
            phrases=("syntax error", "incomplete input", "unrecognized token"),
            kind=FailureKind.SYNTAX,
            subtype="Parse Failure",
        ),
        Rule(
            phrases=("misuse of aggregate", "aggregate functions are not allowed"),
            kind=FailureKind.AGGREGATION,
            subtype="Aggregate Misuse",
        ),
        Rule(
            phrases=("datatype mismatch", "type mismatch"),
            kind=FailureKind.FILTER_VALUE,
            subtype="Type Mismatch",
        ),
        Rule(
            phrases=("attempt to write a readonly database", "only SELECT or WITH queries"),
            kind=FailureKind.EXECUTION,
            subtype="Read-Only Violation",
        ),
        Rule(phrases=("database not found",), kind=FailureKind.EXECUTION, subtype="Database Not Found"),
    ),
)
"""SQLite's messages and our own refusals, in the order of method.md, "Failure classifier"."""


def classify_failure(status: Status, error: str | None, table: RuleTable = SQLITE) -> FailureType:
    """The failure type of a refused attempt, from its status and the DBMS's message alone.

    A timeout is one whatever the message; then the table's rules in their order; then any other message
    is Unknown. Without a message, an attempt that ran is a Result Mismatch and one that did not run is
    Unknown. Raises ValueError for a correct attempt, which has no failure.
    """
    if status is Status.CORRECT:
        raise ValueError("a correct attempt has no failure type: classify refused attempts only")
    message = (error or "").strip()
    if status is Status.TIMEOUT:
        return FailureType(kind=FailureKind.EXECUTION, subtype="Timeout", decided_by=message or status.value)
    own_words = table.own_words(message)
    for rule in table.rules:
        decided_by = rule.decides(own_words)
        if decided_by is not None:
            return FailureType(kind=rule.kind, subtype=rule.subtype, decided_by=decided_by)
    if message:
        return FailureType(kind=FailureKind.UNKNOWN, subtype=UNKNOWN, decided_by=message)
    ran = status is not Status.EXECUTION_ERROR
    kind = FailureKind.RESULT_MISMATCH if ran else FailureKind.UNKNOWN
    return FailureType(kind=kind, subtype=UNKNOWN, decided_by=status.value)
