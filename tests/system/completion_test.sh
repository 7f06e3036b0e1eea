#!/bin/bash
# completion_test.sh - what a shell completes: verbs, options, words, jobs; each script is loaded by its shell.
. "$(dirname "$0")/lib.sh"
export PATH=$build:$PATH
cd "$work" || exit 1
verbs=$(trainyard help | sed -n 's/^  trainyard \([a-z]*\) .*/\1/p' | sort)
serve yard --no-agent
digits "$dir"
export TRAINYARD_DIR=$dir
echo '{"example": "digits-mlp", "tasks": {"worker": {"cpus": 1}}}' >waits.json
number=$(field "$(trainyard submit waits.json --json)" number)

for shell in bash zsh fish; do
    trainyard completion $shell >$shell
    check completion_for_$shell test $? = 0
done

# --- bash: what COMPREPLY has after the words that are given, the last of them unfinished ---
in_bash() {
    bash --norc -c '
        . ./bash
        complete -p trainyard >/dev/null || exit 1
        compopt() { :; } # which works only while completing
        COMP_WORDS=("$@")
        COMP_CWORD=$(($# - 1))
        _trainyard
        printf "%s\n" "${COMPREPLY[@]}"' _ "$@" 2>&1
}
check bash_verbs same "$(in_bash trainyard '' | sort)" "$verbs"
check bash_verb same "$(in_bash trainyard subm)" submit
check bash_options same "$(in_bash trainyard token create --)" "$(printf '%s\n' --dir --name --role --project --days --join --user --json --help)"
check bash_option same "$(in_bash trainyard serve --token-r)" --token-rate
check bash_choices same "$(in_bash trainyard dataset '')" "$(printf '%s\n' add upload make show list remove)"
check bash_choices_once same "$(in_bash trainyard dataset add wai)" waits.json
check bash_examples same "$(in_bash trainyard train digits-)" "$(printf '%s\n' digits-cnn digits-mlp)"
check bash_files same "$(in_bash trainyard submit wai)" waits.json
check bash_values_are_files same "$(in_bash trainyard train digits-mlp --data wai)" waits.json
check bash_numbers_are_not same "$(in_bash trainyard train digits-mlp --steps wai)" ""
check bash_jobs same "$(in_bash trainyard cancel '')" "$number"
check bash_shells same "$(in_bash trainyard completion f)" fish
says=$(trainyard completion tcsh 2>&1)
check completion_of_no_shell has "$says" "usage: trainyard completion bash|zsh|fish"

# --- zsh: what it hands to the functions that do its work ---
in_zsh() {
    zsh -f -c '
        autoload -Uz compinit && compinit -D -u
        source ./zsh
        [[ $_comps[trainyard] = _trainyard ]] || exit 1
        _describe() { print -rl -- "${(@P)2}"; }
        _arguments() { print -rl -- "$@"; }
        compadd() { print -rl -- "$@"; }
        words=("$@"); CURRENT=$#
        _trainyard' _ "$@" 2>&1
}
if command -v zsh >/dev/null; then
    check zsh_verbs same "$(in_zsh trainyard '' | sed 's/:.*//' | sort)" "$verbs"
    check zsh_options has "$(in_zsh trainyard serve -)" "--token-rate[requests a second of one token; 0\\: any number (10000)]:number:"
    check zsh_choices has "$(in_zsh trainyard dataset '')" "1:what:(add upload make show list remove)"
    check zsh_jobs has "$(in_zsh trainyard cancel '')" "*:job:_trainyard_jobs"
    check zsh_jobs_are_there has "$(zsh -f -c 'source ./zsh; compadd() { print -- ${(P)2}; }; _trainyard_jobs')" "$number"
else
    echo "skip zsh_completion: no zsh here"
fi

# --- fish: what it would show ---
in_fish() { fish --no-config -c 'source ./fish; complete -C $argv[1]' "$1" 2>&1 | cut -f1; }
if command -v fish >/dev/null; then
    check fish_verbs same "$(in_fish 'trainyard ' | sort)" "$verbs"
    check fish_options same "$(in_fish 'trainyard token create --' | sort)" "$(printf '%s\n' --days --dir --help --join --json --name --project --role --user)"
    check fish_letter has "$(in_fish 'trainyard logs -')" "-f"
    check fish_choices has "$(in_fish 'trainyard dataset m')" make
    check fish_examples has "$(in_fish 'trainyard train digits-')" digits-cnn
    check fish_jobs same "$(in_fish 'trainyard cancel ')" "$number"
else
    echo "skip fish_completion: no fish here"
fi
stop TERM
