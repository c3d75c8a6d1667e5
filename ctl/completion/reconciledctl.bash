# SPDX-License-Identifier: Apache-2.0
# bash: reconciledctl itself knows what a word can become (ctl/complete.c).
_reconciledctl()
{
        local found

        COMPREPLY=()
        found=$("$1" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) || return 0
        [[ -n $found ]] || return 0
        if [[ $found == :files ]]; then
                compopt -o filenames
                mapfile -t COMPREPLY < <(compgen -f -- "$2")
        else
                mapfile -t COMPREPLY < <(cut -f 1 <<<"$found")
        fi
}

complete -F _reconciledctl reconciledctl
