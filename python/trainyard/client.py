"""A server, and what can be asked of it."""

from __future__ import annotations

import hashlib
import os
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Union
from urllib.parse import quote

from .errors import Error
from .job import Job
from .transport import Transport

FILE_BYTES_MAX = 64 << 20  # the server takes no larger one


class Client:
    """Of which server: `url` and `token`; or the `directory` of one on this machine; or what TRAINYARD_URL and
    TRAINYARD_TOKEN (or TRAINYARD_DIR) say; or what `trainyard login` keeps.  Threads may share it."""

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, directory: Optional[str] = None) -> None:
        self._transport = Transport(url, token, directory)

    def __repr__(self) -> str:
        return f"<trainyard.Client {self._transport.name}>"

    def whoami(self) -> Dict[str, Any]:
        return self._transport.call("GET", "/api/v1/session")

    # --- jobs ---

    def submit(self, spec: Optional[Mapping[str, Any]] = None, *, key: Optional[str] = None, **fields: Any) -> Job:
        """Submits a job: a spec, fields over it (submit({"example": "digits-cnn"}, train={"steps": 100})).

        With `key` (any text of yours) the same submission made again gives the same job.
        """
        headers = {"Idempotency-Key": key} if key else None
        return Job(self._transport, self._transport.call("POST", "/api/v1/jobs", {**(spec or {}), **fields}, headers=headers))

    def run(self, command: Sequence[str], files: Union[Sequence[str], Mapping[str, str]] = (), *, key: Optional[str] = None,
            **fields: Any) -> Job:
        """Makes a job of any program.  `files` are brought along: names of files here, or {name there: file here}."""
        pairs = dict(files) if isinstance(files, Mapping) else {os.path.basename(path): path for path in files}
        sent = {name: self.upload(path) for name, path in pairs.items()}
        return self.submit({"command": list(command), **({"files": sent} if sent else {})}, key=key, **fields)

    def upload(self, path: str) -> str:
        """Brings a file to the server, unless it has it; its SHA-256 is what "files" of a spec takes."""
        size = os.path.getsize(path)
        if size > FILE_BYTES_MAX:
            raise ValueError(f"{path} has {size} bytes; a job's file has at most {FILE_BYTES_MAX}")
        with open(path, "rb") as file:
            data = file.read()
        digest = hashlib.sha256(data).hexdigest()
        try:
            self._transport.call("GET", "/api/v1/files/" + digest)
        except Error as error:
            if error.status != 404:
                raise
            connection, response = self._transport.open("PUT", "/api/v1/files/" + digest, data,
                                                        {"Content-Type": "application/octet-stream"})
            response.read()
            connection.close()
        return digest

    def plan(self, spec: Optional[Mapping[str, Any]] = None, **fields: Any) -> Dict[str, Any]:
        """What would happen if it were submitted: when it starts, where, whom it delays."""
        return self._transport.call("POST", "/api/v1/plan", {"spec": {**(spec or {}), **fields}})

    def job(self, which: Union[int, str]) -> Job:
        """By number or id."""
        return Job(self._transport, self._transport.call("GET", "/api/v1/jobs/" + quote(str(which), safe="")))

    def jobs(self, state: Optional[str] = None, name: Optional[str] = None, project: Optional[str] = None,
             limit: Optional[int] = None) -> Iterator[Job]:
        """Newest first, page by page as they are asked for."""
        cursor: Optional[str] = None
        left = limit
        while left is None or left > 0:
            page = self._transport.call("GET", "/api/v1/jobs", query={
                "state": state, "name": name, "project": project, "cursor": cursor,
                "limit": min(left, 100) if left is not None else 100})
            for fields in page["items"]:
                yield Job(self._transport, fields)
            left = left - len(page["items"]) if left is not None else None
            cursor = page.get("next_cursor")
            if not cursor:
                return

    # --- what there is ---

    def examples(self) -> Dict[str, Dict[str, Any]]:
        """Specs by name."""
        return {row["name"]: row["spec"] for row in self._transport.call("GET", "/api/v1/examples")["items"]}

    def nodes(self) -> List[Dict[str, Any]]:
        return self._transport.call("GET", "/api/v1/nodes")["items"]

    def queues(self) -> List[Dict[str, Any]]:
        return self._transport.call("GET", "/api/v1/queues")["items"]
