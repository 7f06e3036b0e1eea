"""One job of a server."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

from . import show
from .events import FINAL, Event, follow, patiently
from .transport import Transport


@dataclass(frozen=True)
class Series:
    """A metric over the steps of a job, thinned by the server: `low` and `high` bound what lies between two points."""

    name: str
    task: str
    steps: List[int]
    values: List[float]
    low: List[float]
    high: List[float]
    times: List[float]


@dataclass(frozen=True)
class LogLine:
    task: str
    stream: str
    text: str


def _numbers(values: Sequence[Any]) -> List[float]:
    return [float(value) for value in values]  # "NaN", "Infinity" are texts


class Job:
    """What the server said of it last is in its attributes; refresh() asks again."""

    def __init__(self, transport: Transport, fields: Mapping[str, Any]) -> None:
        self._transport = transport
        self.fields: Dict[str, Any] = dict(fields)

    # --- what it is ---

    @property
    def id(self) -> str:
        return str(self.fields["id"])

    @property
    def number(self) -> int:
        return int(self.fields["number"])

    @property
    def name(self) -> str:
        return str(self.fields["name"])

    @property
    def state(self) -> str:
        """queued, allocated, starting, running, stopping, succeeded, failed or cancelled."""
        return str(self.fields["state"])

    @property
    def reason(self) -> str:
        """Why it waits or how it ended, for people."""
        return str(self.fields.get("reason") or "")

    @property
    def ended(self) -> bool:
        return self.state in FINAL

    @property
    def step(self) -> Optional[int]:
        return self.fields.get("step")

    @property
    def steps(self) -> Optional[int]:
        return self.fields.get("steps")

    @property
    def last(self) -> Dict[str, float]:
        """The newest value of each metric."""
        return {name: float(value) for name, value in self.fields.get("last", {}).items()}

    def __repr__(self) -> str:
        return f"<job {self.number} {self.name}: {self.state}>"

    def _path(self, rest: str = "") -> str:
        return f"/api/v1/jobs/{self.id}{rest}"

    def refresh(self) -> "Job":
        self.fields = self._transport.call("GET", self._path())
        return self

    def spec(self) -> Dict[str, Any]:
        """With all defaults."""
        return self._transport.call("GET", self._path("/spec"))

    def explain(self) -> Dict[str, Any]:
        """Why it waits (code, text, numbers, what would start it), or how it ended."""
        return self._transport.call("GET", self._path("/explain"))

    # --- what it reported ---

    def metrics(self, *names: str, task: Optional[str] = None, buckets: int = 1000) -> Dict[str, Series]:
        """Series by name (those of other tasks than the first by "name task"); all without names."""
        answer = self._transport.call("GET", self._path("/metrics"),
                                      query={"names": ",".join(names) or None, "task": task, "buckets": buckets})
        found: Dict[str, Series] = {}
        for row in answer["series"]:
            series = Series(row["name"], row["task"], list(row["steps"]), _numbers(row["values"]), _numbers(row["min"]),
                            _numbers(row["max"]), _numbers(row["times"]))
            key = series.name if series.name not in found else f"{series.name} {series.task}"
            found[key] = series
        return found

    def report(self, values: Mapping[str, float], step: int, task: str = "worker/0", wall: Optional[float] = None) -> None:
        """Adds numbers of a step to the job's metrics; a later value of a name and step replaces one that is there."""
        told = {name: value if math.isfinite(value) else {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
                for name, value in values.items()}
        point: Dict[str, Any] = {"task": task, "step": step, "values": told}
        if wall is not None:
            point["wall"] = wall
        self._transport.call("POST", self._path("/metrics"), {"points": [point]})

    def logs(self, tail: Optional[int] = None, task: Optional[str] = None) -> List[LogLine]:
        answer = self._transport.call("GET", self._path("/logs"), query={"tail": tail, "task": task})
        return [LogLine(line["task"], line["stream"], line["text"]) for line in answer["items"]]

    def artifacts(self) -> List[Dict[str, Any]]:
        """Files that its tasks left: task, path, size."""
        return self._transport.call("GET", self._path("/artifacts"))["items"]

    def download(self, path: str, to: str, task: str = "worker/0") -> None:
        """Writes one artifact into the file `to`."""
        from urllib.parse import urlencode
        query = urlencode({"task": task, "path": path})
        connection, response = self._transport.open("GET", self._path("/artifacts/content?" + query))
        try:
            with open(to, "wb") as file:
                while True:
                    piece = response.read(1 << 20)
                    if not piece:
                        break
                    file.write(piece)
        finally:
            connection.close()

    # --- as it happens ---

    def events(self, topics: Sequence[str] = ("state", "metrics", "logs"), patience: float = 60.0) -> Iterator[Event]:
        """What happens to it until it has ended; begins with how things stand.

        A server that goes away meanwhile is waited for, `patience` seconds at most; nothing is told twice.
        """
        yield from follow(self._transport, self.id, ",".join(topics), patience)
        patiently(self.refresh, patience)

    def watch(self, metric: str = "loss", patience: float = 60.0) -> "Job":
        """Shows how it goes until it has ended: in a notebook a curve, on a terminal one line, else a line now and then."""
        screen = show.screen(metric)
        self.refresh()
        screen.update(self.fields)
        try:
            for event in follow(self._transport, self.id, "state,metrics", patience):
                if event.topic == "job.state":
                    self.fields["state"] = event.data.get("state", self.state)
                elif event.topic == "job.metrics":
                    for point in event.data.get("points", []):
                        screen.point(point)
                        self.fields["step"] = max(int(self.fields.get("step") or 0), int(point["step"]))
                        self.fields.setdefault("last", {})[point["name"]] = point["value"]
                screen.update(self.fields)
            patiently(self.refresh, patience)
        finally:
            screen.end(self.fields)
        return self

    def wait(self, timeout: Optional[float] = None) -> "Job":
        """Returns when it has ended; TimeoutError after `timeout` seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        pause = 0.1
        while not self.refresh().ended:
            if end is not None and time.monotonic() > end:
                raise TimeoutError(f"job {self.number} is {self.state} after {timeout} seconds")
            time.sleep(pause)
            pause = min(pause * 1.5, 2.0)
        return self

    # --- what one can do to it ---

    def _act(self, verb: str) -> "Job":
        self._transport.call("POST", self._path(":" + verb))
        return self.refresh()

    def cancel(self) -> "Job":
        """Stops it after a checkpoint."""
        return self._act("cancel")

    def kill(self) -> "Job":
        """Ends it at once."""
        return self._act("kill")

    def pause(self) -> "Job":
        """Holds it, after a checkpoint, and frees its nodes."""
        return self._act("pause")

    def resume(self) -> "Job":
        return self._act("resume")

    def restart(self) -> "Job":
        """Ends what runs after a checkpoint, and goes on from there in a new attempt."""
        return self._act("restart")

    def clone(self, **fields: Any) -> "Job":
        """Submits its spec once more, with fields over it."""
        return Job(self._transport, self._transport.call("POST", self._path(":clone"), fields))

    def archive(self) -> "Job":
        """Leaves it out of lists."""
        return self._act("archive")

    def remove(self) -> None:
        """Removes it with all that it left; it must have ended."""
        self._transport.call("DELETE", self._path())
