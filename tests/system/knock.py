"""knock.py [HOST:]PORT [CERTIFICATE [KEY]] - says whether it "speaks" HTTP/2 with us or "refuses": without a certificate in
the clear, with "" over TLS and none to show.  A copy of it runs as any user."""
import socket, ssl, sys

host, _, port = sys.argv[1].rpartition(":")
try:
    with socket.create_connection((host or "127.0.0.1", int(port)), timeout=5) as s:
        if len(sys.argv) > 2:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.set_alpn_protocols(["h2"])
            if sys.argv[2]:
                context.load_cert_chain(*sys.argv[2:])
            s = context.wrap_socket(s)
        s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
        print("speaks" if s.recv(9)[3:4] == b"\4" else "refuses")
except (OSError, TimeoutError):
    print("refuses")
