CREATE TABLE store (
    version bigint NOT NULL
);

CREATE TABLE runs (
    id         text COLLATE "C" PRIMARY KEY,
    began_at   bigint NOT NULL,
    ended_at   bigint,
    model      text NOT NULL,
    request    text NOT NULL,
    options    text NOT NULL,
    outcome    text,
    conditions text NOT NULL,
    claim      bigint NOT NULL DEFAULT 1,
    answer     text
);

CREATE TABLE steps (
    run    text COLLATE "C" NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    number bigint NOT NULL,
    body   text NOT NULL,
    PRIMARY KEY (run, number)
);

CREATE TABLE keys (
    key    bytea PRIMARY KEY,
    digest text NOT NULL,
    run    text COLLATE "C" NOT NULL REFERENCES runs (id) ON DELETE CASCADE
);

CREATE TABLE strategy_results (
    key     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      bigint NOT NULL,
    server  text COLLATE "C" NOT NULL,
    model   text COLLATE "C" NOT NULL,
    results text NOT NULL
);

CREATE INDEX strategy_results_by_model ON strategy_results (server, model, key);
