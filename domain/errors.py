"""The one root of every error that merit-sql raises on purpose."""


class MeritError(Exception):
    """Something a caller can act on: the message says what was wrong, where, and what to do."""


class DataError(MeritError):
    """A file or record that was handed in does not have the form it must have."""


class IdentityError(MeritError):
    """Something on disk was made under other settings than the ones asked for now."""


class CausalityError(MeritError):
    """A retrieval returned an entry that the gate forbids; the run stops here."""


class ModelError(MeritError):
    """A model or encoder could not be had or did not answer: the end of a run, never a wrong answer."""


class StoppedError(MeritError):
    """Work was asked to stop and did so where it can go on; nothing is lost."""
