"""How a job is shown while it is watched."""

from __future__ import annotations

import html
import math
import sys
import time
from typing import Any, List, Mapping, Tuple

KEPT_POINTS = 2000


def _line(fields: Mapping[str, Any]) -> str:
    words = [f"#{fields['number']} {fields['name']}", str(fields["state"])]
    if fields.get("step") is not None:
        words.append(f"step {fields['step']}" + (f" of {fields['steps']}" if fields.get("steps") else ""))
    for name, value in (fields.get("last") or {}).items():
        words.append(f"{name} {float(value):.4g}")
    if fields.get("reason") and fields["state"] in ("queued", "failed", "cancelled"):
        words.append(str(fields["reason"]))
    return "  ".join(words)


class Lines:
    """For files and pipes: a line when the state changes, and every five seconds."""

    def __init__(self, metric: str) -> None:
        self._said, self._state = 0.0, ""

    def point(self, point: Mapping[str, Any]) -> None:
        pass

    def update(self, fields: Mapping[str, Any]) -> None:
        if fields["state"] != self._state or time.monotonic() - self._said > 5:
            self._said, self._state = time.monotonic(), str(fields["state"])
            print(_line(fields), flush=True)

    def end(self, fields: Mapping[str, Any]) -> None:
        print(_line(fields), flush=True)


class Terminal(Lines):
    """One line that changes."""

    def update(self, fields: Mapping[str, Any]) -> None:
        if time.monotonic() - self._said > 0.1:
            self._said = time.monotonic()
            print("\r\x1b[K" + _line(fields), end="", flush=True)

    def end(self, fields: Mapping[str, Any]) -> None:
        print("\r\x1b[K" + _line(fields), flush=True)


class Notebook:
    """A line and a curve of one metric, redrawn in place."""

    def __init__(self, metric: str, display: Any) -> None:
        self._metric, self._said = metric, 0.0
        self._points: List[Tuple[int, float]] = []
        self._handle = display(self, display_id=True)
        self._fields: Mapping[str, Any] = {}

    def point(self, point: Mapping[str, Any]) -> None:
        value = float(point["value"])
        if point["name"] == self._metric and math.isfinite(value):
            self._points.append((int(point["step"]), value))
            if len(self._points) > KEPT_POINTS:
                self._points = self._points[::2]

    def update(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields
        if time.monotonic() - self._said > 0.25:
            self._said = time.monotonic()
            self._handle.update(self)

    def end(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields
        self._handle.update(self)

    def _repr_html_(self) -> str:
        text = html.escape(_line(self._fields)) if self._fields else ""
        return f"<div style='font-family:monospace'>{text}</div>{self.curve()}"

    def curve(self, width: int = 480, height: int = 120) -> str:
        """The points as SVG."""
        if len(self._points) < 2:
            return ""
        steps = [step for step, _ in self._points]
        values = [value for _, value in self._points]
        wide, high = max(steps) - min(steps) or 1, max(values) - min(values) or 1.0
        path = " ".join(f"{(step - min(steps)) / wide * width:.1f},{(max(values) - value) / high * height:.1f}"
                        for step, value in self._points)
        return (f"<svg width='{width}' height='{height + 4}' viewBox='0 -2 {width} {height + 4}' role='img' "
                f"aria-label='{html.escape(self._metric)}: {min(values):.4g} to {max(values):.4g}'>"
                f"<polyline points='{path}' fill='none' stroke='#0a6ab6' stroke-width='1.5'/></svg>")


def screen(metric: str) -> Any:
    """What fits where we run."""
    try:
        from IPython import get_ipython  # type: ignore
        from IPython.display import display  # type: ignore
        shell = get_ipython()
        if shell is not None and "Terminal" not in type(shell).__name__:
            return Notebook(metric, display)
    except ImportError:
        pass
    return Terminal(metric) if sys.stdout.isatty() else Lines(metric)
