#!/bin/bash
# https_test.sh - the page and the API over TLS: who is let in, headers and cookies, websockets, renewal, bad peers.
# Faults of docs/reliability.md: F40.
. "$(dirname "$0")/lib.sh"
# certificate NAME [DAYS] : signed by an authority of our own
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=authority -keyout "$work/ca.key" -out "$work/ca.pem" 2>/dev/null
certificate() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$1" -keyout "$work/$1.key" -out "$work/$1.csr" 2>/dev/null
    openssl x509 -req -in "$work/$1.csr" -CA "$work/ca.pem" -CAkey "$work/ca.key" -CAcreateserial -days 2 -out "$work/$1.pem" \
        -extfile <(echo "subjectAltName=IP:127.0.0.1,DNS:localhost") 2>/dev/null
}
certificate first; certificate second

# --- what cannot be used is told at the start ---
start() { timeout 20 "$trainyard" serve --dir "$work/none" --port 0 --no-agent "$@" 2>&1; }
check needs_both has "$(start --tls-cert "$work/first.pem")" "--tls-cert and --tls-key go together"
check no_file has "$(start --tls-cert "$work/nothing.pem" --tls-key "$work/first.key")" "cannot use the certificate $work/nothing.pem"
check other_key has "$(start --tls-cert "$work/first.pem" --tls-key "$work/second.key")" "second.key"
check no_key has "$(start --tls-cert "$work/first.pem" --tls-key "$work/first.pem")" "cannot use the key"
check plain_hint has "$(start --host 0.0.0.0)" "--tls-cert"

