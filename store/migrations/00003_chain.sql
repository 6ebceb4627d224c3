-- +goose Up

-- Each entry carries a hash over itself, what it is about, and the hash of the one
-- before. Entries that are older than this have none.
ALTER TABLE entries ADD COLUMN evidence BLOB; -- SHA-256 of what the entry is about, kept elsewhere
ALTER TABLE entries ADD COLUMN hash BLOB;

-- What was written down stays as it was.
-- +goose StatementBegin
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
BEGIN
  SELECT RAISE(ABORT, 'a journal entry stays as it was written');
END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER entries_stay;
ALTER TABLE entries DROP COLUMN hash;
ALTER TABLE entries DROP COLUMN evidence;
