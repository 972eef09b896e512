#!/bin/sh
# Starts the program in its place, as many solutions do.
cd "$(dirname "$0")"
exec python3 ./worker_threads.py
