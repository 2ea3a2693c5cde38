# What every command begins with. Its first word is the nonce. A single quote, a backslash before a
# backslash, and an exclamation mark before a word are not allowed anywhere: see script.go. A relative
# path that is entered begins with ./, so that CDPATH is not searched.

# Neither the account's environment nor its shell's options may change what follows.
set +efuxC
umask 077
LC_ALL=C TZ=UTC0 COPYFILE_DISABLE=1
export LC_ALL TZ COPYFILE_DISABLE
unset TAR_OPTIONS TAR_WRITER_OPTIONS GZIP POSIXLY_CORRECT
unset -f command printf cd test read id find sort sed head tr ls stat date cat touch chmod mkdir rmdir mv rm sleep tar gzip awk od wc readlink 2>/dev/null
PATH=${PATH:-/bin}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin

N=$1
shift
nl=$(printf "\nx")
nl=${nl%x}
printf "\nbegin:%s\n" "$N"
