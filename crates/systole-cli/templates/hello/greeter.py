"""Greets: the payload is standard input, the answer is standard output."""

import sys
import xml.etree.ElementTree as ElementTree

name = ElementTree.parse(sys.stdin).getroot().text
# The namespace and the bare & of a name are left to the pump, which repairs what it reads.
print(f"<greeting>Hello, {name}!</greeting>")
