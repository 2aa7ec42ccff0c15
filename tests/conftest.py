"""What all tests share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def merit_data() -> Path:
    """The folder with the real benchmarks, as `MERIT_DATA` names it."""
    named = os.environ.get("MERIT_DATA")
    if not named:
        pytest.skip("MERIT_DATA names no folder with the real benchmarks")
    return Path(named).resolve()
