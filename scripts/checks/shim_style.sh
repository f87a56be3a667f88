#!/usr/bin/env bash
# shim-nginx is in NGINX's style, as far as a program can tell; see
# shim_style.py.
set -eu
cd "$(dirname "$0")/../.."
python3 -B scripts/checks/shim_style.py shim-nginx/*.[ch]
