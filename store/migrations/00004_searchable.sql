-- +goose Up

-- The last entry of the journal whose hold can be searched for as it was then: the
-- search follows the journal, and no step of an item waits for it.
CREATE TABLE searchable (through INTEGER NOT NULL);
INSERT INTO searchable (through) SELECT COALESCE(MAX(id), 0) FROM entries;

-- +goose Down
DROP TABLE searchable;
