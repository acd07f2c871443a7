# What bash offers at the end of a line, one a line: the function that the script registers, called with the words that
# readline makes of the line. Usage: bash ask.bash <completion script> <line>
# shellcheck disable=SC1090,SC2034  # the script is made by the command; the function reads COMP_*
set -u
source "$1"
function=$(complete -p dualgemm | sed 's/.*-F \([^ ]*\) .*/\1/')
COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDS=()
rest=$2
while [[ -n $rest ]]; do
  rest=${rest#"${rest%%[! ]*}"}
  if [[ $rest == =* ]]; then word='='; else word=${rest%%[ =]*}; fi
  [[ -n $rest ]] && COMP_WORDS+=("$word")
  rest=${rest#"$word"}
done
[[ $2 == *' ' ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
"$function" dualgemm "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
((${#COMPREPLY[@]} == 0)) || printf '%s\n' "${COMPREPLY[@]}"
