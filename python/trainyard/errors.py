"""What can go wrong between a program and a server."""

from __future__ import annotations

from typing import Any, Mapping, Optional


class Error(Exception):
    """The server refused a request (RFC 9457).

    status    HTTP's, 404
    code      stable, "NOT_FOUND"
    detail    what is wrong, for people
    hint      what to do about it, or ""
    pointer   the field at fault as a JSON pointer, or ""
    """

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.code: str = str(problem.get("code", "UNKNOWN"))
        self.detail: str = str(problem.get("detail", ""))
        self.hint: str = str(problem.get("hint") or "")
        errors = problem.get("errors") or [{}]
        self.pointer: str = str(errors[0].get("pointer", ""))
        self.request_id: Optional[str] = problem.get("request_id")
        super().__init__(f"{self.detail} ({self.code}, HTTP {status})" + (f" at {self.pointer}" if self.pointer else ""))


class Unreachable(ConnectionError):
    """No server answers at the address."""
