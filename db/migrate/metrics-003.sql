-- Sums of points, so that a chart of many of them reads few rows: see db/sums.h.
ALTER TABLE series ADD COLUMN sum_bits INTEGER NOT NULL DEFAULT -1; -- the finest sums are of 2^sum_bits steps; -1: there are none yet
ALTER TABLE series ADD COLUMN summed_until INTEGER NOT NULL DEFAULT 0; -- sums of earlier steps are true, others are not
ALTER TABLE series ADD COLUMN unsummed INTEGER NOT NULL DEFAULT 0; -- points stored since points were summed
UPDATE series SET unsummed = points_count;

CREATE TABLE sums (
    series   INTEGER NOT NULL,
    level    INTEGER NOT NULL,   -- from 1: of 2^(sum_bits + 2 (level - 1)) steps
    start    INTEGER NOT NULL,   -- the first of them
    step     INTEGER NOT NULL,   -- of the last point
    wall_us  INTEGER NOT NULL,   -- of the last point
    least    REAL,               -- NULL: not a number
    greatest REAL,
    value    REAL,               -- of the last point
    count    INTEGER NOT NULL,   -- of points
    PRIMARY KEY (series, level, start)
) STRICT, WITHOUT ROWID;
