-- +goose Up

-- What was shown with an item before a decision, as JSON, and the payload that
-- an operator put in the item's place.
ALTER TABLE holds ADD COLUMN shown TEXT NOT NULL DEFAULT '';
ALTER TABLE holds ADD COLUMN edited BLOB;

-- Permissions that an operator gave for a session, as JSON.
CREATE TABLE grants (
  id    TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

-- +goose Down
DROP TABLE grants;
ALTER TABLE holds DROP COLUMN edited;
ALTER TABLE holds DROP COLUMN shown;
