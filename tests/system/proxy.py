"""proxy.py TARGET_PORT - a TCP proxy that is slow, silent or rude as its standard input says; prints its own port first.

delay MS   bytes come so much later, each way
stall WAY  bytes of that way are taken and kept: out (to the target), in (back), both
flow       what was kept goes on
reset      all connections end with a reset
"""
import collections, os, selectors, socket, struct, sys, time

target = int(sys.argv[1])
delay, stalled, connections = 0.0, set(), []
poll = selectors.DefaultSelector()


class Way:
    """One direction of a connection."""

    def __init__(self, name, source, sink):
        self.name, self.source, self.sink, self.kept, self.ended = name, source, sink, collections.deque(), False

    def read(self):
        if self.ended:  # by a reset that was among the same news
            return
        try:
            data = self.source.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.ended = True
            poll.unregister(self.source)
        self.kept.append((time.monotonic() + delay, data))

    def write(self):
        while self.kept and self.kept[0][0] <= time.monotonic() and self.name not in stalled:
            data = self.kept[0][1]
            try:
                if not data:
                    self.sink.shutdown(socket.SHUT_WR)
                elif (sent := self.sink.send(data)) < len(data):
                    self.kept[0] = (0, data[sent:])
                    return
            except BlockingIOError:
                return
            except OSError:
                pass
            self.kept.popleft()


def accept(listener):
    near = listener.accept()[0]
    try:
        far = socket.create_connection(("127.0.0.1", target), timeout=5)
    except OSError:  # not there yet: they try again
        near.close()
        return
    pair = [Way("out", near, far), Way("in", far, near)]
    connections.append(pair)
    for way in pair:
        way.source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        way.source.setblocking(False)
        poll.register(way.source, selectors.EVENT_READ, way.read)


def obey(line):
    global delay, stalled
    word, _, value = line.strip().partition(" ")
    if word == "delay":
        delay = float(value) / 1000
    elif word == "stall":
        stalled = {"out", "in"} if value == "both" else {value}
    elif word == "flow":
        stalled = set()
    elif word == "reset":
        for pair in connections:
            for way in pair:
                if not way.ended:
                    poll.unregister(way.source)
                way.ended = True
                way.source.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                way.source.close()
        connections.clear()


def hear(said):
    """Lines are short, and written whole."""
    if not said:
        sys.exit()
    for line in said.decode().splitlines():
        obey(line)


listener = socket.create_server(("127.0.0.1", 0))
poll.register(listener, selectors.EVENT_READ, lambda: accept(listener))
poll.register(0, selectors.EVENT_READ, lambda: hear(os.read(0, 4096)))
print(listener.getsockname()[1], flush=True)
while True:
    for key, _ in poll.select(0.001 if any(way.kept for pair in connections for way in pair) else 0.2):
        key.data()
    for pair in connections:
        for way in pair:
            way.write()
