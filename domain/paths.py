"""Where things are kept between runs."""

import os
from pathlib import Path


def cache_dir() -> Path:
    """The folder for models and built databases: ``MERIT_CACHE``, else the user's cache folder.

    It is not created here.
    """
    chosen = os.environ.get("MERIT_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "merit-sql"
