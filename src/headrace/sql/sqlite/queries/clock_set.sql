INSERT INTO headrace_clock (one, boot, anchor, skew) VALUES (1, :boot, :anchor, :skew)
ON CONFLICT (one) DO UPDATE SET boot = excluded.boot, anchor = excluded.anchor, skew = excluded.skew
