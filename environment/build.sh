#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds a ROS package of this checkout into the virtual environment.
#   build.sh VENV PACKAGE
# Python modules are linked, not copied: an edit needs no new build.
set -euo pipefail

venv=$(cd "$1" && pwd)
package=$2
log=$venv/colcon/$package.log

mkdir -p "$venv/colcon"
export PATH="$venv/bin:$PATH"
export CMAKE_PREFIX_PATH="$venv${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}"
export AMENT_PREFIX_PATH="$venv${AMENT_PREFIX_PATH:+:$AMENT_PREFIX_PATH}"

if ! "$venv/bin/python" -m colcon --log-base "$venv/colcon/log" build \
    --base-paths . robodyn_interfaces --packages-select "$package" \
    --build-base "$venv/colcon/build" --install-base "$venv" --merge-install --symlink-install \
    --cmake-args -DBUILD_TESTING=OFF "-DPython3_EXECUTABLE=$venv/bin/python" > "$log" 2>&1
then
    cat "$log" >&2
    echo "Building $package failed." >&2
    exit 1
fi

# colcon makes linked modules importable where its setup.bash is sourced; a .pth file does it for
# whoever runs the environment's interpreter, with nothing to source.
if [ -f "$venv/colcon/build/$package/setup.py" ]; then
    site_packages=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    echo "$venv/colcon/build/$package" > "$site_packages/$package.pth"
fi
