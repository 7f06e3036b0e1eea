#!/bin/bash
# browser_test.sh - runs browser_test.mjs where there are Node.js and Chromium.
cd "$(dirname "$0")/../.."
command -v node >/dev/null || { echo "skip browser: no Node.js"; exit 0; }
[ -x "${CHROMIUM:-/usr/bin/chromium}" ] || { echo "skip browser: no Chromium (make deps installs it)"; exit 0; }
exec node tests/web/browser_test.mjs
