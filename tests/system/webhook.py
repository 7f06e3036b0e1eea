"""A receiver of webhooks: writes what comes as lines of JSON, and answers as the file `answer` says (a status, or "hang").

webhook.py FOLDER      prints its port
"""
import http.server, json, pathlib, sys, time

folder = pathlib.Path(sys.argv[1])


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        line = {"path": self.path, "signature": self.headers["Trainyard-Signature"], "delivery": self.headers["Trainyard-Delivery"],
                "event": self.headers["Trainyard-Event"], "body": body}
        with open(folder / "received", "a") as received:
            received.write(json.dumps(line) + "\n")
        answer = (folder / "answer").read_text().strip()
        if answer == "hang":
            time.sleep(30)
            return
        self.send_response(int(answer))
        if answer.startswith("3"):
            self.send_header("Location", "/redirected")
        self.end_headers()

    def do_GET(self):
        with open(folder / "received", "a") as received:
            received.write(json.dumps({"path": self.path, "method": "GET"}) + "\n")

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()
