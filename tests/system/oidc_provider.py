"""oidc_provider.py: an OpenID provider for tests.  Prints its port; who signs in, and what is wrong with the answer, is told by
its own routes: /become?sub=S&name=N&wrong=W.

It checks what a provider must: the client, its secret, the redirect URI, the PKCE verifier, that a code is used once.
"""
import base64, hashlib, http.server, json, secrets, time, urllib.parse

CLIENT, SECRET = "yard", "provider secret"
person = {"sub": "1", "name": "ana", "wrong": ""}
codes = {}


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Provider(http.server.BaseHTTPRequestHandler):
    def log_message(self, *words):
        pass

    def reply(self, status, body, **headers):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        issuer = f"http://127.0.0.1:{self.server.server_port}"
        path, _, query = self.path.partition("?")
        asked = dict(urllib.parse.parse_qsl(query))
        if path.startswith("/hang/"):
            time.sleep(8)
        if path == "/become":
            person.update({"wrong": "", **asked})
            return self.reply(200, person)
        if path == "/.well-known/openid-configuration":
            return self.reply(200, {"issuer": issuer + "/", "authorization_endpoint": issuer + "/authorize", "token_endpoint": issuer + "/token"})
        if path == "/authorize":
            if asked.get("client_id") != CLIENT or asked.get("response_type") != "code" or asked.get("code_challenge_method") != "S256" \
                    or "openid" not in asked.get("scope", "").split():
                return self.reply(400, {"error": "invalid_request"})
            if person["wrong"] == "denied":
                answer = {"error": "access_denied", "error_description": "not <today>", "state": asked["state"]}
            else:
                code = secrets.token_urlsafe(16)
                codes[code] = {**asked, **person}
                answer = {"code": code, "state": asked["state"], "iss": issuer, "session_state": "x"}
            return self.reply(302, {}, Location=asked["redirect_uri"] + "?" + urllib.parse.urlencode(answer))
        self.reply(404, {})

    def do_POST(self):
        issuer = f"http://127.0.0.1:{self.server.server_port}"
        form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
        basic = "Basic " + base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        asked = codes.pop(form.get("code"), None)
        if self.headers.get("Authorization") != basic:
            return self.reply(401, {"error": "invalid_client"})
        if not asked or form.get("grant_type") != "authorization_code" or form.get("redirect_uri") != asked["redirect_uri"] \
                or base64url(hashlib.sha256(form.get("code_verifier", "").encode()).digest()) != asked["code_challenge"]:
            return self.reply(400, {"error": "invalid_grant"})
        claims = {"iss": issuer, "sub": asked["sub"], "aud": CLIENT, "exp": time.time() + 300, "iat": time.time(), "nonce": asked["nonce"],
                  "preferred_username": asked["name"]}
        wrong = asked["wrong"]
        claims.update({"issuer": {"iss": "http://127.0.0.1:1"}, "audience": {"aud": ["other", "third"]}, "party": {"aud": [CLIENT, "other"], "azp": "other"},
                       "old": {"exp": time.time() - 3600}, "nonce": {"nonce": "x"}, "nobody": {"sub": ""}, "nameless": {"preferred_username": None}}.get(wrong, {}))
        token = ".".join([base64url(b'{"alg":"RS256"}'), base64url(json.dumps(claims).encode()), base64url(b"signature")])
        if wrong == "notoken":
            return self.reply(200, {"access_token": "x"})
        if wrong == "fault":
            return self.reply(500, {})
        self.reply(200, {"access_token": "x", "token_type": "Bearer", "id_token": "no token" if wrong == "nonsense" else token})


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider)
print(server.server_port, flush=True)
server.serve_forever()
