# Standard input is a pipe whose other end only the owner holds: when the owner is gone, in whatever way, the loop ends.
# Then what it watched is killed and the directory $1 is removed, if there is one.
pids=
while read -r word pid; do
    case $word in
        watch) pids="$pids $pid" ;;
        forget)
            rest=
            for other in $pids; do
                [ "$other" = "$pid" ] || rest="$rest $other"
            done
            pids=$rest
            ;;
        done) exit 0 ;;
    esac
done

alive=
for pid in $pids; do
    kill -9 "$pid" 2>/dev/null && alive="$alive $pid"
done
# Their files must not come back after the directory is gone. A zombie that nobody reaps would be waited for in vain.
tries=0
while [ -n "$alive" ] && [ "$tries" -lt 50 ]; do
    rest=
    for pid in $alive; do
        kill -0 "$pid" 2>/dev/null && rest="$rest $pid"
    done
    alive=$rest
    [ -z "$alive" ] || sleep 0.1
    tries=$((tries + 1))
done
[ -n "$1" ] && [ -d "$1" ] || exit 0
# The lock goes last: without it the rest would look like somebody else's.
for entry in "$1"/*; do
    case $entry in
        */lock) ;;
        *) rm -rf -- "$entry" || { sleep 1; rm -rf -- "$entry"; } ;;
    esac
done
rm -f -- "$1/lock"
rmdir -- "$1"
