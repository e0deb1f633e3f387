"""Answers each question for a distance with 185 km."""

print("<kilometres>185</kilometres>")
