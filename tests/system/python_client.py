# Faults of docs/reliability.md: F31.
"""python_client.py URL TOKEN DIR WORK - the Python client against a server with the dataset digits.

Prints "ok NAME" or "FAIL NAME: why" for each check.
"""
import contextlib
import io
import os
import subprocess
import sys
import tempfile
import threading
import time

import trainyard
from trainyard import show

url, token, directory, work = sys.argv[1:5]


def check(name, good, why=""):
    print(f"{'ok' if good else 'FAIL'} {name}{'' if good else ': ' + str(why)}", flush=True)


def refused(call, *words):
    try:
        call()
    except (trainyard.Error, trainyard.Unreachable, ValueError, TimeoutError) as error:
        return error if all(word in str(error) for word in words) else f"it says: {error}"
    return "it was not refused"


def check_refused(name, call, *words):
    error = refused(call, *words)
    check(name, not isinstance(error, str), error)
    return error


client = trainyard.Client(url, token)
check("whoami", client.whoami()["user"] == "admin", client.whoami())
check("socket", trainyard.Client(directory=directory).whoami()["role"] == "admin")
check("examples", "digits-mlp" in client.examples())
check("nodes", len(client.nodes()) == 1, client.nodes())
check("queues", any(row["name"] == "default" for row in client.queues()))

# --- a job of a model: watched, then read ---
job = client.submit({"example": "digits-mlp"}, train={"steps": 120, "eval_every": 60}, name="from-python")
said = io.StringIO()
with contextlib.redirect_stdout(said):
    job.watch()
check("watch_ends_with_the_job", job.state == "succeeded", job)
check("watch_says_lines", "from-python" in said.getvalue() and "succeeded" in said.getvalue(), said.getvalue())
check("step", job.step == 120 and job.steps == 120, job.fields)
check("last", 0 < job.last["loss"] < 3, job.last)
series = job.metrics("loss", "val_accuracy")
check("metrics", series["loss"].steps[-1] == 120 and len(series["loss"].values) == len(series["loss"].steps), series)
job.report({"score": 0.5, "gap": float("nan")}, step=7)
job.report({"score": float("-inf")}, step=8, wall=1.5)
told = job.metrics("score", "gap")
check("report", told["score"].steps == [7, 8] and told["score"].values == [0.5, float("-inf")] and told["score"].times[1] == 1.5
      and str(told["gap"].values) == "[nan]", told)
check("metrics_of_names_alone", set(series) == {"loss", "val_accuracy"}, set(series))
check("logs", any("all steps done" in line.text for line in job.logs(tail=5)), job.logs())
check("spec", job.spec()["train"]["steps"] == 120)
check("found_by_number", client.job(job.number).id == job.id)
check("explain", job.explain()["text"] != "")
topics = [event.topic for event in job.events()]
check("events_of_what_has_ended", "job.state" in topics and "job.metrics" in topics, topics)

# --- any program, with a file, an artifact, and the same submission twice ---
with open(os.path.join(work, "train.py"), "w", encoding="utf-8") as file:
    file.write("import os\nos.makedirs(os.environ['TRAINYARD_OUT'] + '/artifacts', exist_ok=True)\n"
               "open(os.environ['TRAINYARD_OUT'] + '/artifacts/model.txt', 'w').write('weights')\nprint('it ran')\n")
program = client.run(["python3", "train.py"], files=[os.path.join(work, "train.py")], key="once", name="program").wait(60)
check("program", program.state == "succeeded", program.fields)
check("program_log", [line.text for line in program.logs()] == ["it ran"], program.logs())
again = client.run(["python3", "train.py"], files=[os.path.join(work, "train.py")], key="once", name="program")
check("same_key_same_job", again.id == program.id)
check("artifacts", [row["path"] for row in program.artifacts()] == ["model.txt"], program.artifacts())
program.download("model.txt", os.path.join(work, "got"))
with open(os.path.join(work, "got"), encoding="utf-8") as file:
    check("download", file.read() == "weights")

# --- the rest of a life ---
sleeper = client.run(["sleep", "600"], name="sleeper")
check("wait_has_a_bound", isinstance(refused(lambda: sleeper.wait(0.2), "0.2 seconds"), TimeoutError))
check("plan", "text" in client.plan({"example": "digits-mlp"}))
sleeper.cancel().wait(60)
check("cancel", sleeper.state == "cancelled", sleeper)
copy = client.job(program.number).clone(name="copy").wait(60)
check("clone", copy.name == "copy")
check("archive", sleeper.archive().fields["archived"] is True)
names = [row.name for row in client.jobs(limit=2)]
check("jobs_newest_first", names == ["copy", "program"], names)
copy.remove()
check("removed", not any(job.number == copy.number for job in client.jobs(name="copy")))
for _ in range(101):
    client.submit({"command": ["true"]}, name="many", tasks={"worker": {"cpus": 3}})
check("jobs_page_by_page", len(list(client.jobs(name="many"))) == 101)

# --- datasets ---
with tempfile.TemporaryDirectory() as made:
    os.makedirs(os.path.join(made, "rows/.cache"))
    for path, rows in (("rows/train.csv", 50), ("rows/test.csv", 10), ("rows/.cache/x", 1)):
        with open(os.path.join(made, path), "w") as file:
            file.write("a,b,label\n" + "".join(f"{i},{-i},{'xy'[i % 2]}\n" for i in range(rows)))
    client._send_piece("rows", "train.csv", 0, b"a,b,label\n")  # an earlier try
    sent = client.upload_dataset("rows", os.path.join(made, "rows"))
    check("dataset_sent", (sent["format"], sent["train"], sent["test"]) == ("csv", 50, 10), sent)
    check("dataset_listed", [(row["name"], row["state"]) for row in client.datasets() if row["name"] == "rows"] == [("rows", "ready")])
    check("dataset_files", [row["path"] for row in client.dataset("rows")["files"]] == ["test.csv", "train.csv"], client.dataset("rows"))
    client.remove_dataset("rows")
    check_refused("dataset_removed", lambda: client.dataset("rows"), "NOT_FOUND")
    os.makedirs(os.path.join(made, "empty"))
    try:
        check("dataset_without_files", False, client.upload_dataset("none", os.path.join(made, "empty")))
    except ValueError as error:
        check("dataset_without_files", "has no files" in str(error), error)

# --- what is wrong ---
error = check_refused("typo", lambda: client.submit({"example": "digits-mlp"}, train={"stepz": 1}), "stepz")
check("typo_pointer", error.pointer == "/train/stepz" and error.status == 400, error)
check_refused("no_such_job", lambda: client.job(99999), "NOT_FOUND")
check_refused("no_token", lambda: trainyard.Client(url, "ty_wrong").whoami(), "401")
check_refused("no_server", lambda: trainyard.Client("http://127.0.0.1:9", "t").whoami(), "no server answers")
check_refused("no_address", lambda: trainyard.Client("localhost:7070"), "no address")

# --- a notebook's screen ---


class Handle:
    def update(self, shown):
        self.shown = shown


screen = show.Notebook("loss", lambda shown, display_id: Handle())
for step in range(5000):
    screen.point({"name": "loss", "step": step, "value": 1 / (1 + step)})
screen.point({"name": "loss", "step": 5001, "value": "NaN"})
screen.end({"number": 1, "name": "<b>", "state": "running", "step": 5, "steps": 10, "last": {"loss": "NaN"}})
html = screen._repr_html_()
check("notebook", "<svg" in html and "&lt;b&gt;" in html and len(html) < 60000, html[:200])
