#!/bin/bash
# certificate_test.sh - nodes by the server's own authority: a token that pins it gets a certificate, which is all that a node is
# known by afterwards; renewed, run out, of another node, revoked, and after the folder is lost (F40).
. "$(dirname "$0")/lib.sh"
! grep -qE "__(asan|tsan)_init" "$trainyard" || { echo "skip certificate: a sanitizer has to be loaded before the clock"; exit 0; }
${CC:-cc} -shared -fPIC -o "$work/clock.so" "$here/fake_clock.c" || { echo "skip certificate: no compiler"; exit 0; }
export FAKE_CLOCK=$work/clock clock=$work/clock.so
jump() { echo "$1" >"$work/clock.next"; mv "$work/clock.next" "$work/clock"; }
jump 0
day=86400
port=$(free_port)
yard=(--no-agent --agents-host 127.0.0.1 --agents-port "$port" --suspect-ms 2000 --lost-ms 60000)
LD_PRELOAD=$work/clock.so serve yard "${yard[@]}"
export TRAINYARD_DIR=$dir
join=$("$trainyard" token create --join)
check token_names_the_server test "${#join}" -gt 80
check key_is_the_owners same "$(stat -c %a "$dir/secret.key")" 600
agent() { # NAME [OPTION...] : starts one; its pid is in $last
    local name=$1
    shift
    LD_PRELOAD=$clock "$trainyard" agent --server "127.0.0.1:$port" --dir "$work/$name" --name "$name" --cpus 1 "$@" 2>>"$work/$name.log" >/dev/null &
    last=$!
    pids+=("$last")
}
ends() { wait_for 10 sh -c "! kill -0 $1 2>/dev/null"; }
state() { python3 -c 'import json, sys; print(*[n["state"] for n in json.loads(sys.argv[1])["items"] if n["name"] == sys.argv[2]])' "$(api GET /api/v1/nodes)" "$1"; }
is_in() { [ "$(state "$1")" = joined ]; }
serial() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["certificate"])' "$work/$1/certificate.json" | openssl x509 -noout -serial; }
has_another() { [ "$(serial "$1")" != "$2" ]; }

agent one --token "$join"
one=$last
check joins wait_for 20 is_in one
check certificate_is_the_agents same "$(stat -c %a "$work/one/certificate.json")" 600
run() { field "$(api POST /api/v1/jobs "$1")" number; }
job=$(run '{"command": ["sh", "-c", "sleep 600"], "tasks": {"worker": {"cpus": 1}}}')
check runs wait_for 20 is_state "$job" running

# It is kept over a restart, and no token is needed then.
kill -9 "$one"
wait "$one" 2>/dev/null
first=$(serial one)
agent one
one=$last
check restart_needs_no_token wait_for 20 grep -q 'msg="has a new certificate"\|tasks=1 msg=joined' "$work/one.log"
check restart_keeps_it same "$(serial one)" "$first"

# Who has no certificate, or another node's, or trusts another server, stays outside and is told.
agent stranger
check stranger_is_told ends $last
check stranger_is_told_why grep -q 'no certificate yet: give it a join token' "$work/stranger.log"
agent fooled --token "${join%.*}.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
check another_server_is_told ends $last
check another_server_is_told_why grep -q 'does not show the certificate that the token names' "$work/fooled.log"
agent wrong --token "ty_wrong.${join#*.}"
check wrong_token_is_told ends $last
check wrong_token_is_told_why grep -q 'join token is not valid' "$work/wrong.log"
mkdir "$work/copy"
cp "$work/one/certificate.json" "$work/copy"
agent copy
check copied_is_refused ends $last
check copied_is_told_why grep -q "the certificate is node 'one's, not node 'copy's" "$work/copy.log"
check server_says_so_too grep -q "the certificate is node 'one's, not node 'copy's" "$work/yard.log"
check no_node_of_them same "$(state copy)$(state stranger)$(state fooled)$(state wrong)" ""
check plain_is_refused wait_for 1 sh -c "! curl -s -m 2 --http2-prior-knowledge http://127.0.0.1:$port/pb.Agent/Join"

