#!/usr/bin/env bash
# Compares the commands that `orla --help` lists with those that bash completion knows, on each level.
# Usage: tests/completion.sh path/to/orla
set -euo pipefail
orla=$1
source "$(dirname "${BASH_SOURCE[0]}")/../tools/completion/orla.bash"

listed_commands() { "$@" --help | awk '/^[A-Za-z].*:$/ { listing = /[Ss]ubcommands/ } listing && /^  [a-z]/ { print $1 }' | sort; }
completed() {
  COMP_WORDS=("$orla" "$@" "")
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  COMPREPLY=()
  _orla
  printf '%s\n' "${COMPREPLY[@]}" | sort
}

status=0
for level in "" query forecast outbox fn "fn secret" "fn dead" bench; do
  # shellcheck disable=SC2086  # the first level is no word at all
  listed=$(listed_commands "$orla" $level)
  # shellcheck disable=SC2086
  known=$(completed $level)
  if [[ -z $listed || $listed != "$known" ]]; then
    echo "orla $level --help lists: ${listed//$'\n'/ }"
    echo "tools/completion/orla.bash knows: ${known//$'\n'/ }"
    status=1
  fi
done
COMP_WORDS=("$orla" up --f)
COMP_CWORD=2
_orla
if [[ " ${COMPREPLY[*]} " != *" --for "* ]]; then
  echo "orla up --f<TAB> does not offer --for, but: ${COMPREPLY[*]}"
  status=1
fi
exit "$status"
