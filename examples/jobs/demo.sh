#!/bin/sh
# A writer has something to do for a job that isn't there yet. A reviewer registers, reads its inbox as a model would, takes
# the task on and completes it; the pump is killed in between.
set -eu
systole=${SYSTOLE:-systole}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
started=
trap 'kill $started 2>/dev/null || :; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

sed 's/127.0.0.1:8420/127.0.0.1:0/' "$here/organism.yaml" >"$work/organism.yaml"
cd "$work"

start() {
    "$systole" run organism.yaml </dev/null 2>run.log &
    started=$!
    until url=$(sed -n 's/.*the gateway listens address=/http:\/\//p' run.log) && [ -n "$url" ]; do
        kill -0 $started 2>/dev/null || { cat run.log >&2; exit 1; }
        sleep 0.1
    done
}
for_name() { "$systole" token new "$1" 2>/dev/null | sed 's/^/Authorization: Bearer /' >"$1.auth"; }
ask() {
    curl --silent --show-error --fail --header "@$1.auth" --request "$2" "$url$3" ${4:+--data "$4"}
}

start
for_name writer
for_name reviewer
task=$(ask writer POST /v1/jobs/reviews/tasks '{"description":"Read chapter 3."}' | sed 's/.*"id":"\([^"]*\)".*/\1/')
ask reviewer PUT /v1/jobs/reviews '{"description":"Reads drafts.","skills":["read"]}'
echo
ask writer GET '/v1/jobs?skill=read'
echo
ask reviewer GET /v1/jobs/reviews/inbox.md
ask reviewer POST "/v1/tasks/$task/accept" '{}' >/dev/null
kill -9 $started
wait $started 2>/dev/null || :
start
ask reviewer POST "/v1/tasks/$task/progress" '{"percent":50,"text":"half of it"}'
echo
ask reviewer POST "/v1/tasks/$task/complete" '{"text":"Two typos."}' >/dev/null
ask writer GET "/v1/tasks/$task"
echo
