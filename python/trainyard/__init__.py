"""Submits training jobs to a Trainyard server and watches them."""

from .client import Client
from .errors import Error, Unreachable
from .events import Event
from .job import Job, LogLine, Series

__all__ = ["Client", "Error", "Event", "Job", "LogLine", "Series", "Unreachable"]
__version__ = "0.1.0"
