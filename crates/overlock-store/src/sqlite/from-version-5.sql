CREATE TABLE strategy_results (
    key     INTEGER PRIMARY KEY,
    server  TEXT NOT NULL,
    model   TEXT NOT NULL,
    at      INTEGER NOT NULL,
    results TEXT NOT NULL
) STRICT;

CREATE INDEX strategy_results_by_model ON strategy_results (server, model, key);
