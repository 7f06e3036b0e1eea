#!/bin/bash
# http_test.sh - the server's doors: who gets in, what is refused, and that it stays up whatever is sent.
. "$(dirname "$0")/lib.sh"

serve yard --no-agent

# --- doors ---
code() { curl -sS -m 10 -o "$work/body" -w '%{http_code}' "$@"; }
check healthz same "$(code "$url/healthz")" 200
check readyz same "$(code "$url/readyz")" 200
check nothing_without_credentials same "$(code "$url/api/v1/jobs")" 401
check no_hint_of_routes same "$(code "$url/api/v1/nope")" 401
check token_gets_in same "$(code -H "Authorization: Bearer $token" "$url/api/v1/jobs")" 200
check wrong_token same "$(code -H "Authorization: Bearer ty_wrong" "$url/api/v1/jobs")" 401
check other_host same "$(code -H 'Host: evil.example' "$url/healthz")" 421
check socket_needs_no_token same "$(code --unix-socket "$dir/control.sock" http://x/api/v1/jobs)" 200
check socket_is_private same "$(stat -c %a "$dir/control.sock")" 600
check folder_is_private same "$(stat -c %a "$dir")" 700
check page same "$(code "$url/jobs/1")" 200
check page_without_credentials has "$(curl -sSI "$url/")" "Content-Security-Policy: default-src 'none'"
check problem_json has "$(curl -sSi "$url/api/v1/jobs")" "application/problem+json"

# --- the login link ---
jar=$work/jar
check link_signs_in same "$(code -c "$jar" "$link")" 303
check link_works_once same "$(code "$link")" 401
session=$(curl -sS -b "$jar" "$url/api/v1/session")
csrf=$(field "$session" csrf)
check cookie_reads same "$(code -b "$jar" "$url/api/v1/jobs")" 200
check cookie_writes_need_csrf same "$(code -b "$jar" -X POST -H 'Content-Type: application/json' -d '{}' "$url/api/v1/jobs")" 403
check cookie_writes_with_csrf same "$(code -b "$jar" -X POST -H 'Content-Type: application/json' -H "X-CSRF: $csrf" -d '{}' "$url/api/v1/jobs")" 400
check foreign_origin same "$(code -b "$jar" -X POST -H 'Origin: http://evil.example' -H 'Content-Type: application/json' -H "X-CSRF: $csrf" -d '{}' "$url/api/v1/jobs")" 403
check sign_out same "$(code -b "$jar" -X DELETE -H "X-CSRF: $csrf" "$url/api/v1/session")" 204
check signed_out same "$(code -b "$jar" "$url/api/v1/jobs")" 401

# --- wrong input: each with a problem that says what is wrong ---
try() { # try NAME STATUS TEXT METHOD PATH [BODY]
    local name=$1 want=$2 text=$3
    shift 3
    local answer
    answer=$(api "$@")
    check "$name" same "$(status)" "$want"
    check "${name}_says" has "$answer" "$text"
}
try empty_body 400 '"code":"INVALID_ARGUMENT"' POST /api/v1/jobs ''
try no_json 400 'INVALID_ARGUMENT' POST /api/v1/jobs '{"name": '
try no_object 400 'INVALID_ARGUMENT' POST /api/v1/jobs '[1]'
try duplicate_keys 400 'INVALID_ARGUMENT' POST /api/v1/jobs '{"name": "a", "name": "b"}'
try unknown_field 400 '"pointer":"/nmae"' POST /api/v1/jobs '{"example": "digits-cnn", "nmae": "x"}'
try unknown_example 404 'example' POST /api/v1/jobs '{"example": "nope"}'
try unknown_dataset 400 '"pointer":"/data/dataset"' POST /api/v1/jobs '{"example": "digits-cnn", "data": {"dataset": "nope"}}'
try steps_below_zero 400 '"pointer":"/train/steps"' POST /api/v1/jobs '{"example": "digits-cnn", "train": {"steps": -1}}'
try unknown_job 404 'NOT_FOUND' GET /api/v1/jobs/999
try odd_job 404 'NOT_FOUND' GET '/api/v1/jobs/%3Cimg%20onerror%3E'
try unknown_path 404 'there is nothing at' GET /api/v1/nope
try unknown_verb 404 'there is nothing at' POST /api/v1/jobs/1:dance
try wrong_method 405 'possible' PATCH /api/v1/jobs
try unknown_parameter 400 'unknown parameter' GET '/api/v1/jobs?limt=5'
try limit_no_number 400 'whole number' GET '/api/v1/jobs?limit=x'
try limit_too_high 400 'whole number' GET '/api/v1/jobs?limit=100000'
try wrong_state 400 'succeeded' GET '/api/v1/jobs?state=dead'
try wrong_cursor 400 'cursor' GET '/api/v1/jobs?cursor=abc'
try websocket_needed 426 'websocket' GET /api/v1/stream
try deep_json 400 'nests deeper' POST /api/v1/jobs "$(printf '[%.0s' $(seq 5000))"
head -c 1100000 /dev/zero | tr '\0' ' ' >"$work/large"
check large_body same "$(code -H "Authorization: Bearer $token" --data-binary "@$work/large" "$url/api/v1/jobs")" 413
# --- what costs others a server: refused before it costs anything ---
rss() { awk '/VmRSS/ {print $2}' "/proc/$pid/status"; }
before=$(rss)
python3 - "${url#http://}" "$token" >"$work/hostile" <<'PY'
import socket, sys, time
host, port = sys.argv[1].split(":")
auth = f"Host: {host}:{port}\r\nAuthorization: Bearer {sys.argv[2]}\r\n"
def ask(head, body=b"", wait=5):
    began = time.time()
    s = socket.create_connection((host, int(port)), 5)
    s.settimeout(wait)
    out = b""
    try:
        s.sendall(head.encode() + body)
    except OSError:
        pass
    try:
        while part := s.recv(65536):
            out += part
            if b"\r\n\r\n" in out:
                break
    except OSError:
        pass
    s.close()
    return out.split(b" ")[1].decode() if out.count(b" ") else "nothing", time.time() - began
