# What probe says before the cache is looked at: the clock first, for it is compared with ours by when
# it arrives. Nothing here ends the answer, so that one thing that lacks hides no other.
command -v date >/dev/null && printf "now %s\n" "$(date +%s)"

# tell WORD TEXT: one line of it.
tell() {
  [ "$2" ] || return 0
  n=$2
  flat
  printf "%s %.1000s\n" "$1" "$n"
}
tell system "$(uname -sm 2>/dev/null)"
tell user "$(id -un 2>/dev/null)"
tell homedir "${HOME-}"
tell shell "${SHELL-}"
tell sh "$(readlink /bin/sh 2>/dev/null)"
l=
for t in find sort sed id head tr ls cat date touch chmod mkdir rmdir mv rm sleep tar gzip sha256sum shasum sha256 openssl zstd; do
  command -v $t >/dev/null && l="$l $t"
done
printf "has%s\n" "$l"
for t in tar gzip zstd; do
  command -v $t >/dev/null && tell "version $t" "$($t --version 2>&1 </dev/null | head -n 1)"
done
x=$r
case $x in
  /*)
    until [ -d "$x/" ]; do
      x=${x%/*}
    done
    x=${x:-/}
    df -Pk "$x" 2>/dev/null | { read -r t && read -r t t t n t && printf "free %s\n" "$n"; }
    df -Pi "$x" 2>/dev/null | { read -r t t t h t && read -r t t t n t && [ "$h" = IFree ] && printf "inodes %s\n" "$n"; }
    ;;
esac
