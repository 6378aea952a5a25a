"""HTTP whose whole reply is bounded in time and in bytes, for endpoints that may do anything.

Not here: what is sent, and what a failure means (agents.llm).
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx

MAX_REPLY_BYTES = 16 << 20


class Bounded(httpx.HTTPTransport):
    """HTTP whose whole reply must come within the request's read timeout and MAX_REPLY_BYTES.

    httpx's own timeout is for each read: a server that sends a byte a second would hold us for ever.
    """

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Raises httpx.ReadTimeout and httpx.ReadError while the body is read."""
        ends = time.monotonic() + float(request.extensions["timeout"]["read"])
        response = super().handle_request(request)
        body = response.stream
        assert isinstance(body, httpx.SyncByteStream)
        response.stream = _Body(body, ends)
        return response


class _Body(httpx.SyncByteStream):
    def __init__(self, body: httpx.SyncByteStream, ends: float) -> None:
        self._body = body
        self._ends = ends

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for chunk in self._body:
            size += len(chunk)
            if size > MAX_REPLY_BYTES:
                raise httpx.ReadError(f"a reply of more than {MAX_REPLY_BYTES:,} bytes")
            if time.monotonic() > self._ends:
                raise httpx.ReadTimeout("the reply came too slowly")
            yield chunk

    def close(self) -> None:
        self._body.close()
