-- +goose Up

-- Bodies of work items, kept byte for byte and apart from the rows that move,
-- so that a step of an item with a large body rewrites only a few bytes.
CREATE TABLE payloads (
  id    INTEGER PRIMARY KEY,
  brief BLOB, -- a short stand-in for lists, where body is large
  body  BLOB  -- NULL where the claim answer had none
);

-- One row per item of a harness. What happened to the item itself is here, once,
-- however many holds there are of it.
CREATE TABLE items (
  id        INTEGER PRIMARY KEY,
  origin    TEXT NOT NULL,
  item_id   TEXT NOT NULL,
  kind      TEXT NOT NULL,
  payload   INTEGER NOT NULL REFERENCES payloads (id),
  execution TEXT NOT NULL DEFAULT 'not started' CHECK (execution IN
            ('not started', 'starting', 'finished', 'stopped', 'could not start', 'interrupted')),
  outcome   TEXT, -- JSON without the result
  result    BLOB, -- what complete carries
  UNIQUE (origin, item_id)
);

-- One row per claim answer. Times are microseconds since 1970, UTC.
CREATE TABLE holds (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  item         INTEGER NOT NULL REFERENCES items (id),
  payload      INTEGER NOT NULL REFERENCES payloads (id), -- the item's, unless it came with another
  connection   TEXT NOT NULL,
  environment  TEXT NOT NULL,
  worker_id    TEXT NOT NULL,
  session      TEXT NOT NULL,
  kind         TEXT NOT NULL,
  created_at   INTEGER,
  claimed_at   INTEGER,
  claim_status TEXT NOT NULL,
  digest       TEXT NOT NULL,
  work_dir     TEXT NOT NULL,
  output_path  TEXT NOT NULL,
  returned     INTEGER NOT NULL,
  opened_at    INTEGER,
  decision     TEXT NOT NULL,
  decided_by   TEXT NOT NULL,
  words        TEXT NOT NULL,
  acceptance   TEXT NOT NULL,
  refusal      TEXT NOT NULL,
  delivery     TEXT NOT NULL,
  closed       INTEGER NOT NULL,
  status       TEXT NOT NULL -- the accept status, for the history's filter
);
CREATE INDEX holds_item ON holds (item);
CREATE INDEX holds_session ON holds (session);
CREATE INDEX holds_status ON holds (status);
CREATE INDEX holds_kind ON holds (kind);
CREATE INDEX holds_opened_at ON holds (opened_at);
CREATE INDEX holds_unfinished ON holds (id) WHERE closed = 0;

-- The journal: what happened, and the facts as they were from then on.
CREATE TABLE entries (
  id         INTEGER PRIMARY KEY,
  hold       INTEGER NOT NULL REFERENCES holds (id),
  at         INTEGER,
  step       TEXT NOT NULL,
  reason     TEXT NOT NULL,
  decision   TEXT NOT NULL,
  decided_by TEXT NOT NULL,
  words      TEXT NOT NULL,
  acceptance TEXT NOT NULL,
  refusal    TEXT NOT NULL,
  execution  TEXT NOT NULL,
  delivery   TEXT NOT NULL,
  closed     INTEGER NOT NULL
);
CREATE INDEX entries_hold ON entries (hold);

CREATE TABLE settings (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

-- docid is the number of the hold; newest first is the order of every list.
CREATE VIRTUAL TABLE search USING fts4 (asked, output, session, tokenize=unicode61, order=desc);

-- The last line of defence of "nothing runs twice": an execution only moves
-- forward, whatever statement asks for something else.
-- +goose StatementBegin
CREATE TRIGGER items_execution BEFORE UPDATE OF execution ON items
WHEN NOT (NEW.execution = OLD.execution
  OR (OLD.execution = 'not started' AND NEW.execution = 'starting')
  OR (OLD.execution = 'starting' AND NEW.execution <> 'not started'))
BEGIN
  SELECT RAISE(ABORT, 'an execution only moves forward');
END;
-- +goose StatementEnd

-- +goose Down
DROP TABLE search;
DROP TABLE settings;
DROP TABLE entries;
DROP TABLE holds;
DROP TABLE items;
DROP TABLE payloads;
