import sys

x = = 1
