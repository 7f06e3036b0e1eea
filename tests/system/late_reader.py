"""late_reader.py HOST:PORT TOKEN [CA] - sends whole bodies that are refused, and only then looks for the answer.

Prints "ok NAME" or "FAIL NAME: why".
"""
import socket
import ssl
import sys
import time

HOST, PORT = sys.argv[1].split(":")
TLS = ssl.create_default_context(cafile=sys.argv[3]) if len(sys.argv) > 3 else None
TIMES = 10


def connect():
    s = socket.create_connection((HOST, int(PORT)), 5)
    s.settimeout(10)
    return TLS.wrap_socket(s, server_hostname=HOST) if TLS else s


def answer(head, megabytes):
    """What the server says to a body of spaces, or the error of the connection."""
    s = connect()
    out = b""
    try:
        s.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        for _ in range(megabytes << 4):
            s.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
        s.sendall(b"0\r\n\r\n")
        while part := s.recv(65536):
            out += part
    except OSError as error:
        out += str(error).encode()
    s.close()
    return out


def late(name, head, status):
    answers = [answer(head, megabytes) for megabytes in (2, 4) * TIMES]
    bad = [out[:300] for out in answers if not out.startswith(b"HTTP/1.1 %d " % status)]
    print(f"FAIL {name}: {len(bad)} of {len(answers)}, {bad[0]!r}" if bad else f"ok {name}")


stranger = f"POST /api/v1/jobs HTTP/1.1\r\nHost: {sys.argv[1]}\r\n"
late("late_reader_too_large", f"{stranger}Authorization: Bearer {sys.argv[2]}\r\nContent-Type: application/json\r\n", 413)
late("late_reader_stranger", stranger, 401)

# One who has its answer and goes on for ever is left.
s = connect()
s.sendall(f"{stranger}Transfer-Encoding: chunked\r\n\r\n".encode())
while s.recv(65536):
    pass
began, sent = time.monotonic(), True
while sent and time.monotonic() - began < 15:
    time.sleep(0.1)
    try:
        s.sendall(b"x")
    except OSError:
        sent = False
print("FAIL who_stays_is_left" if sent else "ok who_stays_is_left")
