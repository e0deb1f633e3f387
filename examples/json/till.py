"""A command: it reads one payload as JSON, and writes one."""

import json
import sys

charge = json.load(sys.stdin)["charge"]
print(json.dumps({"charged": {"total": sum(charge["cents"])}}))
