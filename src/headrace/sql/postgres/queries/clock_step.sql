UPDATE {schema}.clock SET skew = skew + %(change)s WHERE skew = %(skew)s
