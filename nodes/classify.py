"""The classify node: names the failure of the newest attempt."""

from merit_sql.domain.episode import AttemptDict
from merit_sql.domain.status import Status
from merit_sql.nodes.failures import classify_failure
from merit_sql.nodes.state import EpisodeState


def classify(state: EpisodeState) -> EpisodeState:
    """Write the failure type of the newest attempt into it; reads status and error only, never the SQL."""
    *earlier, newest = state["attempts"]
    failure = classify_failure(Status(newest["status"]), newest["error"])
    classified: AttemptDict = {**newest, "failure": failure.to_dict()}
    return {"attempts": [*earlier, classified]}
