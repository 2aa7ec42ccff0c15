"""Which API key goes to which server: only to the one that it was configured for."""

import os
from collections.abc import Callable, MutableMapping
from typing import Any, Protocol
from urllib.parse import SplitResult, urlsplit

from merit_sql.domain.errors import ModelError

OFFICIAL = "https://api.openai.com/v1"
"""The server that a key from the environment is meant for where the environment names no other."""

PLACEHOLDER = "no-key"
"""Sent where there is no key for a server: its client insists on one."""

_PLAIN_HEADERS = frozenset(
    {"host", "accept", "accept-encoding", "connection", "content-type", "content-length", "user-agent"}
)

_CLIENT_HEADERS = "x-stainless-"
"""Headers in which the client notes its version and reads back how it was called."""


class _Request(Protocol):
    @property
    def headers(self) -> MutableMapping[str, str]: ...


def checked_base_url(base_url: str) -> str:
    """The base URL without a trailing slash; raises `ModelError` for one that is not plain http(s).

    A URL that carries a name, a password, a query or a fragment is refused: it would be written to records
    and manifests.
    """
    try:
        parts = urlsplit(base_url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        raise ModelError(
            "the base URL of a model must be http(s)://HOST[:PORT]/PATH, e.g. http://localhost:8000/v1"
        )
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ModelError(
            f"the base URL of the server {parts.hostname} holds a name, a password, a query or a fragment: "
            "give the key in OPENAI_API_KEY, with the server's URL in OPENAI_BASE_URL"
        )
    return base_url.rstrip("/")


def configured_here(base_url: str) -> bool:
    """Whether the environment's OpenAI settings (key, organisation, headers) are meant for this server."""
    named = os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE") or OFFICIAL
    return _place(urlsplit(named)) == _place(urlsplit(base_url))


def key_for(base_url: str) -> str | None:
    """The environment's key if it is meant for this server, else None."""
    return (os.environ.get("OPENAI_API_KEY") or None) if configured_here(base_url) else None


def _place(parts: SplitResult) -> tuple[str, str | None, int | None, str]:
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname, port, parts.path.rstrip("/")


def header_guard(base_url: str, key: str | None) -> Callable[[Any], None]:
    """A hook that sees every request: it sets the one authorization that this server may be shown.

    Where the environment's settings are meant for another server it also takes off every header but those
    that any request has; the client would add organisation, project and custom headers by itself.
    """
    ours = configured_here(base_url)

    def guard(request: _Request) -> None:
        if not ours:
            for name in list(request.headers):
                if name.lower() not in _PLAIN_HEADERS and not name.lower().startswith(_CLIENT_HEADERS):
                    del request.headers[name]
        request.headers["Authorization"] = f"Bearer {key or PLACEHOLDER}"

    return guard
