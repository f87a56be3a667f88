# instructions.awk - the counts of a file that callgrind wrote: those inside the
# library's own shared object, and all. A line of costs belongs to the object
# that was named last; the one after calls= is what the callee cost, which is
# counted there. Objects have numbers, and a name where they are first met.

function object_of(text,    number) {
    number = substr(text, 1, index(text, ")"))
    if (length(text) > length(number))
        name[number] = substr(text, length(number) + 2)
    return name[number]
}

/^ob=/ { object = object_of(substr($0, 4)); next }
/^cob=/ { object_of(substr($0, 5)); next }
/^calls=/ { getline; next }
/^[-+*0-9]/ {
    all += $2
    if (object ~ /\/libsegzstd\.so/)
        own += $2
}
END { printf "%d\t%d\n", own, all }
