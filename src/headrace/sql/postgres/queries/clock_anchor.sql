UPDATE {schema}.clock SET anchor = coalesce(anchor, %(anchor)s) RETURNING anchor, skew
