#!/bin/bash
# install_deps on a machine that has nothing: as root it installs, after fetching package lists where there are none; as
# another user it prints the line to run, installs nothing and fails. Usage: install_deps_test.sh <scripts/install_deps>
# shellcheck disable=SC2016  # the programs expand
set -uo pipefail
script=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

program() { # <name> <body>: all that this machine has
  printf '#!/bin/bash\n%s\n' "$2" >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}
mkdir "$work/bin"
ln -s "$(command -v dirname)" "$work/bin/dirname"
program apt-get 'echo "$*" >>"$LOG"; [[ $1 == update ]] && : >"$LISTS"; [[ -e $LISTS ]]'

run() { # <user id> <arguments...>: output and status in these variables
  program id "echo $1"
  shift
  rm -f "$work/log"
  status=0
  output=$(PATH=$work/bin LOG=$work/log LISTS=$work/lists "$script" "$@" 2>&1) || status=$?
  log=$(cat "$work/log" 2>/dev/null)
}
check() { # <what> <condition...>
  if ! [[ $2 ]]; then
    printf 'FAILED: %s (status %d)\noutput: %s\napt-get: %s\n' "$1" "$status" "$output" "$log"
    failures=$((failures + 1))
  fi
}

run 1000 build
line='apt-get update && apt-get install -y --no-install-recommends g++ cmake ninja-build'
check 'another user gets the line to run' "$([[ $status -eq 1 && $output == *"$line"* ]] && echo yes)"
check 'another user installs nothing' "$([[ -z $log ]] && echo yes)"

run 0 build
check 'root without package lists: install, update, install' "$([[ $status -eq 0 && $log == 'install '*$'\n''update '*$'\n''install '*'g++'* ]] && echo yes)"
run 0 build
check 'root with package lists: install' "$([[ $status -eq 0 && $log == 'install '*'g++'* && $log != *update* ]] && echo yes)"
run 0 build unheard-of
check 'an unknown group is refused' "$([[ $status -eq 2 && $output == *"'unheard-of' is unknown"* && -z $log ]] && echo yes)"

rm "$work/bin/apt-get"
run 0 build
check 'not a Debian system: names of packages' "$([[ $status -eq 1 && $output == *'not a Debian system'*'g++'* ]] && echo yes)"

for tool in g++ cmake ninja; do program "$tool" :; done
run 1000 build
if [[ -e /usr/include/CLI/CLI.hpp && -e /usr/include/fmt/format.h && -e /usr/include/nlohmann/json.hpp && -e /usr/include/gtest/gtest.h ]]; then
  check 'nothing is missing: silence' "$([[ $status -eq 0 && -z $output ]] && echo yes)"
fi

echo "install_deps_test: $failures failed"
[[ $failures -eq 0 ]]
