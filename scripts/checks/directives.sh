#!/usr/bin/env bash
# docs/nginx.md describes each directive and each variable of the NGINX modules,
# and no other. A directive is described under a heading with its name, and the
# contexts named there are those that the code allows.
set -eu -o pipefail
cd "$(dirname "$0")/../.."
docs=docs/nginx.md
sources='shim-nginx/ngx_http_zstd_*.c'
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# One line for each directive: its name and its contexts, of tables whose
# entries begin with  { ngx_string("zstd..."),  and go on with NGX_..._CONF
# flags. ngx_http_zstd_conf.c has a shorter name for three of them.
awk '
    /ngx_command_t .*\[\] = \{/ { table = 1 }
    table && /ngx_null_command/ { table = 0 }
    table && /ngx_string\("/ {
        split($0, part, "\"")
        name = part[2]
        flags = ""
        next
    }
    table && name != "" {
        flags = flags $0
        if ($0 !~ /,[ \t]*$/) next
        if (flags ~ /NGX_HTTP_ZSTD_CONF/)
            flags = flags "|NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF" \
                          "|NGX_HTTP_LOC_CONF"
        where = ""
        if (flags ~ /NGX_HTTP_MAIN_CONF/) where = where ", http"
        if (flags ~ /NGX_HTTP_SRV_CONF/) where = where ", server"
        if (flags ~ /NGX_HTTP_LOC_CONF/) where = where ", location"
        if (flags ~ /NGX_HTTP_LIF_CONF/) where = where ", if in location"
        print name ": " substr(where, 3)
        name = ""
    }' $sources | sort >"$tmp/code"

# The same of the headings; what is quoted below them may be broken anywhere.
awk '
    /^#/ { heading = ($1 == "####") ? $2 : "" }
    heading != "" && /^>/ { text[heading] = text[heading] substr($0, 2) }
    heading != "" { seen[heading] = 1 }
    END {
        for (heading in seen) {
            where = text[heading]
            if (!sub(/.*[Cc]ontext: */, "", where)) where = "no context"
            print heading ": " where
        }
    }' "$docs" | sort >"$tmp/docs"

# $zstd_... and their lines in the table of variables.
sed -n 's/.*{ ngx_string("\(zstd_[a-z_]*\)"), NULL, ngx_http_zstd_variable,.*/\1/p' \
    $sources | sort >"$tmp/code_variables"
sed -n 's/^| `\$\(zstd_[a-z_]*\)` |.*/\1/p' $docs | sort >"$tmp/docs_variables"

# A table that is not found would be a check that cannot fail.
for list in code code_variables; do
    [ -s "$tmp/$list" ] || {
        echo "directives: found nothing in $sources ($list)" >&2
        exit 1
    }
done

failed=0
compare() { # compare WHAT CODE DOCS
    if ! diff "$tmp/$2" "$tmp/$3" >"$tmp/diff"; then
        echo "directives: $1: < in the code, > in $docs"
        grep '^[<>]' "$tmp/diff"
        failed=1
    fi
}
compare 'directives and contexts' code docs
compare variables code_variables docs_variables
[ $failed != 0 ] ||
    echo "$(wc -l <"$tmp/code") directives and" \
        "$(wc -l <"$tmp/code_variables") variables are described"
exit $failed
