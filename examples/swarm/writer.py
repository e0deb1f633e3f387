"""Finds a headline, and has never heard of escaping."""

import sys
import xml.etree.ElementTree as ET

subject = ET.fromstring(sys.stdin.buffer.read())[0].text
print(f"```xml\n<title>{subject} & the rest: profit < spending</title>\n```\nShall I try another one?")
