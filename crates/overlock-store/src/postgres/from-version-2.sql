CREATE TABLE strategy_results (
    key     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      bigint NOT NULL,
    server  text COLLATE "C" NOT NULL,
    model   text COLLATE "C" NOT NULL,
    results text NOT NULL
);

CREATE INDEX strategy_results_by_model ON strategy_results (server, model, key);
