-- A name may be longer than what an index takes, its digest is not.
ALTER TABLE repositories ADD COLUMN folder text, ADD COLUMN digest bytea;
UPDATE repositories SET digest = sha256(convert_to(name, 'UTF8'));
ALTER TABLE repositories ALTER COLUMN digest SET NOT NULL,
    DROP CONSTRAINT repositories_name_key, ADD UNIQUE (digest);

ALTER TABLE models ADD COLUMN digest bytea;
UPDATE models SET digest = sha256(convert_to(name, 'UTF8'));
ALTER TABLE models ALTER COLUMN digest SET NOT NULL,
    DROP CONSTRAINT models_name_key, ADD UNIQUE (digest);

ALTER TABLE messages ADD COLUMN digest bytea;
UPDATE messages SET digest = sha256(convert_to(room, 'UTF8'));
ALTER TABLE messages DROP CONSTRAINT messages_pkey, ADD PRIMARY KEY (digest, number);

ALTER TABLE memories ADD COLUMN digest bytea;
UPDATE memories SET digest = sha256(convert_to(persona, 'UTF8'));
ALTER TABLE memories ALTER COLUMN digest SET NOT NULL;
DROP INDEX memories_by_importance;
CREATE INDEX memories_by_importance ON memories (digest, importance DESC, at DESC, key DESC);

-- Of a path with a character that is written otherwise it was that of the path as it was given.
UPDATE files SET digest = sha256(convert_to(path, 'UTF8')) WHERE strpos(path, chr(1114111)) > 0;

ALTER TABLE keys DROP CONSTRAINT keys_pkey;
ALTER TABLE keys ALTER COLUMN key TYPE bytea USING sha256(convert_to(key, 'UTF8'));
ALTER TABLE keys ADD PRIMARY KEY (key);

-- What a file of sources imports.
ALTER TABLE files ADD COLUMN imports text NOT NULL DEFAULT '';
