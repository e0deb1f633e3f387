"""Says it louder: the payload is standard input, the reply is standard output."""

import sys
import xml.etree.ElementTree as ElementTree

words = ElementTree.parse(sys.stdin).getroot().text
# The namespace and the bare & of the words are left to the pump, which repairs what it reads.
print(f"<shouted>{words.upper()}!</shouted>")
