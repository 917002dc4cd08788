-- Times are milliseconds since the epoch (UTC), days are days since it, and a month is its first
-- millisecond. Numbers of accounts and tokens are towebp's own. Where a time or a limit of 0 means
-- "none", the column's comment says so.

CREATE TABLE IF NOT EXISTS accounts (
    id BIGINT PRIMARY KEY,
    email TEXT NOT NULL UNIQUE,
    created BIGINT NOT NULL,
    last_serial BIGINT NOT NULL, -- the last serial number of its tokens
    password TEXT                -- a PHC string; NULL if the account cannot sign in
);

CREATE TABLE IF NOT EXISTS tokens (
    account BIGINT NOT NULL,
    number BIGINT NOT NULL,          -- 0 is the one named "default"
    created BIGINT NOT NULL,
    ends BIGINT NOT NULL,            -- 0: never
    previous_ends BIGINT NOT NULL,   -- 0: the previous serial number does not work
    monthly BIGINT NOT NULL,         -- conversions a month; 0: any number
    deleted BIGINT NOT NULL,         -- 0: it is not
    serial BIGINT NOT NULL,
    previous_serial BIGINT NOT NULL,
    per_minute BIGINT NOT NULL,      -- conversions a minute; 0: any number
    name TEXT NOT NULL,
    preset TEXT NOT NULL,
    PRIMARY KEY (account, number)
);

CREATE TABLE IF NOT EXISTS restrictions (
    account BIGINT PRIMARY KEY,
    disabled BIGINT NOT NULL, -- since when; 0: it is not
    monthly BIGINT,           -- NULL: the server's limit; 0: any number
    per_minute BIGINT
);

CREATE TABLE IF NOT EXISTS invites (
    code BYTEA PRIMARY KEY, -- a hash
    ends BIGINT NOT NULL
);

CREATE TABLE IF NOT EXISTS sessions (
    cookie BYTEA PRIMARY KEY, -- a hash
    account BIGINT NOT NULL,
    created BIGINT NOT NULL,
    used BIGINT NOT NULL,
    ends BIGINT NOT NULL,
    latest BIGINT NOT NULL,
    browser TEXT NOT NULL,
    network TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS sessions_of_account ON sessions (account);
CREATE INDEX IF NOT EXISTS sessions_by_end ON sessions (ends);

CREATE TABLE IF NOT EXISTS attempts (
    key BYTEA PRIMARY KEY, -- an HMAC of an e-mail address and where the attempt came from
    failures BIGINT NOT NULL,
    last BIGINT NOT NULL
);

CREATE TABLE IF NOT EXISTS usage (
    account BIGINT NOT NULL,
    id UUID NOT NULL, -- version 7; orders the history
    time BIGINT NOT NULL,
    token BIGINT NOT NULL,
    input_bytes BIGINT NOT NULL,
    output_bytes BIGINT NOT NULL,
    width BIGINT NOT NULL,
    height BIGINT NOT NULL,
    milliseconds BIGINT NOT NULL,
    quality SMALLINT NOT NULL,
    watermark SMALLINT NOT NULL, -- 0 none, 1 text, 2 picture, 3 both
    format TEXT NOT NULL,
    PRIMARY KEY (account, id)
);

-- Sums over all entries that there have ever been, and between which keys of the history they are:
-- that is how a page of few of them is found.
CREATE TABLE IF NOT EXISTS usage_days (
    account BIGINT NOT NULL,
    day BIGINT NOT NULL,
    token BIGINT NOT NULL,
    format TEXT NOT NULL,
    conversions BIGINT NOT NULL,
    input_bytes BIGINT NOT NULL,
    output_bytes BIGINT NOT NULL,
    first_key BIGINT NOT NULL, -- the milliseconds in the least key
    last_key BIGINT NOT NULL,  -- and in the greatest one
    PRIMARY KEY (account, day, token, format)
);

CREATE TABLE IF NOT EXISTS usage_months (
    account BIGINT NOT NULL,
    month BIGINT NOT NULL,
    token BIGINT NOT NULL, -- -1: all tokens together
    conversions BIGINT NOT NULL,
    input_bytes BIGINT NOT NULL,
    output_bytes BIGINT NOT NULL,
    last_used BIGINT NOT NULL,
    PRIMARY KEY (account, month, token)
);

-- Sums over the entries that were removed from histories.
CREATE TABLE IF NOT EXISTS usage_removed (
    account BIGINT PRIMARY KEY,
    conversions BIGINT NOT NULL,
    input_bytes BIGINT NOT NULL,
    output_bytes BIGINT NOT NULL
);

CREATE TABLE IF NOT EXISTS failures (
    account BIGINT NOT NULL,
    id UUID NOT NULL,
    time BIGINT NOT NULL,
    input_bytes BIGINT NOT NULL,
    token BIGINT NOT NULL,
    status BIGINT NOT NULL,
    code TEXT NOT NULL,
    PRIMARY KEY (account, id)
);

-- Accounts that are deleted and whose histories are not removed yet.
CREATE TABLE IF NOT EXISTS deletions (
    account BIGINT PRIMARY KEY
);

CREATE TABLE IF NOT EXISTS replicas (
    id UUID PRIMARY KEY,
    seen BIGINT NOT NULL -- by the engine's clock
);
