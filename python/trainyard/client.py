"""The REST API as objects; the standard library and nothing else."""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

FINAL = ("succeeded", "failed", "cancelled")
RETRIES = 5  # of what may be sent again, while the server does not answer
SILENCE = 40.0  # a stream says something every 15 seconds


class Problem(Exception):
    """What the server refused, and why: `detail` names the field, `hint` says what to do."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.code: str = problem.get("code", "UNKNOWN")
        self.detail: str = problem.get("detail", "")
        self.hint: str = problem.get("hint", "")
        self.pointers: List[str] = [error["pointer"] for error in problem.get("errors", [])]
        self.request_id: str = problem.get("request_id", "")
        super().__init__(" ".join(self.pointers + [self.detail or f"HTTP {status}"]))


def _kept() -> Tuple[str, str]:
    """What `trainyard login` has kept: address and token."""
    config = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    try:
        login = json.loads((Path(config) / "trainyard" / "login").read_text())
        return login["url"], login["token"]
    except (OSError, ValueError, KeyError):
        return "", ""


class Client:
    """One server.  Without arguments: TRAINYARD_URL and TRAINYARD_TOKEN, or what `trainyard login` has kept."""

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, timeout: float = 30) -> None:
        kept_url, kept_token = ("", "") if url or os.environ.get("TRAINYARD_URL") else _kept()
        self.url = (url or os.environ.get("TRAINYARD_URL") or kept_url).rstrip("/")
        self._token = token or os.environ.get("TRAINYARD_TOKEN") or kept_token
        self.timeout = timeout
        if not self.url:
            raise ValueError("which server? Give url and token, set TRAINYARD_URL and TRAINYARD_TOKEN, or run: trainyard login URL")

    def open(self, method: str, path: str, body: Any = None, headers: Optional[Mapping[str, str]] = None, timeout: Optional[float] = None) -> Any:
        """The response, still to be read.  Raises Problem, or OSError when no server answers."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/api/v1{path}", data=data, method=method)
        request.add_header("Authorization", f"Bearer {self._token}")
        if data is not None:
            request.add_header("Content-Type", "application/json")
        for name, value in (headers or {}).items():
            request.add_header(name, value)
        try:
            return urllib.request.urlopen(request, timeout=timeout or self.timeout)
        except urllib.error.HTTPError as error:
            text = error.read()
            try:
                problem = json.loads(text)
            except ValueError:
                problem = {"detail": text[:200].decode(errors="replace")}
            raise Problem(error.code, problem) from None

    def request(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """One request and its JSON.  What changes nothing, or has a key, is sent again while no server answers."""
        given = {name: value for name, value in query.items() if value is not None}
        if given:
            path += "?" + urllib.parse.urlencode(given)
        headers = {"Idempotency-Key": uuid.uuid4().hex} if (method, path) == ("POST", "/jobs") else {}
        again = RETRIES if method == "GET" or headers else 0
        for attempt in range(again + 1):
            try:
                with self.open(method, path, body, headers) as response:
                    text = response.read()
                return json.loads(text) if text else None
            except (OSError, TimeoutError):
                if attempt == again:
                    raise
                time.sleep(min(0.2 * 2**attempt, 3))

    def submit(self, spec: Mapping[str, Any]) -> Job:
        """Makes a job; it is on the server's disk when this returns, once, however often it was sent."""
        return Job(self, self.request("POST", "/jobs", dict(spec)))

    def plan(self, spec: Mapping[str, Any]) -> Dict[str, Any]:
        """Where and when it would start, and what is wrong with it; nothing is made."""
        answer: Dict[str, Any] = self.request("POST", "/jobs", dict(spec), dry_run="plan")
        return answer

    def job(self, job: Any) -> Job:
        """By number, id or name."""
        return Job(self, self.request("GET", f"/jobs/{urllib.parse.quote(str(job), safe='')}"))

    def jobs(self, state: Optional[str] = None, project: Optional[str] = None, name: Optional[str] = None, q: Optional[str] = None) -> Iterator[Job]:
        """Newest first, a page at a time; `state` may be several: "running,queued"."""
        cursor: Optional[str] = None
        while True:
            page = self.request("GET", "/jobs", limit=100, cursor=cursor, state=state, project=project, name=name, q=q)
            for item in page["items"]:
                yield Job(self, item)
            cursor = page["next_cursor"]
            if not cursor:
                return

    def nodes(self) -> List[Dict[str, Any]]:
        items: List[Dict[str, Any]] = self.request("GET", "/nodes")["items"]
        return items


class Job:
    """A job as it was when it was read; refresh() reads it again."""

    def __init__(self, client: Client, data: Dict[str, Any]) -> None:
        self.client = client
        self.data = data

    @property
    def id(self) -> str:
        return str(self.data["id"])

    @property
    def number(self) -> int:
        return int(self.data["number"])

    @property
    def name(self) -> str:
        return str(self.data["name"])

    @property
    def state(self) -> str:
        return str(self.data["state"])

    def __repr__(self) -> str:
        return f"<Job {self.number} {self.name!r} {self.state}>"

    def _ask(self, method: str, rest: str = "", body: Any = None, **query: Any) -> Any:
        return self.client.request(method, f"/jobs/{self.id}{rest}", body, **query)

    def refresh(self) -> Job:
        self.data = self._ask("GET")
        return self

    def spec(self) -> Dict[str, Any]:
        answer: Dict[str, Any] = self._ask("GET", "/spec")
        return answer

    def explain(self) -> str:
        """Why it waits, or how it ended."""
        return str(self._ask("GET", "/explain")["text"])

    def cancel(self) -> None:
        """Stops it after a checkpoint."""
        self._ask("POST", ":cancel", {})

    def kill(self) -> None:
        self._ask("POST", ":kill", {})

    def pause(self) -> None:
        self._ask("POST", ":pause", {})

    def resume(self) -> None:
        self._ask("POST", ":resume", {})

    def clone(self, changes: Optional[Mapping[str, Any]] = None) -> Job:
        """A new job of the same spec, with the fields of `changes` over it."""
        return Job(self.client, self._ask("POST", ":clone", dict(changes or {})))

    def metrics(self, names: Optional[str] = None) -> Dict[str, List[Tuple[int, float]]]:
        """Each series as (step, value), by its name, and by name and task where several tasks have one."""
        series = self._ask("GET", "/metrics", names=names)["series"]
        tasks: Dict[str, int] = {}
        for one in series:
            tasks[one["name"]] = tasks.get(one["name"], 0) + 1
        return {
            one["name"] if tasks[one["name"]] == 1 else f"{one['name']} {one['task']}": [
                (int(step), float(value)) for step, value in zip(one["steps"], one["values"])
            ]
            for one in series
        }

    def logs(self) -> str:
        """The newest lines that its tasks printed."""
        return "\n".join(line["text"] for line in self._ask("GET", "/logs")["items"])

    def events(self, topics: str = "state,metrics,logs") -> Iterator[Dict[str, Any]]:
        """What happens from now on, until the job has ended; goes on where it was after the connection is lost."""
        position = ""
        failures = 0
        while True:
            try:
                query = urllib.parse.urlencode({"topics": topics})
                headers = {"Accept": "text/event-stream", **({"Last-Event-ID": position} if position else {})}
                with self.client.open("GET", f"/jobs/{self.id}/events?{query}", headers=headers, timeout=SILENCE) as stream:
                    for raw in stream:
                        field, _, value = raw.decode().rstrip("\n").partition(": ")
                        failures = 0
                        if field == "id":
                            position = value
                        elif field == "data":
                            event = json.loads(value)
                            yield event
                            if event.get("topic") == "job.state" and event["data"]["state"] in FINAL:
                                return
            except OSError:
                failures += 1
                if failures > RETRIES:
                    raise
            time.sleep(min(0.2 * 2**failures, 3))
            if self.refresh().state in FINAL and "state" not in topics:
                return

    def wait(self) -> str:
        """Returns the state in which it ended."""
        for _ in self.events("state"):
            pass
        return self.refresh().state

    def watch(self, say: Callable[[str], Any] = lambda line: print(line, file=sys.stdout, flush=True)) -> str:
        """Tells each change of state, each second the newest values, and how it ended; returns the state."""
        said = 0.0
        for event in self.events("state,metrics"):
            if event.get("topic") == "job.state":
                say(f"job {self.number} {event['data']['state']}: {event['data']['text']}".rstrip(": "))
            elif event.get("topic") == "job.metrics" and time.monotonic() - said >= 1:
                said = time.monotonic()
                newest = {point["name"]: point for point in event["data"]["points"]}
                say("  " + "  ".join(f"step {p['step']} {name} {p['value']}" for name, p in newest.items()))
        return self.refresh().state
