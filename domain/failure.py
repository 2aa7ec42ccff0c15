"""Failure types: what the classifier says of a refused attempt."""

from dataclasses import dataclass
from enum import StrEnum

from typing_extensions import TypedDict


class FailureKind(StrEnum):
    """The seven failure types of the method; a memory's type is one of these."""

    RESULT_MISMATCH = "Result Mismatch"
    SCHEMA_LINKING = "Schema Linking"
    AGGREGATION = "Aggregation"
    FILTER_VALUE = "Filter/Value"
    EXECUTION = "Execution"
    SYNTAX = "Syntax"
    UNKNOWN = "Unknown"


class FailureDict(TypedDict):
    """A `FailureType` as plain data."""

    type: str
    subtype: str
    decided_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureType:
    """One classification: the type, its subtype, and the text that decided it."""

    kind: FailureKind
    subtype: str
    decided_by: str

    def to_dict(self) -> FailureDict:
        """The same as plain data, for states and records."""
        return {"type": self.kind.value, "subtype": self.subtype, "decided_by": self.decided_by}

    @classmethod
    def from_dict(cls, data: FailureDict) -> "FailureType":
        """The inverse of `to_dict`."""
        return cls(
            kind=FailureKind(data["type"]),
            subtype=data["subtype"],
            decided_by=data["decided_by"],
        )
