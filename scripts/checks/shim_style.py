"""NGINX's style, as far as a program can tell.

    shim_style.py FILE...     prints FILE:LINE: what is wrong; status 1 if any

Before that it is run on a good sample, and on that sample with one fault of
each kind, each of which has to be seen.
"""

import re
import sys

COLUMNS = 80
KEYWORDS = "if|for|while|switch|return|sizeof"
TYPE = (
    r"(?:const )?(?:unsigned|int|char|void|u_char|u_short|float|double"
    r"|s?size_t|off_t|time_t|u?int(?:8|16|32|64|ptr)_t|(?:ngx|segzstd)_\w+)"
)


def blank_out(text):
    """The text with comments and the insides of strings made blanks, so that
    lines and columns stay."""

    def blanks(match):
        found = match.group(0)
        if found[0] in "\"'":
            return found[0] + " " * (len(found) - 2) + found[0]
        return re.sub(r"[^\n]", " ", found)

    return re.sub(
        r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'',
        blanks,
        text,
        flags=re.S,
    )


def check(text):
    """Pairs of line number and fault."""
    faults = []
    raw = text.split("\n")
    lines = blank_out(text).split("\n")

    def fault(i, what):
        faults.append((i + 1, what))

    if raw[0] != "" or raw[1:2] != ["/*"]:
        fault(0, "a file begins with an empty line and a comment")
    if raw[-1] != "" or raw[-2] == "":
        fault(len(raw) - 1, "a file ends with one newline")

    for i, line in enumerate(raw):
        if "\t" in line:
            fault(i, "tab")
        if line != line.rstrip():
            fault(i, "space at the end of the line")
        if len(line) > COLUMNS:
            fault(i, "more than %d columns" % COLUMNS)

    for i, line in enumerate(lines):
        check_line(line, lines[i - 1] if i else "", i, fault)

    check_top_level(raw, lines, fault)
    check_statements(lines, fault)
    check_logs(text, fault)
    return sorted(set(faults))


def check_line(line, before, i, fault):
    if "//" in line:
        fault(i, "// comment")
    if re.search(r"\b(?:if|for|while|switch|return)\(", line):
        fault(i, "no space after a keyword")
    if re.search(r"\bsizeof \(", line):
        fault(i, "space after sizeof")
    if re.search(r"\bfor \((?! ?/?\*?.*\S.*;.*;)\s*;\s*;\s*\)", line) and (
        "for ( ;; )" not in line
    ):
        fault(i, "an endless loop is for ( ;; )")
    if re.search(r"(?:&&|\|\|)$", line):
        fault(i, "a wrapped line begins with the operator")
    if re.match(r"\s*(?:\} )?else\b", line):
        if not re.match(r"\s+\} else (?:\{|if \()", line):
            fault(i, "an else is } else {")
        if before.strip():
            fault(i, "no empty line before an else")
    if line.endswith("{") and line.count(")") > line.count("("):
        fault(i, "the brace of a wrapped condition is on a line of its own")
    if re.search(r"\S\{$", line) and not line.endswith("({"):
        fault(i, "no space before a brace")
    if re.search(r"(?<!sizeof)\(%s(?: \*+)?\)[\w(&*]" % TYPE, line):
        fault(i, "no space after a cast")
    if re.search(r"\b%s\*+(?: |$|\))" % TYPE, line):
        fault(i, "the star belongs to the name")
    if re.search(r",[^\s]", line):
        fault(i, "no space after a comma")
    if re.match(r"( *)\S", line):
        indent = len(re.match(r" *", line).group(0))
        if re.match(r" *(?:if|for|while|switch|return|goto|break)\b", line):
            if indent % 4 and not before.rstrip().endswith("\\"):
                fault(i, "indented by %d" % indent)
    if re.search(r"[^=!<>]==? *NULL *[&|)]", line) and "= NULL" not in line:
        fault(i, "no spaces around an operator")
    if re.search(r"\bNULL [!=]= ", line):
        fault(i, "constant before the variable")
    if re.match(r"\} \w+;", line) and not re.match(r"\} ngx_\w+_[te];", line):
        fault(i, "a type ends in _t, an enum in _e")
    if re.match(r"struct \w+ \{", line) and not re.match(
        r"struct ngx_\w+_s \{", line
    ):
        fault(i, "the name of a struct ends in _s")


