#!/bin/sh
# A writer submits a task for a job that isn't registered yet. A reviewer registers, reads its inbox as a model would,
# accepts the task and completes it; the pump is killed in between.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../organism.sh"
cd "$work"
copy "$here"

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
crash
start
ask reviewer POST "/v1/tasks/$task/progress" '{"percent":50,"text":"half of it"}'
echo
ask reviewer POST "/v1/tasks/$task/complete" '{"text":"Two typos."}' >/dev/null
ask writer GET "/v1/tasks/$task"
echo
