"""rpc_peer.py - Python's gRPC at the other end of proto/rpc_http2*.c; rpc_test.c starts it.

  rpc_peer.py check            exits 0 when the module grpc is there
  rpc_peer.py call ADDRESS     calls the service of rpc_test.c, prints "ok" when all is as it should
  rpc_peer.py serve            serves /p/Echo and /p/Refuse, prints its port, ends with its stdin
"""
import sys


def call(address):
    import grpc

    channel = grpc.insecure_channel(
        address, options=[("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", -1)]
    )
    echo = channel.unary_unary("/t/Echo")
    for text in (b"", b"a\0b", b"x" * 3_000_000):
        assert echo(text, timeout=5) == text
    assert echo(b"y" * 100_000, timeout=5, compression=grpc.Compression.Gzip) == b"y" * 100_000
    for path, code in (
        ("/t/Refuse", grpc.StatusCode.INVALID_ARGUMENT),
        ("/t/Nothing", grpc.StatusCode.UNIMPLEMENTED),
        ("/t/Keep", grpc.StatusCode.DEADLINE_EXCEEDED),
    ):
        try:
            channel.unary_unary(path)(b"", timeout=0.5)
            assert False, path
        except grpc.RpcError as error:
            assert error.code() == code, (path, error)
            if path == "/t/Refuse":
                assert "a number is needed \u2713" in error.details()
                assert ("trainyard-pointer-bin", "/train/st\u00e9ps".encode()) in [
                    (key, value) for key, value in error.trailing_metadata()
                ]
    print("ok")


def serve():
    import grpc
    from concurrent import futures

    def refuse(_, context):
        context.abort(grpc.StatusCode.NOT_FOUND, "no such thing")

    handlers = {
        "Echo": grpc.unary_unary_rpc_method_handler(lambda request, _: request),
        "Refuse": grpc.unary_unary_rpc_method_handler(refuse),
    }
    server = grpc.server(futures.ThreadPoolExecutor(2), options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("p", handlers),))
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    sys.stdin.read()
    server.stop(None)


if sys.argv[1] == "check":
    import grpc  # noqa: F401
elif sys.argv[1] == "call":
    call(sys.argv[2])
else:
    serve()
