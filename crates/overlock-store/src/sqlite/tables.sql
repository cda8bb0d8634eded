CREATE TABLE runs (
    id         TEXT PRIMARY KEY,
    began_at   INTEGER NOT NULL,
    ended_at   INTEGER,
    model      TEXT NOT NULL,
    request    TEXT NOT NULL,
    options    TEXT NOT NULL,
    outcome    TEXT,
    conditions TEXT NOT NULL,
    claim      INTEGER NOT NULL DEFAULT 1,
    answer     TEXT
) STRICT;

CREATE TABLE steps (
    run    TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    body   TEXT NOT NULL,
    PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE keys (
    key    TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    run    TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE strategy_results (
    key     INTEGER PRIMARY KEY,
    server  TEXT NOT NULL,
    model   TEXT NOT NULL,
    at      INTEGER NOT NULL,
    results TEXT NOT NULL
) STRICT;

CREATE INDEX strategy_results_by_model ON strategy_results (server, model, key);
