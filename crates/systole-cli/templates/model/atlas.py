"""Knows how far it is: 185 km, wherever."""

print("<kilometres>185</kilometres>")