def check_top_level(raw, lines, fault):
    """What begins and ends in the first column."""
    for i, line in enumerate(lines):
        if line == "}":
            following = raw[i + 1 : i + 4]
            if following[:1] == [""] and len(raw) == i + 2:
                continue
            if following[:1] == [""] and re.match("#e", following[1]):
                continue
            if following[:2] != ["", ""] or following[2:] in ([""], []):
                fault(i + 1, "not two empty lines after a function")

        if line == "{":
            check_definition(raw, lines, i, fault)
            check_locals(lines, i, fault)

        # type and name in one line, with a brace at its end or in the next
        if re.match(r"[a-z][\w *]* \**\w+\(.*\)( \{)?$", line) and (
            line.endswith("{") or lines[i + 1 : i + 2] == ["{"]
        ):
            fault(i, "the return type is on a line of its own")


def check_definition(raw, lines, i, fault):
    """Of the function with its brace in line i."""
    start = i - 1
    while start > 0 and lines[start].startswith(" "):
        start -= 1
    name = re.match(r"(\w+)\(", lines[start])
    if not name:
        fault(start, "a function's name is in the first column")
        return
    if not re.match(r"(?:static )?[\w ]+\**$", lines[start - 1]):
        fault(start, "no return type before the function's name")
        return
    above = start - 2
    if raw[above] == "" and raw[above - 1].endswith("*/"):
        above -= 2
        while above > 0 and not raw[above + 1].startswith("/*"):
            above -= 1
    in_condition = raw[above] == "" and re.match("#(if|el)", raw[above - 1])
    if not in_condition and (
        raw[above] or raw[above - 1] or raw[above - 2] == ""
    ):
        fault(start - 1, "not two empty lines before a function")
    if lines[start - 1].startswith("static "):
        prototype = r"static [\w ]+ \**%s\(" % name.group(1)
        if not any(re.match(prototype, line) for line in lines[:start]):
            fault(start, "no prototype of " + name.group(1))


def check_locals(lines, i, fault):
    """Declarations after the brace in line i are aligned and sorted, and an
    empty line follows."""
    column = None
    longest = 0
    j = i + 1
    while j < len(lines):
        found = re.match(
            r"    ((?:static |const |struct |unsigned )*\w+)( +)(\**)"
            r"([a-z]\w*)(\[.*\])?"
            r"((?:, \**[a-z]\w*(\[.*\])?)*)( = .*)?;$",
            lines[j],
        )
        if lines[j].startswith("#"):
            j += 1
            continue
        if not found or found.group(1) in ("return", "goto"):
            break
        where = found.start(4)
        if column is not None and where != column:
            fault(j, "locals are not aligned")
        if len(found.group(2)) < 2 - len(found.group(3)):
            fault(j, "less than two columns between type and name")
        column = where
        # as NGINX does it, more or less: a star may count or not
        length = len(found.group(1))
        if length + 2 < longest:
            fault(j, "locals are not sorted by length of type")
        longest = max(longest, length)
        j += 1
    if column is not None and lines[j].strip():
        fault(j, "no empty line after the locals")


def check_statements(lines, fault):
    for i, line in enumerate(lines):
        body = re.match(r"( +)(?:if|for|while) \(.*\)$", line)
        braced = lines[i + 1 : i + 2] and lines[i + 1].strip() == "{"
        if body and not braced and line.count("(") == line.count(")"):
            fault(i, "no braces")


def check_logs(text, fault):
    for match in re.finditer(
        r'\bngx_(?:conf_)?log_(?:error|debug\d)\([^;"]*"([A-Z][a-z])', text
    ):
        fault(text.count("\n", 0, match.start(1)), "log text in upper case")


GOOD = r'''
/*
 * Copyright (C) somebody, see http://example.com/a,b
 */


#include <ngx_config.h>


typedef struct {
    ngx_str_t   path;
    unsigned    late:1;
} ngx_http_zstd_sample_t;


struct ngx_http_zstd_sample_s {
    ngx_uint_t  n;
};


static ngx_int_t ngx_http_zstd_first(ngx_http_request_t *r,
    ngx_uint_t flags);
static void ngx_http_zstd_second(void);
#if (NGX_PCRE)
static void ngx_http_zstd_third(void);
#endif


static ngx_int_t
ngx_http_zstd_first(ngx_http_request_t *r, ngx_uint_t flags)
{
    u_char           *p, c;
    ngx_uint_t        n;
    ngx_table_elt_t  *h;

    n = (ngx_uint_t) flags;

    for ( ;; ) {

        if (h == NULL && (size_t) n > sizeof(ngx_str_t)) {
            break;

        } else if (n > 1
                   && n < 2)
        {
            return NGX_OK;

        } else {
            n++;
        }
    }

    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                  "\"%V\" is not, // served", &r->uri);

    return NGX_OK;
}


/* a comment, "with this" */

static void
ngx_http_zstd_second(void)
{
    ngx_http_zstd_first(NULL, 1);
}


#if (NGX_PCRE)

static void
ngx_http_zstd_third(void)
{
    if (ngx_http_zstd_first(NULL, 2) == NGX_OK)
    {
        return;
    }
}

#endif


void
ngx_http_zstd_last(void)
{
    ngx_http_zstd_second();
}
'''

