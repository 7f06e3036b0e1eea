#!/bin/bash
# https_test.sh - runs https_test.mjs where there are Node.js and Chromium.
cd "$(dirname "$0")/../.."
command -v node >/dev/null || { echo "skip https: no Node.js"; exit 0; }
[ -x "${CHROMIUM:-/usr/bin/chromium}" ] || { echo "skip https: no Chromium (make deps installs it)"; exit 0; }
exec node tests/web/https_test.mjs