# At half of its time it is renewed; session and task go on.
joins=$(grep -c 'node=one .*msg=joined' "$work/yard.log")
jump $((16 * day))
check renewed wait_for 20 has_another one "$first"
check renewal_drops_nothing same "$(state_of "$job") $(grep -c 'node=one .*msg=joined' "$work/yard.log")" "running $joins"
short() { field "$(api GET "/api/v1/jobs/$1/logs")" 0 2>/dev/null; }
jump $((40 * day)) # past the end of the first one
sleep 3
check renewed_goes_on same "$(state one) $(state_of "$job")" "joined running"

# One that ran out while its agent was away is refused, in words, and a token helps.
"$trainyard" cancel "$job" >/dev/null
check job_ends wait_for 20 is_final "$job"
kill "$one"
wait "$one" 2>/dev/null
jump $((100 * day))
agent one
check run_out_is_refused ends $last
check run_out_is_told_why grep -q "the certificate of node 'one' ran out on 20" "$work/one.log"
check run_out_in_the_servers_log grep -q "the certificate of node 'one' ran out on 20" "$work/yard.log"
agent one --token "$join"
one=$last
check token_helps wait_for 20 is_in one

# A node that is removed is out at once, with what it runs, by certificate and by its old token.
job=$(run '{"command": ["sh", "-c", "echo $$; exec sleep 601"], "tasks": {"worker": {"cpus": 1}}, "restart": {"max": 0}}')
check runs_again wait_for 20 is_state "$job" running
check remove has "$("$trainyard" nodes remove one)" "one is removed"
check removed_ends ends "$one"
check removed_is_told_why grep -q "node 'one' was removed from this server" "$work/one.log"
check removed_is_not_listed same "$(state one)" ""
check removed_leaves_no_task wait_for 10 sh -c '! pgrep -f "[s]leep 601" >/dev/null'
agent one --token "$join"
check old_token_helps_not ends $last
check removed_stays_out same "$(state one)" ""
agent one --token "$("$trainyard" token create --join)"
one=$last
check new_token_helps wait_for 20 is_in one

# A token that is revoked takes the nodes with it that came by it.
other=$("$trainyard" token create --join --name other)
agent two --token "$other"
two=$last
check two_joins wait_for 20 is_in two
kill "$two"
wait "$two" 2>/dev/null
"$trainyard" token revoke "$("$trainyard" token list | awk '$3 == "other" { print $1 }')" >/dev/null
agent two
check revoked_is_refused ends $last
check revoked_is_told_why grep -q "the token by which node 'two' came was revoked" "$work/two.log"

# The folder is lost. What was put back with the key has the authority of before: the node needs nothing.
# (With clocks that are right: gRPC's timers go by the kernel's, whatever is preloaded.)
kill "$one"
wait "$one" 2>/dev/null
clock=
agent one
one=$last
check joins_before_the_loss wait_for 20 is_in one
kept=$(serial one)
"$trainyard" db backup "$work/backup" --dir "$dir" >/dev/null
stop TERM
cp "$dir/secret.key" "$work/secret.key"
mv "$dir" "$work/lost"
"$trainyard" db restore "$work/backup" --dir "$dir" >/dev/null
cp "$work/secret.key" "$dir/secret.key"
again "${yard[@]}"
check restored_authority wait_for 20 is_in one
check restored_without_a_token same "$(serial one)" "$kept"
# Without the key it is another one: the agent does not trust it, and a new token of it does.
stop TERM
rm "$dir/secret.key"
again "${yard[@]}"
check another_authority_is_not_trusted wait_for 20 grep -qi 'certificate.verify.failed' "$work/one.log"
kill "$one"
wait "$one" 2>/dev/null
agent one --token "$("$trainyard" token create --join)"
check token_of_another_authority wait_for 20 is_in one
stop TERM
