#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Names everything that `make setup` needs from the system and does not find, with the command
# that installs it. Argument: the Python interpreter to make the virtual environment with.
set -euo pipefail

python=${1:-python3}
missing=()
packages=()

lacks() {  # what it is, the Debian package that brings it
    missing+=("$1")
    packages+=("$2")
}

if ! command -v "$python" > /dev/null || ! "$python" -c '' 2> /dev/null; then
    lacks "a Python interpreter named $python" python3
    lacks 'the venv module of Python' python3-venv
    lacks 'the Python headers' python3-dev
else
    if ! "$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))'; then
        echo "$("$python" --version) will not do: robodyn_ros needs Python 3.10 to 3.13." >&2
        echo 'Name another interpreter: make setup PYTHON=python3.12' >&2
        exit 1
    fi
    "$python" -c 'import ensurepip, venv' 2> /dev/null || lacks 'the venv module of Python' python3-venv
    headers=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
    [ -f "$headers/Python.h" ] || lacks "the Python headers ($headers/Python.h)" python3-dev
fi
command -v c++ > /dev/null || command -v g++ > /dev/null || lacks 'a C++ compiler' build-essential
command -v git > /dev/null || lacks git git

if [ ${#missing[@]} -gt 0 ]; then
    echo 'These are missing:' >&2
    printf '  - %s\n' "${missing[@]}" >&2
    echo 'On Debian and Ubuntu they come with' >&2
    echo "  sudo apt install $(printf '%s\n' "${packages[@]}" | sort -u | tr '\n' ' ')" >&2
    exit 1
fi
