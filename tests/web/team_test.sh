#!/bin/bash
# team_test.sh - runs team_test.mjs where there are Node.js and Chromium.
cd "$(dirname "$0")/../.."
command -v node >/dev/null || { echo "skip team: no Node.js"; exit 0; }
[ -x "${CHROMIUM:-/usr/bin/chromium}" ] || { echo "skip team: no Chromium (make deps installs it)"; exit 0; }
exec node tests/web/team_test.mjs
