"""Adds two integers, and quotes no attribute."""

import sys
import xml.etree.ElementTree as ET

add = ET.fromstring(sys.stdin.buffer.read())
a, b = (int(operand.text) for operand in add)
print(f"{a} + {b}? Easy:\n<sum value={a + b}></sum>")
