#!/bin/bash
# The completions that the command prints, at work in the shell that they are for: commands, options, values, lists,
# files. Exit status 77 (skipped) where the shell is not installed; bash is everywhere.
# Usage: completion_test.sh <path of dualgemm> bash|zsh|fish
set -uo pipefail
binary=$1 shell=$2
here=$(dirname "$(realpath "$0")")
if ! command -v "$shell" >/dev/null; then
  echo "skipped: $shell is not installed"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
script=$work/completion.$shell
"$binary" completion "$shell" >"$script" || exit 1
mkdir "$work/files" "$work/files/run" # a folder that is called as a command
touch "$work/files/layer.safetensors" "$work/files/a name.npy"
cd "$work/files" || exit 1
arguments=()
[[ $shell == zsh ]] && arguments=(-f)
passed=0 failed=0

# offers <line> <what must be offered, separated by '|'> [<what must not>]
offers() {
  local line=$1 offered word wanted unwanted bad=
  offered=$("$shell" "${arguments[@]}" "$here/ask.$shell" "$script" "$line" 2>&1)
  IFS='|' read -ra wanted <<<"$2"
  IFS='|' read -ra unwanted <<<"${3-}"
  for word in "${wanted[@]}"; do grep -qxF -e "$word" <<<"$offered" || bad+=" no '$word'"; done
  for word in "${unwanted[@]}"; do grep -qxF -e "$word" <<<"$offered" && bad+=" '$word'"; done
  if [[ -z $bad ]]; then
    ((++passed))
  else
    ((++failed))
    printf '%s: "%s":%s in:\n%s\n' "$shell" "$line" "$bad" "$offered"
  fi
}

offers 'dualgemm ' 'info|plan|make-layer|quantize|convert|run|verify|bench|validate|help|completion|man'
offers 'dualgemm ru' run 'quantize|run/'
offers 'dualgemm --ver' --version --help
offers 'dualgemm plan --batch' --batch-invariant --act
offers 'dualgemm plan --' '--act|--m|--strategy|--json' '--calibrate|--expert'
offers 'dualgemm quantize layer.safetensors --' '--out|--convention|--calibrate|--check' '--act|--activations'
offers 'dualgemm plan --act gelu_' gelu_tanh silu
offers 'dualgemm plan --device h2' h200 b200
offers 'dualgemm quantize layer.safetensors --convention ' 'modelopt|compressed_tensors|ggml' 'layer.safetensors'
offers 'dualgemm run layer.safetensors --prefix plan --stacked-order ' 'gate_first|up_first'
offers 'dualgemm bench --strategy fused' 'fused|fused_epilogue' two_pass
offers 'dualgemm validate ' 'layer.safetensors' 'silu|plan'
offers 'dualgemm quantize lay' 'layer.safetensors'
offers 'dualgemm completion ' 'bash|zsh|fish' 'layer.safetensors'
offers 'dualgemm completion z' zsh 'bash|fish'
offers 'dualgemm help ben' bench 'plan|layer.safetensors'
offers 'dualgemm help run --' --json '--activations|--out'
offers 'dualgemm bench --json --cs' --csv
offers 'dualgemm plan --threads ' '' 'layer.safetensors'
offers 'dualgemm quantize layer.safetensors --exclude a --excl' --exclude # may be repeated
case $shell in
  bash)
    offers 'dualgemm bench --strategy fused,two_p' fused,two_pass
    offers 'dualgemm plan --act=gelu_' gelu_tanh
    offers 'dualgemm plan --act=' 'silu|gelu_tanh'
    offers 'dualgemm run --activations a' 'a name.npy'
    ;;
  zsh)
    offers 'dualgemm bench --strategy fused,two_p' two_pass
    offers 'dualgemm plan --act=gelu_' gelu_tanh
    offers 'dualgemm plan --act gelu --ac' '--act-alpha' --act # given already
    ;;
  fish)
    offers 'dualgemm bench --strategy fused,two_p' fused,two_pass
    offers 'dualgemm plan --act=gelu_' --act=gelu_tanh
    ;;
esac
printf 'completion in %s: %d passed, %d failed\n' "$shell" "$passed" "$failed"
((failed == 0))
