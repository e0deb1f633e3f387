#!/usr/bin/no-such-python3 -u
