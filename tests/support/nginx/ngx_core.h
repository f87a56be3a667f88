#ifndef NGX_CORE_H
#define NGX_CORE_H

typedef struct ngx_list_s ngx_list_t;
typedef struct ngx_list_part_s ngx_list_part_t;
typedef struct ngx_table_elt_s ngx_table_elt_t;

#endif
