#!/usr/bin/env bash
# Runs the till until its schedule has sent a message, kills it, starts it again, and counts the ticks: each second has one.
set -euo pipefail
systole=$(realpath "$(command -v "${SYSTOLE:-systole}")")
folder=$(mktemp -d)
trap 'kill -9 "${pid:-}" 2>/dev/null || true; rm -rf "$folder"' EXIT
cp "$(dirname "$0")"/{organism.yaml,till.xsd} "$folder"
cd "$folder"
"$systole" check organism.yaml | sed -n '/^schedules:/,$p'
answered() { "$systole" schedule list --last 20 | grep -c '  answered  ' || true; }
# The ticks of `beat`, as seconds since 1970.
seconds() { "$systole" schedule list --last 20 | sed -n '/^beat/,/^evening/s/^  \([^ ]*Z\)  answered .*/\1/p' | date -f - +%s; }
until_answered() {
    for _ in {1..300}; do
        [ "$(answered)" -lt "$1" ] || return 0
        sleep 0.1
    done
    echo "no $1 ticks were answered" >&2
    exit 1
}
mkfifo input
for wanted in 1 4; do
    "$systole" run organism.yaml - <input >/dev/null 2>&1 &
    pid=$!
    exec 3>input
    until_answered "$wanted"
    kill -9 "$pid"
    wait "$pid" 2>/dev/null || true
    exec 3>&-
done
"$systole" schedule list
first=$(seconds | sort -n | head -1) last=$(seconds | sort -n | tail -1) count=$(seconds | sort -nu | wc -l)
[ "$count" = "$(seconds | wc -l)" ] || { echo 'a tick has two messages' >&2; exit 1; }
[ "$count" = $((last - first + 1)) ] || { echo 'a tick has no message' >&2; exit 1; }
echo "each of $count seconds: one message"
