# Read by nginx's configure when the list of modules is complete: what the build
# files of other modules did to it later must not have broken the order that is
# described in "config".

ngx_zstd_seen=

for ngx_zstd_mod in $modules; do
    case $ngx_zstd_mod in

        ngx_http_zstd_last_module)
            ngx_zstd_seen=yes
        ;;

        ngx_http_gzip_filter_module | ngx_http_brotli_filter_module)
            case " $modules " in *" ngx_http_zstd_last_module "*)
                if [ -z "$ngx_zstd_seen" ]; then
                    cat << END

$0: error: $ngx_zstd_mod stands before ngx_http_zstd_last_module.
Give the --add-module of the zstd modules after that of brotli's.

END
                    exit 1
                fi
            esac
        ;;

    esac
done
