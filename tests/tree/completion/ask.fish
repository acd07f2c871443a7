# What fish offers at the end of a line, one a line. Usage: fish ask.fish <completion script> <line>
source $argv[1]
complete -C "$argv[2]" | string replace -r '\t.*' ''
