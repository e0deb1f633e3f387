"""`python3 -m systole_sdk schema agent.py` prints the JSON Schema of the payloads that a program declares."""
import runpy
import sys

from ._listeners import _worker
from ._schema import written

if len(sys.argv) != 3 or sys.argv[1] != "schema":
    sys.exit("usage: python3 -m systole_sdk schema PROGRAM.py >PAYLOADS.schema.json")
_worker.is_described = True
sys.argv = sys.argv[2:]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
    print(written())
except (TypeError, ValueError) as error:
    sys.exit(f"{sys.argv[0]}: {error}")
