PRAGMA threads=4; PRAGMA cache_size=50;
CREATE TABLE t(a INTEGER, b TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<60000) INSERT INTO t SELECT (i*7919)%60013, hex(i*i) FROM n;
CREATE INDEX by_b ON t(b, a);
SELECT count(*), sum(a), min(b), max(b) FROM t;
SELECT a FROM t ORDER BY b DESC LIMIT 3;
PRAGMA integrity_check;
