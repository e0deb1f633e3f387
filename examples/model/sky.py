"""Knows the weather: it is sunny, always. The payload is dirty, as models and programs write it."""

print("Tomorrow:\n<forecast>sun & light wind</forecast>")
