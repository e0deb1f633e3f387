#!/bin/sh
# Asks the organism, and compares its answer with answer.json.
set -eu
cd "$(dirname "$0")"
systole ask organism.yaml - <task.json | diff answer.json -
echo ok
