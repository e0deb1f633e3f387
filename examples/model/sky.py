"""Answers each question for the weather with sun. The payload is dirty, as models and programs write it."""

print("Tomorrow:\n<forecast>sun & light wind</forecast>")
