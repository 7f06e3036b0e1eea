-- 1: somebody removed the node, and it has not come back.
ALTER TABLE nodes ADD COLUMN removed INTEGER NOT NULL DEFAULT 0 CHECK (removed IN (0, 1));
-- When it was removed last this was the newest token: none up to it, and no certificate that came of
-- one, lets a node of this name in.
ALTER TABLE nodes ADD COLUMN refused_token INTEGER NOT NULL DEFAULT 0;
