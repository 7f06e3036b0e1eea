"""kubernetes_api.py MANIFESTS TOKEN FOLDER: a Kubernetes API of one namespace, for kubernetes_test.sh.

What it is sent must be what the schemas of the official client say, field by field, and what the Role in the
manifests allows. A pod's command is run as a process, once its secret is there. "/fake/NAME" sets or tells
what a test wants: full (no machine has room), broken (500), calls, pods; evict ends a pod.
"""
import http.server
import json
import os
import re
import subprocess
import sys
import threading
import urllib.parse

import kubernetes.client.models as models
import yaml

lock = threading.Lock()
pods, secrets, processes, calls = {}, {}, {}, []
fake = {"full": False, "broken": False}
QUANTITY = re.compile(r"^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$")
NAME = re.compile(r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")


def check(value, kind, at=""):
    """What is wrong with a JSON value as one of the client's types; the first thing found, or None."""
    if value is None:
        return f"{at} is null"
    if kind.startswith("list["):
        if not isinstance(value, list):
            return f"{at} is no list"
        return next((w for i, v in enumerate(value) if (w := check(v, kind[5:-1], f"{at}[{i}]"))), None)
    if kind.startswith("dict("):
        inner = kind[5:-1].split(", ", 1)[1]
        if not isinstance(value, dict):
            return f"{at} is no object"
        return next((w for k, v in value.items() if (w := check(v, inner, f"{at}.{k}"))), None)
    plain = {"str": str, "int": int, "bool": bool, "float": (int, float), "datetime": str, "object": object}.get(kind)
    if plain:
        good = isinstance(value, plain) and not (kind == "int" and isinstance(value, bool))
        return None if good else f"{at} is no {kind}: {value!r}"
    model = getattr(models, kind)
    if not isinstance(value, dict):
        return f"{at} is no object"
    fields = {name: attribute for attribute, name in model.attribute_map.items()}
    for name, one in value.items():
        if name not in fields:
            return f"{at}.{name}: {kind} has no such field"
        wrong = check(one, model.openapi_types[fields[name]], f"{at}.{name}")
        if wrong:
            return wrong
    try:  # the client itself says which fields must be there
        model(**{fields[name]: one for name, one in value.items()})
    except (ValueError, TypeError) as e:
        return f"{at}: {e}"
    return None


KINDS = {"Namespace": "V1Namespace", "ServiceAccount": "V1ServiceAccount", "Role": "V1Role", "RoleBinding": "V1RoleBinding",
         "PersistentVolumeClaim": "V1PersistentVolumeClaim", "ConfigMap": "V1ConfigMap", "Deployment": "V1Deployment", "Service": "V1Service"}


def read_manifests(path):
    rules = []
    for document in yaml.safe_load_all(open(path)):
        wrong = check(document, KINDS[document["kind"]], document["kind"])
        if wrong:
            sys.exit(f"{path}: {wrong}")
        if document["kind"] == "Role":
            rules += [(r, v) for rule in document["rules"] for r in rule["resources"] for v in rule["verbs"]]
        if document["kind"] == "ConfigMap":
            json.loads(document["data"]["engine.json"])
    return rules


def wrong_names(pod):
    if not NAME.match(pod["metadata"]["name"]):
        return f"{pod['metadata']['name']} is no name"
    for key, value in pod["metadata"].get("labels", {}).items():
        if not re.match(r"^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$", value):
            return f"label {key}={value}"
    for container in pod["spec"]["containers"]:
        for amounts in container.get("resources", {}).values():
            for name, amount in amounts.items():
                if not QUANTITY.match(amount):
                    return f"{name} is no quantity: {amount}"
    return None


def run(name):
    """What the kubelet does: waits for the secret, then starts the container."""
    pod = pods[name]
    container = pod["spec"]["containers"][0]
    reference = container["env"][0]["valueFrom"]["secretKeyRef"]
    if fake["full"] or reference["name"] not in secrets or name in processes:
        return
    env = {"PATH": os.environ["PATH"], "TRAINYARD_TOKEN": secrets[reference["name"]]["stringData"][reference["key"]]}
    processes[name] = subprocess.Popen(container["command"], env=env, start_new_session=True)


def refresh(name):
    pod, process = pods[name], processes.get(name)
    placed = process is not None
    status = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True" if placed else "False"}]}
    if not placed:
        status["conditions"][0] |= {"reason": "Unschedulable", "message": "0/3 nodes are available: 3 Insufficient cpu."}
    elif process.poll() is None:
        status |= {"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}
    else:
        code = process.returncode
        status |= {"phase": "Failed" if code else "Succeeded", "containerStatuses": [{"state": {"terminated": {
            "exitCode": code, "reason": "Error" if code else "Completed", "message": "last words" if code else ""}}}]}
    pod["status"] = status


def end(name):
    process = processes.pop(name, None)
    if process and process.poll() is None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
    pods.pop(name, None)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refuse(self, status, message):
        print(status, self.command, self.path, message, flush=True)
        self.answer(status, {"kind": "Status", "status": "Failure", "code": status, "message": message})

    def body(self):
        return json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "null")

    def do_fake(self, url):
        name = url.path.split("/")[-1]
        query = dict(urllib.parse.parse_qsl(url.query))
        if name in fake and query:
            fake[name] = query["is"] == "true"
        if name == "evict":
            os.killpg(processes[query["pod"]].pid, 9)
        self.answer(200, {"calls": calls, "pods": list(pods), "secrets": list(secrets), **fake})

    def handle_one(self):
        body = self.body()
        url = urllib.parse.urlparse(self.path)
        if url.path.startswith("/fake/"):
            return self.do_fake(url)
        if fake["broken"]:
            return self.refuse(500, "etcd has no leader")
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.refuse(401, "Unauthorized")
        parts = url.path.split("/")
        if parts[:5] != ["", "api", "v1", "namespaces", "trainyard"] or len(parts) > 7:
            return self.refuse(404, "the server could not find the requested resource")
        kind, name = parts[5], parts[6] if len(parts) > 6 else None
        verb = {"GET": "get" if name else "list", "POST": "create", "DELETE": "delete"}[self.command]
        calls.append(f"{verb} {kind}")
        if (kind, verb) not in RULES:
            return self.refuse(403, f"{kind} is forbidden: cannot {verb}")
        getattr(self, f"{verb}_{kind}")(name, body, dict(urllib.parse.parse_qsl(url.query)))

    def create_pods(self, _, pod, query):
        wrong = check(pod, "V1Pod", "pod") or wrong_names(pod)
        if wrong:
            return self.refuse(422, wrong)
        name = pod["metadata"]["name"]
        if name in pods:
            return self.refuse(409, f'pods "{name}" already exists')
        pod["metadata"]["uid"] = f"uid-{len(calls)}"
        pods[name] = pod
        self.answer(201, pod)

    def create_secrets(self, _, secret, query):
        wrong = check(secret, "V1Secret", "secret")
        owner = secret["metadata"]["ownerReferences"][0]
        if wrong or pods.get(owner["name"], {}).get("metadata", {}).get("uid") != owner["uid"]:
            return self.refuse(422, wrong or "its owner is not there")
        secrets[secret["metadata"]["name"]] = secret
        self.answer(201, secret)

    def list_pods(self, _, body, query):
        key, value = query["labelSelector"].split("=")
        for name in pods:
            run(name)
            refresh(name)
        found = [p for _, p in sorted(pods.items()) if p["metadata"]["labels"].get(key) == value]
        begin = int(query.get("continue", 0))  # a page has one pod: each list is several calls
        metadata = {"continue": str(begin + 1)} if begin + 1 < len(found) else {}
        self.answer(200, {"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": found[begin:begin + 1]})

    def delete_pods(self, name, body, query):
        if name not in pods:
            return self.refuse(404, f'pods "{name}" not found')
        end(name)
        secrets.pop(name, None)  # the garbage collector: its owner is gone
        self.answer(200, {"kind": "Status", "status": "Success"})

    def do_GET(self):
        with lock:
            self.handle_one()

    do_POST = do_DELETE = do_GET


RULES, TOKEN = read_manifests(sys.argv[1]), sys.argv[2]
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
open(os.path.join(sys.argv[3], "port"), "w").write(f"{server.server_address[1]}\n")
try:
    import signal
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server.serve_forever()
finally:
    for one in list(pods):
        end(one)
