-- +goose Up
-- Times are milliseconds since 1970, UTC; the harness's clock gives them.
CREATE TABLE sessions (
    id             TEXT    NOT NULL PRIMARY KEY,
    environment_id TEXT    NOT NULL DEFAULT '',
    title          TEXT    NOT NULL DEFAULT '',
    status         TEXT    NOT NULL,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL
) STRICT;

-- seq is the order of arrival. session_id refers to no table: work may arrive
-- for a session that this harness has not been told of. environment_id is the
-- session's, copied so that a claim for one environment need not walk the others'.
-- payload and result come last: most statements never read that far.
CREATE TABLE work_items (
    seq            INTEGER PRIMARY KEY,
    id             TEXT    NOT NULL UNIQUE,
    session_id     TEXT    NOT NULL,
    environment_id TEXT    NOT NULL DEFAULT '',
    kind           TEXT    NOT NULL,
    status         TEXT    NOT NULL CHECK (status IN ('queued', 'accepted', 'applied', 'failed', 'unknown')),
    created_at     INTEGER NOT NULL,
    claimed_by     TEXT,
    claimed_at     INTEGER,
    lease_until    INTEGER,
    accepted_at    INTEGER,
    stopped_at     INTEGER,
    completed_at   INTEGER,
    abandoned_at   INTEGER,
    payload        TEXT    NOT NULL,
    result         TEXT
) STRICT;

-- What can still be claimed, swept or stopped: small, however much has finished.
CREATE INDEX work_items_open ON work_items (status, seq)
    WHERE stopped_at IS NULL AND completed_at IS NULL;
CREATE INDEX work_items_open_environment ON work_items (environment_id, status, seq)
    WHERE stopped_at IS NULL AND completed_at IS NULL;
CREATE INDEX work_items_open_session ON work_items (session_id, status, seq)
    WHERE stopped_at IS NULL AND completed_at IS NULL;

-- An environment's newest items, and its counts by status, read from here alone.
CREATE INDEX work_items_environment ON work_items (environment_id, seq, status, claimed_by);

-- +goose Down
DROP TABLE work_items;
DROP TABLE sessions;
