CREATE TABLE repositories (
    key    INTEGER PRIMARY KEY,
    name   TEXT NOT NULL UNIQUE,
    folder TEXT
) STRICT;

CREATE TABLE files (
    key         INTEGER PRIMARY KEY,
    repository  INTEGER NOT NULL REFERENCES repositories (key),
    path        TEXT NOT NULL,
    hash        TEXT NOT NULL,
    is_resolved INTEGER NOT NULL,
    imports     TEXT NOT NULL,
    UNIQUE (repository, path)
) STRICT;

CREATE INDEX files_to_resolve ON files (repository) WHERE NOT is_resolved;

-- The text comes last, so that queries for other columns do not read it.
CREATE TABLE nodes (
    key        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    file       INTEGER NOT NULL,
    parent     INTEGER,
    last_name  INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    name       TEXT NOT NULL,
    qualified  TEXT NOT NULL,
    language   TEXT NOT NULL,
    first_line INTEGER NOT NULL,
    last_line  INTEGER NOT NULL,
    first_byte INTEGER NOT NULL,
    last_byte  INTEGER NOT NULL,
    metadata   TEXT NOT NULL,
    text       TEXT NOT NULL
) STRICT;

CREATE INDEX nodes_by_file ON nodes (file);

-- Contains all columns that resolving a mention needs, so that it does not read the table.
CREATE INDEX nodes_by_name ON nodes (last_name, id, kind, qualified);

-- The words of nodes; the texts themselves are in `nodes`.
CREATE VIRTUAL TABLE words USING fts5 (place, name, body, content='', contentless_delete=1, tokenize='ascii');

-- Mentions are numbered within their file, from 1.
CREATE TABLE mentions (
    node      INTEGER NOT NULL,
    number    INTEGER NOT NULL,
    kind      INTEGER NOT NULL,
    is_near   INTEGER NOT NULL,
    last_name INTEGER NOT NULL,
    name      TEXT NOT NULL,
    PRIMARY KEY (node, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX mentions_by_name ON mentions (last_name);

-- Names that were added or removed since their mentions were resolved.
CREATE TABLE changed_names (
    repository INTEGER NOT NULL,
    last_name  INTEGER NOT NULL,
    PRIMARY KEY (repository, last_name)
) STRICT, WITHOUT ROWID;

-- Several mentions of the source can have the same target; the edge exists until all are removed. The
-- kind `contains` has no mention: number 0.
CREATE TABLE edges (
    source  INTEGER NOT NULL,
    kind    INTEGER NOT NULL,
    target  INTEGER NOT NULL,
    mention INTEGER NOT NULL,
    PRIMARY KEY (source, kind, target, mention)
) STRICT, WITHOUT ROWID;

CREATE INDEX edges_by_target ON edges (target, kind);

-- `changes` counts the changes to the vectors of a model, to invalidate cached codes.
CREATE TABLE models (
    key     INTEGER PRIMARY KEY,
    name    TEXT NOT NULL UNIQUE,
    numbers INTEGER NOT NULL,
    changes INTEGER NOT NULL
) STRICT;

CREATE TABLE codes (
    model INTEGER NOT NULL,
    node  INTEGER NOT NULL,
    code  BLOB NOT NULL,
    PRIMARY KEY (model, node)
) STRICT, WITHOUT ROWID;

CREATE TABLE vectors (
    model  INTEGER NOT NULL,
    node   INTEGER NOT NULL,
    vector BLOB NOT NULL,
    UNIQUE (model, node)
) STRICT;

CREATE TABLE messages (
    room   TEXT NOT NULL,
    number INTEGER NOT NULL,
    sender TEXT NOT NULL,
    role   TEXT NOT NULL,
    at     INTEGER NOT NULL,
    text   TEXT NOT NULL,
    PRIMARY KEY (room, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE memories (
    key        INTEGER PRIMARY KEY,
    persona    TEXT NOT NULL,
    importance REAL NOT NULL,
    at         INTEGER NOT NULL,
    text       TEXT NOT NULL
) STRICT;

CREATE INDEX memories_by_importance ON memories (persona, importance DESC, at DESC);
