"""ws.py - a small websocket client for tests: python3 and its standard library, nothing else.

As a program: ws.py URL [TOKEN] reads JSON messages from stdin, one a line, sends them, and prints what
comes, one a line, until --count N messages came, --until TEXT is in one, or --seconds S have passed.
"""
import argparse
import base64
import json
import os
import socket
import struct
import sys
import time


class Closed(Exception):
    """The other side closed; .code is its close code."""

    def __init__(self, code):
        super().__init__(f"closed with {code}")
        self.code = code


class WebSocket:
    def __init__(self, host, port, path="/api/v1/stream", headers=None, timeout=10, receive_buffer=0):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout)
        self.socket.connect((host, port))
        self.buffer = b""
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET {path} HTTP/1.1", f"Host: {host}:{port}", "Upgrade: websocket", "Connection: Upgrade",
                 f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        while b"\r\n\r\n" not in self.buffer:
            self._more()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        self.status = int(head.split()[1])
        if self.status != 101:
            raise Closed(self.status)

    def _more(self):
        data = self.socket.recv(65536)
        if not data:
            raise Closed(0)
        self.buffer += data

    def _take(self, count):
        while len(self.buffer) < count:
            self._more()
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def send(self, message, opcode=1, final=True):
        data = message if isinstance(message, bytes) else (message if isinstance(message, str) else json.dumps(message)).encode()
        head = bytes([(0x80 if final else 0) | opcode])
        if len(data) < 126:
            head += bytes([0x80 | len(data)])
        else:
            head += bytes([0x80 | 126]) + struct.pack(">H", len(data)) if len(data) < 65536 else bytes([0x80 | 127]) + struct.pack(">Q", len(data))
        mask = os.urandom(4)
        self.socket.sendall(head + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(data)))

    def receive(self, timeout=10):
        """The next message as text; pings are answered on the way."""
        self.socket.settimeout(timeout)
        message = b""
        while True:
            first, second = self._take(2)
            size = second & 0x7F
            if size == 126:
                size = struct.unpack(">H", self._take(2))[0]
            elif size == 127:
                size = struct.unpack(">Q", self._take(8))[0]
            data = self._take(size)
            opcode = first & 0x0F
            if opcode == 8:
                raise Closed(struct.unpack(">H", data[:2])[0] if len(data) >= 2 else 1005)
            if opcode == 9:
                self.send(data, 10)
            elif opcode < 2:
                message += data
                if first & 0x80:
                    return message.decode()

    def json(self, timeout=10):
        return json.loads(self.receive(timeout))

    def close(self):
        self.socket.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("address", help="HOST:PORT")
    parser.add_argument("token", nargs="?")
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--until", default="")
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    host, port = options.address.split(":")
    headers = {"Authorization": f"Bearer {options.token}"} if options.token else {}
    end = time.monotonic() + options.seconds
    try:
        ws = WebSocket(host, int(port), headers=headers)
        for line in sys.stdin:
            if line.strip():
                ws.send(line.strip())
        seen = 0
        while time.monotonic() < end:
            text = ws.receive(max(0.1, end - time.monotonic()))
            print(text, flush=True)
            seen += 1
            if (options.count and seen >= options.count) or (options.until and options.until in text):
                return 0
    except Closed as closed:
        print(f"closed {closed.code}")
        return 3
    except socket.timeout:
        pass
    return 0 if not options.until and not options.count else 1


if __name__ == "__main__":
    sys.exit(main())
