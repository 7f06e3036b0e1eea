"""What torch.distributed does, in small: rank 0 listens, the others bring their numbers and are told the sum."""
import os
import socket
import time

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    with socket.create_server(address) as server:
        peers = [server.accept()[0] for _ in range(world - 1)]
        total = 1 + sum(int(peer.recv(100)) for peer in peers)
        for peer in peers:
            peer.sendall(b"%d" % total)
else:
    while True:
        try:
            peer = socket.create_connection(address)
            break
        except ConnectionRefusedError:
            time.sleep(0.01)
    peer.sendall(b"%d" % (rank + 1))
    total = int(peer.recv(100))
print("rank %d of %d: sum %d" % (rank, world, total))
