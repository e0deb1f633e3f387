#!/usr/bin/env no-such-python3
