#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Splits what is committed here into a repository for each package: bloom, rosdep and the build farm
# look into no package for another.
#   split_packages.sh FOLDER
# FOLDER gets robodyn_interfaces and robodyn_controllers with their own histories, and robodyn_ros:
# this history, and a commit that leaves the two out. One commit is always split into the same three;
# its tags are theirs, too.
set -euo pipefail

inner=(robodyn_interfaces robodyn_controllers)
here=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
mkdir -p "$1"
folder=$(cd "$1" && pwd)

# git subtree leaves notes behind: in a clone of its own.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone --quiet "$here" "$work"
cd "$work"

repository() {  # the package, its commit
    git init --quiet --initial-branch=none "$folder/$1"
    git push --quiet "$folder/$1" "$2:refs/heads/main"
    for tag in $(git tag --points-at HEAD); do
        git push --quiet "$folder/$1" "$2:refs/tags/$tag"
    done
    git -C "$folder/$1" checkout --quiet main
    echo "$folder/$1: $2"
}

for package in "${inner[@]}"; do
    commit=$(git subtree split -q --prefix="$package")
    repository "$package" "$commit"
done

git rm -r --quiet "${inner[@]}"
# By whom and when HEAD was made, so that the same commit comes of it.
name=$(git log -1 --format=%cn) email=$(git log -1 --format=%ce) date=$(git log -1 --format=%cI)
export GIT_AUTHOR_NAME=$name GIT_AUTHOR_EMAIL=$email GIT_AUTHOR_DATE=$date
export GIT_COMMITTER_NAME=$name GIT_COMMITTER_EMAIL=$email GIT_COMMITTER_DATE=$date
tree=$(git write-tree)
commit=$(git commit-tree "$tree" -p HEAD \
    -m 'Leave out the packages that have repositories of their own')
repository robodyn_ros "$commit"
