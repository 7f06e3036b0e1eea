"""Calls every route of a server's own description and holds the answers to it: status, media type, and the schema, in which
a field that is not described is a finding too.

openapi.py URL TOKEN MODEL_JOB PROGRAM_JOB      prints what does not fit, and "all N" at the end
"""
import json, re, sys, time, urllib.error, urllib.request

url, token, model, program = sys.argv[1:]
command = {"name": "c", "command": ["true"], "tasks": {"worker": {"cpus": 1}}}
waits = {**command, "name": "waits"}
document = None
findings = 0


def finding(*words):
    global findings
    findings += 1
    print(*words)


def call(method, path, body=None, good=True, **more):
    """The status, media type and bytes of an answer."""
    headers = {**({"Authorization": f"Bearer {token}"} if good else {}), **more}
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    if data is not None:
        headers["Content-Type"] = "application/octet-stream" if isinstance(body, bytes) else "application/json"
    request = urllib.request.Request(url + path, data, headers, method=method)
    try:
        answer = opener.open(request, timeout=20)
    except urllib.error.HTTPError as error:
        answer = error
    kind = (answer.headers["Content-Type"] or "").split(";")[0]
    return answer.status, kind, b"" if kind == "text/event-stream" else answer.read()


class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args):
        return None


opener = urllib.request.build_opener(Stay)
types = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "object": dict, "array": list, "null": type(None)}


def is_type(value, name):
    return isinstance(value, types[name]) and (name == "boolean" or not isinstance(value, bool))


