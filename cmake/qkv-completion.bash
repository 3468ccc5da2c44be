# bash completion for qkv. The program itself says what may come next: commands, options, tasks, mechanisms, runs.
_qkv() {
  local word list='' cur=${COMP_WORDS[COMP_CWORD]} before=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [ "$word" = = ] || before+=("$word") # --option=value comes in three words
  done
  [ "$cur" != = ] || cur=
  case $cur in *,*) list=${cur%,*}, cur=${cur##*,} ;; esac # of a,b,c the last is completed
  COMPREPLY=()
  while IFS= read -r word; do
    [[ $word == "$cur"* && ($word != -* || $cur == -*) ]] || continue
    printf -v word %q "$word"
    COMPREPLY+=("$list$word")
  done < <("${COMP_WORDS[0]}" next-words "${before[@]}" 2>/dev/null)
}
complete -o default -F _qkv qkv
