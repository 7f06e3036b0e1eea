"""Trainyard from Python: submit jobs, follow them, read what they measured.

    import trainyard
    yard = trainyard.Client()          # what `trainyard login` has kept, or TRAINYARD_URL and TRAINYARD_TOKEN
    job = yard.submit({"example": "digits-cnn"})
    job.watch()                        # a line for each change, and the loss as it falls
    job.metrics()["loss"][-1]
"""

from .client import Client, Job, Problem

__all__ = ["Client", "Job", "Problem"]
