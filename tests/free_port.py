#!/usr/bin/env python3
"""free_port.py - prints a port that nothing listens on, and that nothing will take meanwhile.

A port that the kernel chose (port 0) is in the range that it chooses from for everybody: while a server that
was killed is started again, another test's server or connection may get its port.  These are below that range,
and each is given to one test only, until all were given once.
"""
import fcntl, os, random, socket, tempfile

LOWEST, HIGHEST = 20000, 32767


def is_free(port):
    with socket.socket() as s:
        try:
            s.bind(("", port))
        except OSError:
            return False
    return True


def free_port():
    path = f"{tempfile.gettempdir()}/trainyard-test-port.{os.getuid()}"
    with open(path, "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        last = file.read()
        port = int(last) if last.isdigit() else random.randint(LOWEST, HIGHEST)
        for _ in range(LOWEST, HIGHEST):
            port = port + 1 if LOWEST <= port < HIGHEST else LOWEST
            if is_free(port):
                file.truncate(0)
                file.write(str(port))
                return port
    raise OSError(f"no port from {LOWEST} to {HIGHEST} is free")


if __name__ == "__main__":
    print(free_port())
