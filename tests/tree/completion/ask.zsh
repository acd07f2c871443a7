# What zsh offers at the end of a line, one a line: an interactive zsh in a pseudo-terminal completes it, and its
# compadd, which every completion ends in, writes down what fits. Usage: zsh -f ask.zsh <completion script> <line>
zmodload zsh/zpty || exit 3
folder=$(mktemp -d)
setup=$folder/setup offered=$folder/offered
: >$offered
cat >$setup <<END
PROMPT= RPROMPT=
unsetopt ZLE_BRACKETED_PASTE 2>/dev/null
autoload -Uz compinit && compinit -D -u
source ${(q)1}
compadd() {
  local -a fitting
  if [[ \${@[1,(i)(-|--)]} == *(-O|-A|-D)* ]]; then builtin compadd "\$@"; return; fi
  builtin compadd -O fitting "\$@"
  (( \$#fitting )) && print -rl -- "\$fitting[@]" >>${(q)offered}
  builtin compadd "\$@"
}
ask() { zle complete-word; print -r -- '#end' >>${(q)offered}; }
zle -N ask
bindkey '^I' ask
print -r -- '#ready' >>${(q)offered}
END
wait_for() { # a line of the file; half a minute at the most
  integer tries=600
  while ((tries-- > 0)); do
    grep -qxF -- "$1" $offered && return
    zpty -rt shell line 2>/dev/null
    sleep 0.05
  done
  print -u2 "ask.zsh: no answer ($1)"
  rm -rf $folder
  exit 3
}
export TERM=dumb
zpty shell zsh -f -i
zpty -w shell "source ${(q)setup}"
wait_for '#ready'
zpty -w -n shell "$2"$'\t'
wait_for '#end'
grep -v '^#' $offered | sort -u
rm -rf $folder # no trap: the shell in the pseudo-terminal would inherit it
zpty -d shell
