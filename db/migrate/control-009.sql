-- Each entry of the audit has the hash of itself and of the one before: see db/audit.h.  NULL: of before there were hashes.
ALTER TABLE audit ADD COLUMN hash BLOB;