# A fault: what is replaced in the sample, by what, and what is then said.
FAULTS = [
    ("\n/*\n * Copy", "/*\n * Copy", "a file begins with"),
    ("_second();\n}\n", "_second();\n}\n\n", "a file ends with"),
    ("_second();\n}\n", "_second();\n}", "a file ends with"),
    ("    n = (ngx", "\tn = (ngx", "tab"),
    ("n++;", "n++; ", "space at the end"),
    ("n++;", "n" + " " * 80 + "++;", "more than 80"),
    ("n++;", "n++;  // why", "// comment"),
    ("if (h", "if(h", "no space after a keyword"),
    ("sizeof(", "sizeof (", "space after sizeof"),
    ("for ( ;; )", "for (;;)", "an endless loop"),
    ("for ( ;; )", "for (; ;)", "an endless loop"),
    (" > 1\n                   && n", " > 1 &&\n                   n",
     "begins with the operator"),
    ("            break;\n\n        } else if", "            break;\n        "
     "} else if", "no empty line before an else"),
    ("        } else {", "        }\n        else {", "an else is } else {"),
    ("< 2)\n        {", "< 2) {", "the brace of a wrapped"),
    ("for ( ;; ) {", "for ( ;; ){", "no space before a brace"),
    ("(ngx_uint_t) flags", "(ngx_uint_t)flags", "no space after a cast"),
    ("(size_t) n", "(size_t)n", "no space after a cast"),
    ("ngx_http_request_t *r,\n", "ngx_http_request_t* r,\n", "the star"),
    ("NULL, 1", "NULL,1", "no space after a comma"),
    ("        if (h", "       if (h", "indented by 7"),
    ("h == NULL", "NULL == h", "constant before"),
    ("} ngx_http_zstd_sample_t", "} ngx_http_zstd_sample", "a type ends"),
    ("struct ngx_http_zstd_sample_s", "struct ngx_http_zstd_sample",
     "the name of a struct"),
    ("}\n\n\n/* a", "}\n\n/* a", "not two empty lines after"),
    ("}\n\n\n/* a", "}\n\n\n\n/* a", "not two empty lines after"),
    ("endif\n\n\nstatic ngx_int_t\n", "endif\n\nstatic ngx_int_t\n",
     "not two empty lines before"),
    ("static void\nngx", "static void ngx", "the return type is on"),
    ("static void\nngx_http_zstd_second(void)\n{", "static void "
     "ngx_http_zstd_second(void) {", "the return type is on"),
    ("static void\nngx", "static void\n ngx", "a function's name"),
    ("static void ngx_http_zstd_second(void);\n", "", "no prototype of"),
    ("    ngx_uint_t        n;", "    ngx_uint_t   n;", "not aligned"),
    ("    u_char           *p, c;\n    ngx_uint_t        n;\n    "
     "ngx_table_elt_t  *h;\n", "    ngx_table_elt_t  *h;\n    "
     "u_char           *p, c;\n", "not sorted"),
    ("*h;\n\n    n =", "*h;\n    n =", "no empty line after the locals"),
    ("    n = (ngx", "    if (n)\n        n = (ngx", "no braces"),
    ('"\\"%V\\" is', '"File is', "log text"),
]


def self_test():
    assert check(GOOD) == [], check(GOOD)
    for old, new, said in FAULTS:
        assert GOOD.count(old) >= 1, old
        bad = GOOD.replace(old, new, 1)
        found = [what for _, what in check(bad)]
        assert any(said in what for what in found), (said, found)


def main(paths):
    self_test()
    assert paths, "no files"
    failed = False
    for path in paths:
        with open(path, encoding="utf-8") as f:
            for line, what in check(f.read()):
                print("%s:%d: %s" % (path, line, what))
                failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
