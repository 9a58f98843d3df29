# SPDX-License-Identifier: MIT
# bash completion for manycore. Commands, options and presets are asked of the program itself, so they cannot be out of date.

_manycore()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} cmd=${COMP_WORDS[1]} prog=${COMP_WORDS[0]} i
	COMPREPLY=()
	if [ "$COMP_CWORD" = 1 ]; then
		COMPREPLY=($(compgen -W "$("$prog" --help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p') --help --version" -- "$cur"))
		return
	fi
	if [ "$cmd" = run ]; then
		# After -- another program's command line begins.
		for ((i = 2; i < COMP_CWORD; i++)); do
			if [ "${COMP_WORDS[i]}" = -- ]; then
				if declare -F _command_offset >/dev/null; then
					_command_offset $((i + 1))
				elif [ $((i + 1)) = "$COMP_CWORD" ]; then
					COMPREPLY=($(compgen -c -- "$cur"))
				else
					COMPREPLY=($(compgen -f -- "$cur"))
				fi
				return
			fi
		done
	fi
	case $prev:$cur in
	--machine:*)
		COMPREPLY=($(compgen -W "$("$prog" run --machine list 2>/dev/null | awk '{ print $1 }')" -- "$cur")
			$(compgen -f -- "$cur"))
		return
		;;
	bench:[!-]* | bench:)
		COMPREPLY=($(compgen -W "all $("$prog" bench --help 2>/dev/null |
			sed -n '/^Benches:/,$ s/^  \([a-z][a-z]*\)  .*/\1/p')" -- "$cur"))
		return
		;;
	esac
	case $cur in
	-*) COMPREPLY=($(compgen -W "$("$prog" "$cmd" --help 2>/dev/null | grep -oE -- '(^|[^-[:alnum:]])--[a-z][a-z0-9-]*' |
		grep -oE -- '--.*' | sort -u)" -- "$cur")) ;;
	*) COMPREPLY=($(compgen -f -- "$cur")) ;;
	esac
}
complete -o filenames -o bashdefault -F _manycore manycore
