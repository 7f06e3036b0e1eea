"""ended_server.py PORT_FILE - a server whose one job has ended each time it is asked, while its events still tell how it ran."""
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

asked = 0


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        global asked
        self.send_response(200)
        events = "/events" in self.path
        self.send_header("Content-Type", "text/event-stream" if events else "application/json")
        self.end_headers()
        if events:
            self.tell("job.metrics", {"points": []})
            time.sleep(0.3)
            self.tell("job.state", {"state": "succeeded", "text": "all steps done"})
            time.sleep(0.3)
            return
        asked += 1
        state = "running" if asked == 1 else "succeeded"
        self.wfile.write(json.dumps({"id": "job_1", "number": 1, "name": "quick", "state": state, "reason": None, "step": 20, "steps": None, "last": {}}).encode())

    def tell(self, topic, data):
        self.wfile.write(f"id: 1-1\nevent: {topic}\ndata: {json.dumps({'topic': topic, 'job': 'job_1', 'seq': 1, 'data': data})}\n\n".encode())
        self.wfile.flush()


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(sys.argv[1] + ".tmp", "w") as file:
    file.write(str(server.server_address[1]))
os.rename(sys.argv[1] + ".tmp", sys.argv[1])
server.serve_forever()
