-- +goose Up

-- The last entry of the journal whose hold can be searched for as it was then: the
-- search follows the journal, and no step of an item waits for it.
CREATE TABLE searchable (through INTEGER NOT NULL);
INSERT INTO searchable (through) SELECT COALESCE(
  (SELECT MIN(id) - 1 FROM entries WHERE hold > (SELECT COALESCE(MAX(docid), 0) FROM search)),
  (SELECT MAX(id) FROM entries), 0);

-- +goose Down
DROP TABLE searchable;