def chunks(size):
    part = b"10000\r\n" + b" " * 65536 + b"\r\n"
    return part * (size // 65536)
json = "Content-Type: application/json\r\n"
for name, head, body in (
    # Only the head is sent: an answer shows that nobody waits for the body.
    ("declared", f"POST /api/v1/jobs HTTP/1.1\r\n{auth}{json}Content-Length: 104857600\r\n\r\n", b""),
    ("declared_file", f"PUT /api/v1/files/{'0' * 64} HTTP/1.1\r\n{auth}Content-Length: 104857600\r\n\r\n", b""),
    ("declared_piece", f"PUT /api/v1/datasets/x/files?path=a HTTP/1.1\r\n{auth}Content-Length: 104857600\r\n\r\n", b""),
    ("declared_by_nobody", f"POST /api/v1/jobs HTTP/1.1\r\nHost: {host}:{port}\r\n{json}Content-Length: 100000\r\n\r\n", b""),
    ("chunked", f"POST /api/v1/jobs HTTP/1.1\r\n{auth}{json}Transfer-Encoding: chunked\r\n\r\n", chunks(100 << 20)),
    ("header", f"GET /api/v1/jobs HTTP/1.1\r\n{auth}X-Large: {'a' * (1 << 20)}\r\n\r\n", b""),
    ("target", f"GET /api/v1/jobs?{'a' * (1 << 20)} HTTP/1.1\r\n{auth}\r\n", b""),
):
    status, seconds = ask(head, body)
    print(name, status, "at once" if seconds < 4 else f"after {seconds:.0f} s")
PY
answered() { sed -n "s/^$1 //p" "$work/hostile"; }
check body_of_100_mb same "$(answered declared)" "413 at once"
check file_of_100_mb same "$(answered declared_file)" "413 at once"
check piece_of_100_mb same "$(answered declared_piece)" "413 at once"
check body_of_nobody same "$(answered declared_by_nobody)" "401 at once"
check chunks_of_100_mb has "413 nothing" "$(answered chunked | cut -d' ' -f1)"
check header_of_1_mb has "431 413 400 nothing" "$(answered header | cut -d' ' -f1)"
check target_of_1_mb has "414 431 413 400 nothing" "$(answered target | cut -d' ' -f1)"
name=$(head -c 1000000 /dev/zero | tr '\0' n)
printf '{"example": "digits-cnn", "name": "%s"}' "$name" >"$work/long"
check name_of_1_mb same "$(code -H "Authorization: Bearer $token" --data-binary "@$work/long" "$url/api/v1/jobs")" 400
check name_of_1_mb_says has "$(cat "$work/body")" '"pointer":"/name"'
check name_of_1_mb_is_short test "$(stat -c %s "$work/body")" -lt 2000
for made in '../x' '..' 'a/b' '.' 'x y' 'é'; do
    try "name_$made" 400 '"pointer":"/name"' POST /api/v1/jobs "{\"example\": \"digits-cnn\", \"name\": \"$made\"}"
done
for path in jobs/..%2f..%2fcontrol.db queues/..%2fx files/..%2f..%2fsecret.key datasets/..%2fx nodes/..%2fx:drain users/%2e%2e secrets/..%2fKEY; do
    check "path_$path" has "400 404 405" "$(code -H "Authorization: Bearer $token" "$url/api/v1/$path")"
done
for value in NaN Infinity -Infinity 1e999 0x10 01 1.; do
    try "number_$value" 400 'INVALID_ARGUMENT' POST /api/v1/jobs "{\"example\": \"digits-cnn\", \"train\": {\"learning_rate\": $value}}"
done
try text_nan 400 'INVALID_ARGUMENT' POST /api/v1/jobs '{"example": "digits-cnn", "train": {"optimizer": {"name": "SGD", "learning_rate": "NaN"}}}'
after=$(rss)
check memory_stays test "$after" -lt $((before + 60000))
check openapi_lists_routes has "$(api GET /api/v1/openapi.json)" '"/api/v1/jobs/{id}:cancel"'

# --- bytes that no library sends: refused, and never answered as if they were something else ---
python3 - "${url#http://}" "$token" >"$work/raw" <<'PY'
import socket, sys
host, port = sys.argv[1].split(":")
token = sys.argv[2]
auth = f"Host: {host}:{port}\r\nAuthorization: Bearer {token}\r\n"
def send(data, wait=3):
    s = socket.create_connection((host, int(port)), 5)
    s.settimeout(wait)
    out = b""
    try:
        s.sendall(data)
        while True:
            more = s.recv(65536)
            if not more: break
            out += more
            if b"\r\n\r\n" in out and len(out) > 20: break
    except OSError:
        pass
    s.close()
    return out.split(b"\r\n")[0].decode("latin1")
cases = {
    "te_and_cl": f"POST /api/v1/jobs HTTP/1.1\r\n{auth}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two_lengths": f"POST /api/v1/jobs HTTP/1.1\r\n{auth}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}",
    "signed_length": f"POST /api/v1/jobs HTTP/1.1\r\n{auth}Content-Length: +2\r\n\r\n{{}}",
    "huge_length": f"POST /api/v1/jobs HTTP/1.1\r\n{auth}Content-Length: 99999999999999999999\r\n\r\n{{}}",
    "two_hosts": f"GET /healthz HTTP/1.1\r\n{auth}Host: evil.example\r\n\r\n",
    "no_host": f"GET /healthz HTTP/1.1\r\n\r\n",
    "space_before_colon": f"GET /healthz HTTP/1.1\r\n{auth}X-A : 1\r\n\r\n",
    "nul_in_target": f"GET /api/v1/jobs/%00 HTTP/1.1\r\n{auth}\r\n",
    "slash_in_target": f"GET /api/v1%2fjobs HTTP/1.1\r\n{auth}\r\n",
    "dots": f"GET /api/v1/../v1/jobs HTTP/1.1\r\n{auth}\r\n",
    "escaped_dots": f"GET /assets/%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\n{auth}\r\n",
    "absolute": f"GET http://evil.example/healthz HTTP/1.1\r\n{auth}\r\n",
    "long_target": f"GET /{'a' * 3000} HTTP/1.1\r\n{auth}\r\n",
    "long_header": f"GET /healthz HTTP/1.1\r\n{auth}X-A: {'a' * 60000}\r\n\r\n",
    "many_headers": f"GET /healthz HTTP/1.1\r\n{auth}" + "".join(f"X-{i}: 1\r\n" for i in range(200)) + "\r\n",
    "http_9": f"GET /healthz HTTP/9.9\r\n{auth}\r\n",
    "trace": f"TRACE /healthz HTTP/1.1\r\n{auth}\r\n",
    "connect": f"CONNECT 127.0.0.1:22 HTTP/1.1\r\n{auth}\r\n",
    "h2c": f"GET /api/v1/stream HTTP/1.1\r\n{auth}Upgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
    "gzip_body": f"POST /api/v1/jobs HTTP/1.1\r\n{auth}Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{{}}",
    "garbage": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + "\x00" * 50 + "\r\n\r\n",
}
for name, data in cases.items():
    line = send(data.encode("latin1"))
    code = line.split(" ")[1] if line.startswith("HTTP/1.1 ") else "closed"
    good = code == "closed" or code[0] == "4" or code in ("501", "505")
    print(f"{'ok' if good else 'FAIL'} raw_{name}{'' if good else ': ' + line}")
# A body that never ends is cut off.
s = socket.create_connection((host, int(port)), 5)
s.settimeout(5)
sent = 0
try:
    s.sendall(f"POST /api/v1/jobs HTTP/1.1\r\n{auth}Transfer-Encoding: chunked\r\n\r\n".encode())
    while sent < 32 << 20:
        s.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
        sent += 65536
    done = False
except OSError:
    done = True
print(f"{'ok' if done else 'FAIL'} raw_endless_body")

# Just over it, and read to the end by one who only then looks for the answer.
def chunked(head, size):
    s = socket.create_connection((host, int(port)), 5)
    s.settimeout(5)
    s.sendall(head.encode())
    try:
        for _ in range(size >> 16): s.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
        s.sendall(b"0\r\n\r\n")
    except OSError:
        pass # it may be refused before all is sent
    out = b""
    while True:
        try: more = s.recv(65536)
        except OSError: break
        if not more: break
        out += more
    return out
def result(name, good, out): print(f"{'ok' if good else 'FAIL'} {name}{'' if good else ': ' + repr(out[:300])}")
post = "POST /api/v1/jobs HTTP/1.1\r\n"
for megabytes in (2, 4):
    out = chunked(f"{post}{auth}Transfer-Encoding: chunked\r\n\r\n", megabytes << 20)
    good = out.startswith(b"HTTP/1.1 413 Content Too Large\r\n") and out.count(b"HTTP/1.1") == 1 and b'"status":413' in out
    result(f"raw_chunked_{megabytes}_mib_is_413", good, out)
out = chunked(f"{post}{auth}Transfer-Encoding: chunked\r\n\r\n", 1 << 19)
result("raw_chunked_below_is_read", out.startswith(b"HTTP/1.1 400 "), out)

# A body that nobody will read is not taken: strangers, wrong paths and methods are answered by the head alone.
heads = {
    "stranger": (f"{post}Host: {host}:{port}\r\n", 401),
    "other_host": (f"{post}Host: evil.example\r\n", 421),
    "no_such_path": (f"POST /api/v1/nope HTTP/1.1\r\n{auth}", 404),
    "wrong_method": (f"PUT /api/v1/jobs HTTP/1.1\r\n{auth}", 405),
}
for name, (head, status) in heads.items():
    for length in ("Content-Length: 1000000", "Transfer-Encoding: chunked"):
        s = socket.create_connection((host, int(port)), 5)
        s.settimeout(3)
        s.sendall(f"{head}{length}\r\n\r\n".encode())
        try: out = s.recv(65536)
        except OSError as error: out = str(error).encode()
        result(f"raw_{name}_body_is_not_taken", out.startswith(f"HTTP/1.1 {status} ".encode()), out)
        s.close()
PY
cat "$work/raw"
grep -q '^FAIL' "$work/raw" && failed=1
timeout 120 python3 "$here/late_reader.py" "${url#http://}" "$token" >"$work/refused"
cat "$work/refused"
check late_readers_are_told test "$(grep -c '^ok' "$work/refused")" = 3
check still_up same "$(code "$url/healthz")" 200
check still_one_process kill -0 "$pid"

# --- too many requests of one token ---
serve slow --no-agent --token-rate 20
other=$("$trainyard" token create --dir "$dir")
python3 - "${url#http://}" "$token" "$other" <<'PY' || failed=1
import http.client, json, sys, time
address, token, other = sys.argv[1:4]
def ask(token):
    rest = http.client.HTTPConnection(address, timeout=5)
    rest.request("GET", "/api/v1/jobs", headers={"Authorization": "Bearer " + token})
    answer = rest.getresponse()
    return answer.status, answer.getheader("Retry-After"), answer.read()
def result(name, good, why): print(f"{'ok' if good else 'FAIL'} {name}{'' if good else ': ' + repr(why)}")
began = time.monotonic()
answers = [ask(token) for _ in range(60)]
allowed = 20 + 20 * (time.monotonic() - began) + 1
good = sum(status == 200 for status, _, _ in answers)
result("rate_limits", 20 <= good <= allowed and good < 60, (good, allowed))
refused = next(a for a in answers if a[0] != 200)
result("rate_refuses_by_429", refused[0] == 429 and refused[1] == "1" and b"too many requests" in refused[2], refused)
result("rate_of_others_is_theirs", ask(other)[0] == 200, "")
time.sleep(1)
result("rate_comes_back", ask(token)[0] == 200, "")
sys.exit(0 if 20 <= good <= allowed else 1)
PY
stop TERM
says_rate=$("$trainyard" serve --dir "$work/never" --token-rate -1 2>&1)
check rate_must_make_sense has "$says_rate" "--token-rate is -1; it must be from 0"
serve third --no-agent

# --- many connections at once, and their end ---
python3 - "${url#http://}" <<'PY' || { echo "FAIL connections_at_once"; failed=1; }
import socket, sys
host, port = sys.argv[1].split(":")
socks = [socket.create_connection((host, int(port)), 5) for _ in range(300)]
for s in socks: s.sendall(f"GET /healthz HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
good = sum(s.recv(1000).startswith(b"HTTP/1.1 200") for s in socks)
assert good == 300, good
print("ok connections_at_once")
PY
stop TERM
check ends_well grep -q stopping "$work/third.log"
check address_file_gone test ! -e "$dir/server.json"
