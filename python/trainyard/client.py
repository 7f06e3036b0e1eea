"""A server, and what can be asked of it."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union
from urllib.parse import quote, urlencode

from .errors import Error
from .job import Job
from .transport import Transport

FILE_BYTES_MAX = 64 << 20  # the server takes no larger one
PIECE_BYTES = 8 << 20
PUBLISH_SECONDS = 1200.0  # the server reads all of a dataset


def _dataset_path(name: str) -> str:
    return "/api/v1/datasets/" + quote(name, safe="")


def _files_below(folder: str) -> Iterator[Tuple[str, str]]:
    """The name within the dataset and the path here of each file; hidden ones are left out."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(one for one in folders if not one.startswith("."))
        for name in sorted(names):
            whole = os.path.join(place, name)
            path = os.path.relpath(whole, folder).replace(os.sep, "/")
            if not name.startswith(".") and path != "dataset.json" and os.path.isfile(whole):
                yield path, whole


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

    # --- datasets ---

    def datasets(self) -> List[Dict[str, Any]]:
        """What jobs can name, and what is being sent."""
        return self._transport.call("GET", "/api/v1/datasets")["items"]

    def dataset(self, name: str) -> Dict[str, Any]:
        """One of them, with its columns and files."""
        return self._transport.call("GET", _dataset_path(name))

    def upload_dataset(self, name: str, folder: str) -> Dict[str, Any]:
        """Sends the files of a folder, each from where an earlier try ended, and makes a dataset of them."""
        come = self._come_so_far(name)
        hashes: Dict[str, str] = {}
        for path, whole in _files_below(folder):
            digest = hashlib.sha256()
            with open(whole, "rb") as file:
                for piece in iter(lambda: file.read(PIECE_BYTES), b""):
                    digest.update(piece)
                offset = come.get(path, 0)
                file.seek(offset)
                piece = file.read(PIECE_BYTES)
                while piece or path not in come:  # an empty file is one piece of nothing
                    come[path] = self._send_piece(name, path, offset, piece)
                    offset = come[path]
                    piece = file.read(PIECE_BYTES)
            hashes[path] = digest.hexdigest()
        if not hashes:
            raise ValueError(f"the folder {folder} has no files that could be sent")
        return self._transport.call("POST", _dataset_path(name) + ":publish", {"files": hashes}, timeout=PUBLISH_SECONDS)

    def remove_dataset(self, name: str) -> None:
        """A dataset that no job needs, or what has come of one."""
        self._transport.call("DELETE", _dataset_path(name))

    def _come_so_far(self, name: str) -> Dict[str, int]:
        try:
            found = self.dataset(name)
        except Error as error:
            if error.status != 404:
                raise
            return {}
        return {row["path"]: row["size"] for row in found["files"]} if found["state"] == "uploading" else {}

    def _send_piece(self, name: str, path: str, offset: int, piece: bytes) -> int:
        query = urlencode({"path": path, "offset": offset})
        connection, response = self._transport.open("PUT", f"{_dataset_path(name)}/files?{query}", piece,
                                                    {"Content-Type": "application/octet-stream"})
        try:
            return int(json.loads(response.read())["size"])
        finally:
            connection.close()

    # --- what there is ---

    def examples(self) -> Dict[str, Dict[str, Any]]:
        """Specs by name."""
        return {row["name"]: row["spec"] for row in self._transport.call("GET", "/api/v1/examples")["items"]}

    def nodes(self) -> List[Dict[str, Any]]:
        return self._transport.call("GET", "/api/v1/nodes")["items"]

    def queues(self) -> List[Dict[str, Any]]:
        return self._transport.call("GET", "/api/v1/queues")["items"]
