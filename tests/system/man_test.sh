#!/bin/bash
# man_test.sh - the manual page has each verb and all that it says of itself, and troff has nothing to complain of.
. "$(dirname "$0")/lib.sh"
"$trainyard" man >"$work/trainyard.1"
check made test $? = 0
check takes_no_words same "$("$trainyard" man x >/dev/null 2>&1; echo $?)" 2
verbs=$("$trainyard" help | sed -n 's/^  trainyard \([a-z]*\) .*/\1/p')
check each_verb same "$(sed -n 's/^\.SS //p' "$work/trainyard.1")" "$verbs"
if ! command -v groff >/dev/null; then
    echo "skip page: groff is not installed"
    exit 0
fi
groff -man -ww -Tutf8 -rLL=200n -P-cbou "$work/trainyard.1" >"$work/page" 2>"$work/said"
check no_complaint same "$(cat "$work/said")" ""
# As text, each line of each --help stands in the page.
sed 's/^ *//' "$work/page" >"$work/lines"
for verb in $verbs; do
    case $verb in help | version) continue ;; esac
    "$trainyard" "$verb" --help | sed 's/^usage: //; s/^ *//; /^$/d' >"$work/help"
    check "all_of_$verb" same "$(grep -vxFf "$work/lines" "$work/help")" ""
done
check exits has "$(cat "$work/page")" "4 the job was cancelled"
