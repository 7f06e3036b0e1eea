"""nodelay.py HOST:PORT TOKEN JOB: the median time, in ms, of small writes over one connection, and of their way to a stream.

The client acknowledges late (TCP_QUICKACK off): a server that waits for an acknowledgement before it sends the rest of
an answer (Nagle's algorithm, without TCP_NODELAY) would take 40 ms for each.
"""
import json, socket, statistics, sys, threading, time

address, token, job = sys.argv[1:]
host, port = address.split(":")


def connect():
    connection = socket.create_connection((host, int(port)), 20)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def head(method, path, more=""):
    return f"{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{more}".encode()


def receive(connection):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
    return connection.recv(65536)


def answer(connection):
    got = b""
    while b"\r\n\r\n" not in got:
        got += receive(connection)
    front, _, body = got.partition(b"\r\n\r\n")
    length = int(next(line.split(b":")[1] for line in front.split(b"\r\n") if line.lower().startswith(b"content-length:")))
    while len(body) < length:
        body += receive(connection)
    assert front.startswith(b"HTTP/1.1 200"), front
    return body


came = {}


def watch():
    stream = connect()
    stream.sendall(head("GET", f"/api/v1/jobs/{job}/events?topics=metrics", "\r\n"))
    text = b""
    while len(came) < 100:
        text += receive(stream)
        *lines, text = text.split(b"\n")
        now = time.monotonic()
        for line in lines:
            for step in range(1000, 1100):
                if line.startswith(b"data:") and b"%d" % step in line:
                    came.setdefault(step, now)


watcher = threading.Thread(target=watch, daemon=True)
watcher.start()
time.sleep(0.5)
writer = connect()
waits, sent = [], {}
for step in range(1000, 1100):
    body = json.dumps({"points": [{"step": step, "values": {"delay": 0.5}}]}).encode()
    sent[step] = time.monotonic()
    writer.sendall(head("POST", f"/api/v1/jobs/{job}/metrics", f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n") + body)
    answer(writer)
    waits.append(1000 * (time.monotonic() - sent[step]))
watcher.join(10)
ways = [1000 * (came[step] - sent[step]) for step in sent if step in came]
print(f"{statistics.median(waits):.1f} {statistics.median(ways) if len(ways) > 50 else 9999:.1f}")
