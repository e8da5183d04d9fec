# Bash completion for orla. To use it: source tools/completion/orla.bash
#
# Commands are listed here (a test compares them with `orla --help`). Options are read from `orla COMMAND --help` once
# per shell, so they are always those of the program that is called.

_orla_commands="up node check status settings query generate forecast outbox fn bench version"
_orla_query_commands="windows forecasts samples"
_orla_forecast_commands="backtest"
_orla_outbox_commands="inspect verify drain"
_orla_fn_commands="deploy list describe invoke logs scale remove secret dead new build"
_orla_fn_secret_commands="list create update remove"
_orla_fn_dead_commands="list replay remove"
_orla_bench_commands="replay ladder engine series sketch codec window link functions"
declare -gA _orla_options_of=()

# _orla_options PROGRAM COMMAND...: the long options of a command.
_orla_options() {
  local key="$*"
  if [[ -z ${_orla_options_of[$key]:-} ]]; then
    _orla_options_of[$key]=$("$@" --help 2>/dev/null | grep -oE -- '(^|[ ,])--[a-z][a-z0-9-]*' | tr -d ' ,' | sort -u)
  fi
  printf '%s\n' "${_orla_options_of[$key]}"
}

# Names of the nodes of a fleet file.
_orla_nodes() {
  [[ -r $1 ]] || return 0
  awk '/^[ \t]*\[/ { node = /^[ \t]*\[\[[ \t]*node[ \t]*\]\]/ }
       node && /^[ \t]*name[ \t]*=/ { sub(/^[^"]*"/, ""); sub(/".*/, ""); print }' "$1"
}

_orla_reply() { mapfile -t COMPREPLY < <(compgen "$@" -- "$current"); }

_orla() {
  local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local -a words=()
  local word
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ $word == -* ]] || words+=("$word")
  done
  local command=${words[0]:-} second=${words[1]:-} third=${words[2]:-}
  COMPREPLY=()

  case $previous in
    --format) _orla_reply -W "table csv json" && return ;;
    --schema) _orla_reply -W "debs2014" && return ;;
    --lang) _orla_reply -W "cpp c python js" && return ;;
    --password-file | --file | --from-file) compopt -o filenames 2>/dev/null; _orla_reply -f && return ;;
    --copy-to) compopt -o filenames 2>/dev/null; _orla_reply -d && return ;;
    --log-level) _orla_reply -W "error warn info debug" && return ;;
    --fleet) compopt -o filenames 2>/dev/null; _orla_reply -f && return ;;
    --store) compopt -o filenames 2>/dev/null; _orla_reply -f && return ;;
    --state) compopt -o filenames 2>/dev/null; _orla_reply -d && return ;;
  esac

  if [[ -z $command ]]; then
    if [[ $current == -* ]]; then _orla_reply -W "$(_orla_options "$program")"; else _orla_reply -W "$_orla_commands"; fi
    return
  fi
  if [[ $current == -* ]]; then
    case $command in
      fn)
        [[ $second == secret || $second == dead ]] || third=
        _orla_reply -W "$(_orla_options "$program" fn ${second:+"$second"} ${third:+"$third"})"
        ;;
      query | forecast | outbox | bench) _orla_reply -W "$(_orla_options "$program" "$command" ${second:+"$second"})" ;;
      *) _orla_reply -W "$(_orla_options "$program" "$command")" ;;
    esac
    return
  fi
  case $command in
    query) [[ -n $second ]] || _orla_reply -W "$_orla_query_commands" ;;
    forecast)
      if [[ -z $second ]]; then
        _orla_reply -W "$_orla_forecast_commands"
      else
        compopt -o filenames 2>/dev/null
        _orla_reply -f
      fi
      ;;
    node)
      if [[ -z $second ]]; then
        compopt -o filenames 2>/dev/null
        _orla_reply -f
      else
        _orla_reply -W "$(_orla_nodes "$second")"
      fi
      ;;
    outbox)
      if [[ -z $second ]]; then
        _orla_reply -W "$_orla_outbox_commands"
      else
        compopt -o filenames 2>/dev/null
        _orla_reply -d
      fi
      ;;
    fn)
      case $second in
        "") _orla_reply -W "$_orla_fn_commands" ;;
        secret) [[ -n $third ]] || _orla_reply -W "$_orla_fn_secret_commands" ;;
        dead) [[ -n $third ]] || _orla_reply -W "$_orla_fn_dead_commands" ;;
        deploy | build)
          compopt -o filenames 2>/dev/null
          _orla_reply -f
          ;;
      esac
      ;;
    bench)
      if [[ -z $second ]]; then
        _orla_reply -W "$_orla_bench_commands"
      else
        compopt -o filenames 2>/dev/null
        _orla_reply -f
      fi
      ;;
    up | check | status)
      compopt -o filenames 2>/dev/null
      _orla_reply -f
      ;;
  esac
}

complete -F _orla orla ./orla