serve yard --cpus 2 --tls-cert "$work/first.pem" --tls-key "$work/first.key"
check says_https has "$url" "https://127.0.0.1:"
export CURL_CA_BUNDLE=$work/ca.pem TRAINYARD_CA=$work/ca.pem SSL_CERT_FILE=$work/ca.pem
digits "$dir"
code() { curl -sS -m 20 -o "$work/body" -w '%{http_code}' "$@"; }
host=${url#https://}

# --- ways in ---
check answers same "$(code "$url/healthz")" 200
check not_without_authority same "$(CURL_CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt curl -s -o /dev/null -w '%{http_code}' "$url/healthz")" 000
check plain_is_told has "$(curl -sS -m 5 "http://$host/healthz" 2>&1)" "use https://"
check old_tls_is_not_spoken same "$(curl -s --tlsv1.0 --tls-max 1.1 --ciphers DEFAULT@SECLEVEL=0 -o /dev/null -w '%{http_code}' "$url/healthz")" 000
check tls_1_2 same "$(code --tls-max 1.2 "$url/healthz")" 200
check tls_1_3 same "$(code --tlsv1.3 "$url/healthz")" 200
check strict_transport has "$(curl -sSI "$url/")" "Strict-Transport-Security: max-age=31536000"
check also_on_refusals has "$(curl -sSi "$url/api/v1/jobs")" "Strict-Transport-Security"
check not_on_the_socket same "$(curl -sSi --unix-socket "$dir/control.sock" http://x/healthz | grep -c Strict)" 0
check cookie_is_secure has "$(curl -sS -o /dev/null -D - -c "$work/jar" "$link")" "Secure"
check cookie_has_prefix has "$(cat "$work/jar")" "__Host-trainyard_"
check cookie_reads same "$(code -b "$work/jar" "$url/api/v1/jobs")" 200
csrf=$(field "$(curl -sS -b "$work/jar" "$url/api/v1/session")" csrf)
post() { code -b "$work/jar" -X POST -H 'Content-Type: application/json' -H "X-CSRF: $csrf" -d '{}' "$@" "$url/api/v1/jobs"; }
check own_origin same "$(post -H "Origin: $url")" 400
check plain_origin same "$(post -H "Origin: http://$host")" 403
check session_shown same "$(field "$(curl -sS -b "$work/jar" "$url/api/v1/session")" way)" session

# --- all else is as it is without ---
check keeps_alive same "$(curl -sS -v "$url/healthz" "$url/healthz" 2>&1 | grep -c 'Re-using existing connection\|Connected to')" 2
head -c 900000 /dev/urandom >"$work/file"
hash=$(sha256sum <"$work/file" | cut -d' ' -f1)
check large_bodies same "$(code -X PUT -H "Authorization: Bearer $token" --data-binary "@$work/file" "$url/api/v1/files/$hash")" 200
head -c 2000000 /dev/zero | tr '\0' ' ' >"$work/large"
check too_large same "$(code -H "Authorization: Bearer $token" --data-binary "@$work/large" "$url/api/v1/jobs")" 413
check too_large_in_chunks same "$(code -H "Authorization: Bearer $token" -H 'Transfer-Encoding: chunked' --data-binary "@$work/large" "$url/api/v1/jobs")" 413
timeout 120 python3 "$here/late_reader.py" "$host" "$token" "$work/ca.pem" >"$work/refused"
cat "$work/refused"
check late_readers_are_told test "$(grep -c '^ok' "$work/refused")" = 3
job=$(field "$(api POST /api/v1/jobs '{"example": "digits-mlp", "train": {"steps": 60}}')" number)
check submitted same "$(status)" 201
check trains wait_for 60 is_final "$job"
check follows has "$(curl -sN -m 2 -H "Authorization: Bearer $token" "$url/api/v1/jobs/$job/events")" succeeded
check by_command_line has "$(TRAINYARD_URL=$url TRAINYARD_TOKEN=$token "$trainyard" jobs)" succeeded
check command_line_needs_authority has "$(TRAINYARD_CA= TRAINYARD_URL=$url TRAINYARD_TOKEN=$token "$trainyard" jobs 2>&1)" "certificate"
check by_python same "$(PYTHONPATH=$here/../../python python3 -c 'import sys, trainyard; print(trainyard.Client(url=sys.argv[1], token=sys.argv[2]).job(int(sys.argv[3])).state)' "$url" "$token" "$job")" succeeded
curl -sS -H "Authorization: Bearer $token" -o "$work/checkpoint" "$url/api/v1/jobs/$job/graph"
check large_answers test "$(stat -c %s "$work/checkpoint")" -gt 10000

# --- a websocket ---
check websocket has "$(timeout 60 python3 - "$host" "$token" "$work/ca.pem" <<'PY'
import base64, json, os, socket, ssl, sys
host, port = sys.argv[1].split(":")
s = ssl.create_default_context(cafile=sys.argv[3]).wrap_socket(socket.create_connection((host, int(port)), 5), server_hostname=host)
s.settimeout(10)
s.sendall((f"GET /api/v1/stream HTTP/1.1\r\nHost: {host}:{port}\r\nOrigin: https://{host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
           f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\nSec-WebSocket-Version: 13\r\nAuthorization: Bearer {sys.argv[2]}\r\n\r\n").encode())
got = b""
while b"\r\n\r\n" not in got:
    got += s.recv(4096)
print(got.split(b"\r\n")[0].decode())
body = json.dumps({"subscribe": "nodes"}).encode()
mask = os.urandom(4)
s.sendall(bytes([0x81, 0x80 | len(body)]) + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(body)))
print("answered", len(s.recv(4096)) > 0)
PY
)" "$(printf 'HTTP/1.1 101 Switching Protocols\nanswered True')"

# --- peers that say nothing, half, or nonsense ---
python3 - "$host" >"$work/peers" <<'PY'
import os, socket, ssl, sys, time
host, port = sys.argv[1].split(":")
def raw():
    s = socket.create_connection((host, int(port)), 5)
    s.settimeout(20)
    return s
silent = [raw() for _ in range(50)]
for i in range(50):
    s = raw()
    s.sendall(b"\x16\x03\x01\x02\x00" + os.urandom(100 + i))
    s.close()
for i in range(50):
    s = raw()
    s.sendall(os.urandom(64))
    s.close()
context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
for i in range(50):  # away in the middle of an answer
    s = context.wrap_socket(raw())
    s.sendall(b"GET / HTTP/1.1\r\nHost: %s:%s\r\n\r\n" % (host.encode(), port.encode()))
    s.close()
half = context.wrap_socket(raw())
half.sendall(b"GET /healthz HT")
s = context.wrap_socket(raw())  # one byte at a time
for byte in b"GET /healthz HTTP/1.1\r\nHost: %s:%s\r\nConnection: close\r\n\r\n" % (host.encode(), port.encode()):
    s.sendall(bytes([byte]))
got = b""
while part := s.recv(100):
    got += part
print("byte by byte", got.split(b" ")[1].decode())
began = time.time()
closed = silent[0].recv(1) == b""
print("silent closed", closed, 5 < time.time() - began < 16)
PY
check byte_by_byte has "$(cat "$work/peers")" "byte by byte 200"
check silent_ones_are_closed has "$(cat "$work/peers")" "silent closed True True"
check still_answers same "$(code "$url/healthz")" 200

# --- a renewed certificate is used without a restart; a broken one is not ---
serial() { openssl s_client -connect "$host" </dev/null 2>/dev/null | openssl x509 -noout -subject; }
check first_certificate has "$(serial)" "first"
cp "$work/second.key" "$work/first.key"; cp "$work/second.pem" "$work/first.pem"
renewed() { serial | grep -q second; }
check renewed wait_for 10 renewed
echo broken >"$work/first.pem"
sleep 2.5
check broken_is_not_used has "$(serial)" "second"
check says_so has "$(cat "$work/yard.log")" "cannot use the certificate"
check idle_costs_little test "$(awk '{print $14 + $15}' "/proc/$pid/stat")" -lt 3000
stop TERM
check ends_cleanly same "$(grep -c 'AddressSanitizer\|ThreadSanitizer' "$work/yard.log")" 0
