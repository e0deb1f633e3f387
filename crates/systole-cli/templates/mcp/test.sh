#!/bin/sh
# Asks the organism, also as a host, and compares its answers.
set -eu
cd "$(dirname "$0")"
systole ask organism.yaml - <task.xml | diff answer.xml -
python3 host.py | grep -x 'order: 2 packets of tea are yours' >/dev/null
echo ok
