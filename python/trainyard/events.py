"""What happens to a job, as it happens."""

from __future__ import annotations

import http.client
import json
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, Optional, TypeVar

from .errors import Unreachable
from .transport import Transport

SILENCE_SECONDS = 45.0  # the server speaks at least every 15
FINAL = ("succeeded", "failed", "cancelled")


@dataclass(frozen=True)
class Event:
    """topic "job.state", "job.metrics", "job.logs", "job.placement" or "job.timeline"; data as the server's stream has it."""

    topic: str
    seq: int
    data: Dict[str, Any]


def _read(response: http.client.HTTPResponse) -> Iterator[tuple]:
    """(id, data) of each server-sent event; comments have neither."""
    position: Optional[str] = None
    data = []
    for raw in response:
        line = raw.decode("utf-8").rstrip("\r\n")
        if line.startswith("id:"):
            position = line[3:].strip()
        elif line.startswith("data:"):
            data.append(line[5:].strip())
        elif not line:
            yield position, "\n".join(data)
            position, data = None, []


T = TypeVar("T")


def patiently(call: Callable[[], T], patience: float) -> T:
    """What `call` returns; an absent server is asked again for `patience` seconds."""
    gone_since = time.monotonic()
    while True:
        try:
            return call()
        except Unreachable:
            if time.monotonic() - gone_since > patience:
                raise
            time.sleep(0.5)


def follow(transport: Transport, job: str, topics: str, patience: float) -> Iterator[Event]:
    """Events until the job has ended and all that it reported was told.

    A connection that breaks is made anew after the last event; an absent server is asked again for `patience` seconds.
    """
    position: Optional[str] = None
    ended = False
    while True:
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": position} if position else {})}
        path = f"/api/v1/jobs/{job}/events?topics={topics}"
        connection, response = patiently(lambda: transport.open("GET", path, None, headers, SILENCE_SECONDS), patience)
        try:
            for where, text in _read(response):
                position = where or position
                if not text:
                    continue
                message = json.loads(text)
                if "topic" not in message:
                    continue
                event = Event(message["topic"], message["seq"], message["data"])
                yield event
                if event.topic == "job.state" and event.data.get("state") in FINAL and not ended:
                    ended = True
                    if connection.sock:
                        connection.sock.settimeout(2.0)  # what was reported before the end comes at once
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()
        if ended:
            return
