"""stream.py ADDRESS TOKEN JOB SERVER_PID - clients that stay connected: revoked ones end, slow ones are shown out.

Prints "ok NAME" or "FAIL NAME: why" for each.  JOB runs and reports all the while.
"""
import http.client
import json
import socket
import sys
import threading
import time

from ws import Closed, WebSocket

address, token, job, server_pid = sys.argv[1:5]
host, port = address.split(":")


def check(name, good, why=""):
    print(f"{'ok' if good else 'FAIL'} {name}{'' if good else ': ' + str(why)}", flush=True)


def call(method, path, body=None, bearer=token):
    rest = http.client.HTTPConnection(address, timeout=10)
    rest.request(method, path, body, {"Authorization": "Bearer " + bearer, "Content-Type": "application/json"})
    answer = rest.getresponse()
    text = answer.read()
    rest.close()
    return answer.status, json.loads(text) if text else None


def connect(bearer=token, small=False):
    ws = WebSocket(host, int(port), headers={"Authorization": "Bearer " + bearer}, receive_buffer=4096 if small else 0)
    assert ws.json()["op"] == "hello"
    return ws


def follow(ws, topic="job.metrics", ids=1):
    for number in range(ids):
        ws.send({"op": "subscribe", "id": number, "topic": topic, "job": job})


def close_code(ws, seconds):
    """Reads until the other side closes; the code and how long that took."""
    began = time.monotonic()
    try:
        while time.monotonic() - began < seconds:
            ws.receive(seconds)
    except Closed as closed:
        return closed.code, time.monotonic() - began
    except OSError as error:
        return str(error), time.monotonic() - began
    return None, time.monotonic() - began


def resident_kib():
    with open(f"/proc/{server_pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


# --- a ticket opens one websocket, in place of a token ---
def ticket_of(bearer):
    return call("POST", "/api/v1/stream-tickets", bearer=bearer)[1]["ticket"]


def by_ticket(ticket):
    ws = WebSocket(host, int(port))
    ws.send({"op": "auth", "ticket": ticket})
    return ws


status, lent = call("POST", "/api/v1/tokens", json.dumps({"name": "lends tickets"}))
ticket = ticket_of(lent["token"])
ws = by_ticket(ticket)
said = ws.json()
check("a ticket signs in", said == {"op": "hello", "user": "admin"}, said)
follow(ws)
check("... and what it opened follows", ws.json()["op"] == "snapshot")
code, _ = close_code(by_ticket(ticket), 5)
check("a ticket is good once", code == 4401, code)
code, _ = close_code(by_ticket("tk_" + "A" * 43), 5)
check("another is none", code == 4401, code)
lender = next(item["id"] for item in call("GET", "/api/v1/tokens")[1]["items"] if item["name"] == "lends tickets")
call("DELETE", f"/api/v1/tokens/{lender}")
code, _ = close_code(ws, 10)
check("with its token ends what a ticket opened", code == 4401, code)

# --- a revoked token ends what it opened, and nothing else ---
_, made = call("POST", "/api/v1/tokens", json.dumps({"name": "short-lived"}))
short = made["token"]
number = next(item["id"] for item in call("GET", "/api/v1/tokens")[1]["items"] if item["name"] == "short-lived")
revoked, other = connect(short), connect()
follow(revoked)
follow(other)
sse = http.client.HTTPConnection(address, timeout=10)
sse.request("GET", f"/api/v1/jobs/{job}/events", headers={"Authorization": "Bearer " + short})
events = sse.getresponse()
check("stream_events_open", events.status == 200, events.status)
check("stream_token_revoked", call("DELETE", f"/api/v1/tokens/{number}")[0] == 204)
code, took = close_code(revoked, 5)
check("stream_revoked_is_closed", code == 4401 and took < 1, f"{code} after {took:.2f} s")
began = time.monotonic()
while events.read1(65536) and time.monotonic() - began < 5:
    pass
check("stream_revoked_events_end", time.monotonic() - began < 1, f"{time.monotonic() - began:.2f} s")
other.send({"op": "ping"})
check("stream_others_stay", any(other.json()["op"] == "pong" for _ in range(200)))
other.close()

# --- those that do not read are shown out, and cost others nothing ---
reader = connect()
follow(reader)
gaps, stop = [], threading.Event()


def read():
    last = time.monotonic()
    while not stop.is_set():
        if reader.json()["op"] == "batch":
            gaps.append(time.monotonic() - last)
            last = time.monotonic()


thread = threading.Thread(target=read)
thread.start()
before = resident_kib()
slow = [connect(small=True) for _ in range(20)]
for ws in slow:
    follow(ws, ids=200)
time.sleep(13)
grown = resident_kib() - before
stop.set()
thread.join(5)
check("stream_slow_ones_cost_little", grown < 20 * 256 + 4096, f"{grown} KiB more for 20")
check("stream_reader_goes_on", len(gaps) > 50 and max(gaps) < 2, f"{len(gaps)} batches, {max(gaps, default=0):.2f} s apart")
codes = {close_code(ws, 5)[0] for ws in slow}
check("stream_slow_ones_are_shown_out", codes == {1013}, codes)
again = connect()
follow(again)
check("stream_takes_them_again", again.json()["op"] == "snapshot")
