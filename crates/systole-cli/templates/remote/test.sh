#!/bin/sh
# Asks the organism with an agent beside it, and compares its answer with answer.xml.
set -eu
cd "$(dirname "$0")"
(umask 077; [ -s shouter.token ] || systole token new shouter >shouter.token)
systole agent shouter --url http://127.0.0.1:8420 --token-file shouter.token --exec 'python3 agent.py' &
trap "kill $!" EXIT
systole ask organism.yaml - <task.xml | diff answer.xml -
echo ok