def check(value, schema, where):
    """Compares a value with a schema: what of JSON Schema the document uses, and no more."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    unknown = set(schema) - {"type", "properties", "items", "enum", "const", "additionalProperties", "format", "minimum", "maximum", "minProperties"}
    if unknown:
        return finding(where, "the schema has", *unknown)
    if len(value if isinstance(value, dict) else ()) < schema.get("minProperties", 0):
        finding(where, "is empty")
    wanted = schema.get("type", [])
    if wanted and not any(is_type(value, name) for name in ([wanted] if isinstance(wanted, str) else wanted)):
        return finding(where, "is", json.dumps(value)[:80], "wanted", wanted)
    if "enum" in schema and value not in schema["enum"] or "const" in schema and value != schema["const"]:
        return finding(where, "is", json.dumps(value)[:80], "wanted", schema)
    if schema.get("format") == "date-time" and value is not None and not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", value):
        return finding(where, "is", value, "wanted a time")
    if isinstance(value, list):
        for i, item in enumerate(value):
            check(item, schema.get("items", {}), f"{where}/{i}")
    if isinstance(value, dict) and ("properties" in schema or "additionalProperties" in schema):
        for name, item in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties", False))
            if inner is False:
                finding(f"{where}/{name}", "is not described")
            else:
                check(item, inner, f"{where}/{name}")


def check_answer(operation, name, answer):
    status, kind, body = answer
    described = operation["responses"].get(str(status), operation["responses"]["default"])
    if str(status) not in operation["responses"] and status < 400:
        return finding(name, status, "is not described")
    content = described.get("content", {})
    if not content:  # but of the document itself, which describes all else
        return body and name != "GET /api/v1/openapi.json" and finding(name, status, "has a body of", kind)
    if kind not in content:
        return finding(name, status, "is", kind, "wanted", *content)
    if kind.endswith("json"):
        check(json.loads(body), content[kind]["schema"], f"{name} {status}")


document = json.loads(call("GET", "/api/v1/openapi.json")[2])
# What is needed before: its answers are looked at below.
call("POST", "/api/v1/users", {"name": "ana", "role": "member", "password": "correct horse"})
call("PUT", "/api/v1/secrets/KEY", {"value": "abcd"})
cluster = json.loads(call("POST", "/api/v1/jobs", {"cluster": {"idle_seconds": 60}, "tasks": {"worker": {"cpus": 0.1}}})[2])["id"]
for _ in range(200):
    if json.loads(call("GET", f"/api/v1/jobs/{cluster}")[2])["state"] == "running":
        break
    time.sleep(0.05)
node = json.loads(call("GET", "/api/v1/nodes")[2])["items"][0]["name"]
call("POST", f"/api/v1/nodes/{node}:drain")  # so that jobs wait
paused = json.loads(call("POST", "/api/v1/jobs", waits)[2])["id"]
others = [json.loads(call("POST", "/api/v1/jobs", waits)[2])["id"] for _ in range(3)]
array = json.loads(call("POST", "/api/v1/jobs", {**command, "array": {"/priority": [1, 2]}})[2])["number"]
hook = json.loads(call("POST", "/api/v1/webhooks", {"project": "default", "url": "http://127.0.0.1:1/"})[2])["id"]
delivery = json.loads(call("POST", f"/api/v1/webhooks/{hook}:test")[2])["id"]
call("POST", "/api/v1/tokens", {"name": "spare"})
call("PUT", "/api/v1/datasets/sent/files?path=a.csv", b"a,b\n")
spare = max(t["id"] for t in json.loads(call("GET", "/api/v1/tokens")[2])["items"])
empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

# Route: its calls, in this order, each (path, body).  None: nothing to look at but its refusals.
J, W = "/api/v1/jobs", f"/api/v1/webhooks/{hook}"
calls = {
    "GET /oidc": ["/oidc"], "GET /oidc/login": None, "GET /oidc/callback": None,
    "GET /healthz": ["/healthz"], "GET /readyz": ["/readyz"], "GET /errors/{code}": ["/errors/not-found"], "GET /login": None,
    "GET /api/v1/session": ["/api/v1/session"], "POST /api/v1/session": [("/api/v1/session", {"user": "ana", "password": "correct horse"})],
    "DELETE /api/v1/session": None, "PUT /api/v1/session/password": None, "GET /api/v1/stream": None,
    "POST /api/v1/session/token": [("/api/v1/session/token", {"user": "ana", "password": "correct horse", "days": 1})],
    "POST /api/v1/login-links": ["/api/v1/login-links"],
    "POST /api/v1/plan": [("/api/v1/plan", {"spec": command}), ("/api/v1/plan", {"nodes": [{"name": "new", "cpus": 4}]})],
    f"POST {J}": [(J, command), (J, {**command, "array": {"/priority": [3, 4]}}), (f"{J}?dry_run=plan", command), (f"{J}?dry_run=plan", waits)],
    f"GET {J}": [J, f"{J}?limit=1", f"{J}?archived=true", f"{J}?state=succeeded&project=default",
                 f"{J}?order_by=-metrics.loss&limit=1", f"{J}?order_by=name&limit=1", f"{J}?total=true&fields=number,name&limit=2"],
    f"GET {J}/{{id}}": [f"{J}/{model}", f"{J}/{program}", f"{J}/{paused}", f"{J}/{array}"],
    f"PATCH {J}/{{id}}": [(f"{J}/{paused}", {"priority": 60})],
    f"GET {J}/{{id}}/spec": [f"{J}/{model}/spec", f"{J}/{program}/spec"],
    f"GET {J}/{{id}}/explain": [f"{J}/{model}/explain", f"{J}/{paused}/explain"],
    f"POST {J}/{{id}}:pause": [f"{J}/{paused}:pause"], f"POST {J}/{{id}}:resume": [f"{J}/{paused}:resume"],
    f"POST {J}/{{id}}:clone": [f"{J}/{program}:clone"], f"POST {J}/{{id}}:archive": [f"{J}/{program}:archive"],
    f"POST {J}/{{id}}:tunnel": [(f"{J}/{cluster}:tunnel", None)],
    f"POST {J}/{{id}}:unarchive": [f"{J}/{program}:unarchive"],
    f"POST {J}/{{id}}:cancel": [f"{J}/{others[0]}:cancel"], f"POST {J}/{{id}}:kill": [f"{J}/{others[1]}:kill"],
    "GET /api/v1/arrays/{id}": [f"/api/v1/arrays/{array}"], "POST /api/v1/arrays/{id}:cancel": [f"/api/v1/arrays/{array}:cancel"],
    "POST /api/v1/arrays/{id}:pause": [f"/api/v1/arrays/{array}:pause"], "POST /api/v1/arrays/{id}:resume": [f"/api/v1/arrays/{array}:resume"],
    "POST /api/v1/arrays/{id}:kill": [f"/api/v1/arrays/{array}:kill"],
    f"POST {J}/{{id}}:restart": None, f"DELETE {J}/{{id}}": [f"{J}/{others[1]}"],
    f"GET {J}/{{id}}/tasks": [f"{J}/{model}/tasks", f"{J}/{program}/tasks?attempt=1"], "POST /api/v1/stream-tickets": ["/api/v1/stream-tickets"],
    f"GET {J}/{{id}}/history": [f"{J}/{model}/history", f"{J}/{model}/history?limit=2"], f"GET {J}/{{id}}/attempts": [f"{J}/{model}/attempts", f"{J}/{program}/attempts"],
    f"GET {J}/{{id}}/checkpoints": [f"{J}/{model}/checkpoints"], f"GET {J}/{{id}}/checkpoints/{{step}}": [f"{J}/{model}/checkpoints/40"],
    f"GET {J}/{{id}}/checkpoints/{{step}}/content": [f"{J}/{model}/checkpoints/40/content?path=model.ckpt-40.index"],
    f"GET {J}/{{id}}/metrics": [f"{J}/{model}/metrics", f"{J}/{model}/metrics?names=loss&buckets=10"],
    f"GET {J}/{{id}}/hardware": [f"{J}/{model}/hardware", f"{J}/{program}/hardware?names=hw/cpu&buckets=10"],
    f"POST {J}/{{id}}/metrics": [(f"{J}/{program}/metrics", {"points": [{"step": 3, "values": {"score": 0.5, "gap": "NaN"}}]})],
    f"GET {J}/{{id}}/logs": [f"{J}/{model}/logs", f"{J}/{program}/logs?task=worker/0&stream=stdout&tail=5"],
    f"GET {J}/{{id}}/graph": [f"{J}/{model}/graph"], f"GET {J}/{{id}}/placement": [f"{J}/{model}/placement"],
    f"GET {J}/{{id}}/times": [f"{J}/{model}/times"],
    "PUT /api/v1/files/{sha256}": [(f"/api/v1/files/{empty}", b"")], "GET /api/v1/files/{sha256}": [f"/api/v1/files/{empty}"],
    "PUT /api/v1/datasets/{name}/files": [("/api/v1/datasets/rows/files?path=train.csv&offset=0", b"a,b,label\n1,2,x\n3,4,y\n")],
    "POST /api/v1/datasets/{name}:publish": [("/api/v1/datasets/rows:publish", {})],
    "GET /api/v1/datasets": ["/api/v1/datasets"], "GET /api/v1/datasets/{name}": ["/api/v1/datasets/rows", "/api/v1/datasets/sent"],
    "GET /api/v1/datasets/{name}/files": ["/api/v1/datasets/rows/files?path=train.csv"], "DELETE /api/v1/datasets/{name}": ["/api/v1/datasets/rows"],
    f"GET {J}/{{id}}/artifacts": [f"{J}/{program}/artifacts"], f"GET {J}/{{id}}/artifacts/content": [f"{J}/{program}/artifacts/content?path=a"],
    f"GET {J}/{{id}}/events": [f"{J}/{model}/events"],
    "GET /api/v1/nodes": ["/api/v1/nodes"], "GET /api/v1/nodes/{name}": [f"/api/v1/nodes/{node}"],
    "DELETE /api/v1/nodes/{name}": [f"/api/v1/nodes/{node}"],
    "GET /api/v1/queues/{name}": ["/api/v1/queues/default"], "GET /api/v1/projects/{name}": ["/api/v1/projects/default"], "POST /api/v1/nodes/{name}:drain": [f"/api/v1/nodes/{node}:drain"],
    "POST /api/v1/nodes/{name}:undrain": [f"/api/v1/nodes/{node}:undrain"], "GET /api/v1/examples": ["/api/v1/examples"],
    "PUT /api/v1/queues/{name}": [("/api/v1/queues/fast", {"priority": 60, "weight": 2, "preempt": True})], "GET /api/v1/queues": ["/api/v1/queues"], "GET /api/v1/scheduler": ["/api/v1/scheduler"],
    "PUT /api/v1/projects/{name}": [("/api/v1/projects/p", {"weight": 2, "quota": {"gpus": 1, "cpus": None}})], "GET /api/v1/projects": ["/api/v1/projects"],
    "POST /api/v1/tokens": [("/api/v1/tokens", {"name": "t", "role": "viewer", "days": 1})], "GET /api/v1/tokens": ["/api/v1/tokens", "/api/v1/tokens?user=ana"],
    "DELETE /api/v1/tokens/{id}": [f"/api/v1/tokens/{spare}"],
    "PUT /api/v1/secrets/{name}": [("/api/v1/secrets/OTHER", {"value": "abcd"})], "GET /api/v1/secrets": ["/api/v1/secrets"],
    "DELETE /api/v1/secrets/{name}": ["/api/v1/secrets/KEY"],
    "GET /api/v1/users": ["/api/v1/users"], "POST /api/v1/users": [("/api/v1/users", {"name": "bob", "role": "viewer"})],
    "GET /api/v1/users/{name}": ["/api/v1/users/ana"], "PATCH /api/v1/users/{name}": [("/api/v1/users/bob", {"role": "none"})],
    "POST /api/v1/users/{name}:link": ["/api/v1/users/bob:link"],
    "PUT /api/v1/projects/{name}/members/{user}": [("/api/v1/projects/p/members/bob", {"role": "viewer"})],
    "GET /api/v1/projects/{name}/members": ["/api/v1/projects/p/members"], "DELETE /api/v1/projects/{name}/members/{user}": ["/api/v1/projects/p/members/bob"],
    "POST /api/v1/webhooks": [("/api/v1/webhooks", {"project": "p", "url": "http://127.0.0.1:1/", "states": ["failed"]})],
    "GET /api/v1/webhooks": ["/api/v1/webhooks"], "GET /api/v1/webhooks/{id}": [W], "PATCH /api/v1/webhooks/{id}": [(W, {"disabled": True})],
    "POST /api/v1/webhooks/{id}:test": [f"{W}:test"], "GET /api/v1/webhooks/{id}/deliveries": [f"{W}/deliveries", f"{W}/deliveries?limit=1"],
    "POST /api/v1/webhooks/{id}/deliveries/{delivery}:redeliver": [f"{W}/deliveries/{delivery}:redeliver"], "DELETE /api/v1/webhooks/{id}": [W],
    "GET /api/v1/audit": ["/api/v1/audit", "/api/v1/audit?limit=1"], "GET /metrics": ["/metrics"], "GET /api/v1/openapi.json": ["/api/v1/openapi.json"],
}
routes = {f"{method.upper()} {path}": operation for path, methods in document["paths"].items() for method, operation in methods.items()}
for name in routes.keys() ^ calls.keys():
    finding(name, "is described" if name in routes else "is called", "only")
for name in [n for n in calls if n in routes]:
    method, path = name.split(" ")
    for one in calls[name] or []:
        target, body = one if isinstance(one, tuple) else (one, None)
        answer = call(method, target, body)
        if answer[0] >= 400:
            finding(name, target, answer[0], answer[2][:300].decode())
        check_answer(routes[name], name, answer)
    # Refusals: nobody, an unknown parameter, a body that is no JSON.
    somewhere = re.sub(r"{\w+}", "999999", path)
    for refused in (call(method, somewhere, good=False), call(method, somewhere + "?no_such=1"),
                    call(method, somewhere, [1]) if "requestBody" in routes[name] else None):
        if refused and refused[0] >= 500:
            finding(name, "answers", refused[0])
        if refused and refused[0] >= 400:
            check_answer(routes[name], name, refused)
# Answers that hang on a header.
name = f"GET {J}/{{id}}/artifacts/content"
content = f"{J}/{program}/artifacts/content?path=a"
for wanted, headers in (206, {"Range": "bytes=0-0"}), (304, {"If-None-Match": "*"}), (416, {"Range": "bytes=9-"}):
    answer = call("GET", content, **headers)
    if answer[0] != wanted:
        finding(name, headers, answer[0])
    check_answer(routes[name], name, answer)
name = f"POST {J}"
for _ in range(2):
    check_answer(routes[name], name, call("POST", J, command, **{"Idempotency-Key": "twice"}))
print("all" if not findings else "findings:", len(routes) if not findings else findings)
