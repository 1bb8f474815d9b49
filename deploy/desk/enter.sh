# The first thing in a learner's room: sh enter.sh EXCHANGE COURSE COMMAND...
# Puts the released chapters into ~/work, where they are not there yet. What is there
# is the learner's and stays as it is.
desk=$(dirname "$0")
released=$1/$2/outbound
course=$2
export COURSE_EXCHANGE="$1" COURSE_CONTENTS="$desk/contents.json"
shift 2
umask 077
mkdir -p "$HOME/work" "$JUPYTER_RUNTIME_DIR"
cd "$HOME/work" || exit 1
if [ -n "$COURSE_SHARE" ]; then
    mkdir -p "$COURSE_EXCHANGE"
    python -m course_exchange "$COURSE_EXCHANGE" "$course"
fi
for chapter in "$released"/*/; do
    name=$(basename "$chapter")
    if [ -d "$chapter" ] && [ ! -e "$name" ] && [ ! -L "$name" ]; then
        # whole or not at all: the disk may be full
        rm -rf ".$name.part"
        cp -R "$chapter" ".$name.part" && chmod -R u+w ".$name.part" &&
            mv ".$name.part" "$name" || rm -rf ".$name.part"
    fi
done
exec "$@"
