// The SQL statements of the migrations to the versions 2 and 1.

// MARK: - Version 2

extension QueueSchema {
    private static let contentColumns = """
        priority INTEGER NOT NULL DEFAULT 5,
        created_at INTEGER NOT NULL,
        -- The time to live in milliseconds; setting the wall clock does not change it.
        life INTEGER NOT NULL,
        -- The time at which the request expires, by the wall clock.
        expire_at INTEGER NOT NULL,
        -- The same time by the boot clock, and the number of the boot to which that clock belongs.
        boot INTEGER NOT NULL,
        boot_expire_at INTEGER NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0,
        deferrals INTEGER NOT NULL DEFAULT 0,
        maximum_attempts INTEGER,
        method TEXT NOT NULL,
        url TEXT NOT NULL,
        headers TEXT NOT NULL,
        -- The bytes that count towards the limits.
        size INTEGER NOT NULL,
        body_bytes INTEGER NOT NULL,
        body_file TEXT,
        body_sha256 TEXT,
        key_header TEXT,
        key_value TEXT,
        key_quoted INTEGER NOT NULL DEFAULT 0,
        at_most_once INTEGER NOT NULL DEFAULT 0,
        replace_key TEXT,
        expectation TEXT,
        last_status INTEGER,
        last_error TEXT,
        CHECK ((body_file IS NULL) = (body_sha256 IS NULL)),
        CHECK ((key_header IS NULL) = (key_value IS NULL))
        """

    static let version2 = """
        ALTER TABLE meta ADD COLUMN is_paused INTEGER NOT NULL DEFAULT 0;
        -- boot_id: the kernel's id of the last known boot. boot: the number of boots so far, which rows refer to.
        ALTER TABLE meta ADD COLUMN boot_id TEXT NOT NULL DEFAULT '';
        ALTER TABLE meta ADD COLUMN boot INTEGER NOT NULL DEFAULT 0;
        -- The wall clock minus the boot clock. It changes when the wall clock is set.
        ALTER TABLE meta ADD COLUMN clock_offset INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE meta ADD COLUMN requests INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE meta ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE meta ADD COLUMN history_bytes INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE lane ADD COLUMN is_paused INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE lane ADD COLUMN requests INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE lane ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;

        ALTER TABLE request RENAME TO request1;
        ALTER TABLE history RENAME TO history1;
        ALTER TABLE body RENAME TO body1;
        DROP INDEX request_due;
        DROP INDEX request_order;
        DROP INDEX request_inflight;
        DROP INDEX request_held;

        CREATE TABLE request (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            lane_id INTEGER NOT NULL REFERENCES lane (id),
            state TEXT NOT NULL CHECK (state IN ('pending', 'blocked', 'inflight', 'held')),
            next_at INTEGER NOT NULL,
            -- The time for which the caller scheduled the request. Only such a time may be far in the future.
            scheduled_at INTEGER,
            lease_token TEXT,
            owner_epoch INTEGER,
            wish TEXT CHECK (wish IN ('cancel', 'hold')),
            hold_reason TEXT,
        \(contentColumns),
            CHECK ((state = 'inflight') = (lease_token IS NOT NULL)),
            CHECK ((state = 'inflight') = (owner_epoch IS NOT NULL)),
            CHECK (wish IS NULL OR state = 'inflight'),
            CHECK ((state = 'held') = (hold_reason IS NOT NULL))
        ) STRICT;
        CREATE INDEX request_due ON request (lane_id, priority, next_at, seq) WHERE state = 'pending';
        CREATE INDEX request_order ON request (lane_id, seq);
        CREATE INDEX request_inflight ON request (owner_epoch) WHERE state = 'inflight';
        CREATE INDEX request_held ON request (lane_id, hold_reason) WHERE state = 'held';
        CREATE INDEX request_blocked ON request (seq) WHERE state = 'blocked';
        CREATE INDEX request_expiry ON request (expire_at);
        CREATE INDEX request_sent ON request (lane_id, replace_key)
            WHERE replace_key IS NOT NULL AND state = 'inflight';
        CREATE UNIQUE INDEX request_replaced ON request (lane_id, replace_key)
            WHERE replace_key IS NOT NULL AND state <> 'inflight';

        CREATE INDEX request_file ON request (body_file) WHERE body_file IS NOT NULL;

        -- Bodies are in a separate table, so that a scan of the requests does not read their pages.
        CREATE TABLE body (
            seq INTEGER PRIMARY KEY,
            bytes BLOB NOT NULL
        ) STRICT;

        CREATE TABLE depends (
            seq INTEGER NOT NULL REFERENCES request (seq) ON DELETE CASCADE,
            on_seq INTEGER NOT NULL,
            -- Whether the request waits until the other one has ended in any way, instead of being delivered.
            is_any INTEGER NOT NULL DEFAULT 0,
            PRIMARY KEY (seq, on_seq)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX depends_on ON depends (on_seq);

        CREATE TABLE attempt (
            seq INTEGER NOT NULL,
            number INTEGER NOT NULL,
            started_at INTEGER NOT NULL,
            microseconds INTEGER NOT NULL,
            status INTEGER,
            curl_code INTEGER NOT NULL,
            error TEXT,
            PRIMARY KEY (seq, number)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE response (
            seq INTEGER PRIMARY KEY,
            status INTEGER NOT NULL,
            headers TEXT NOT NULL,
            body BLOB NOT NULL,
            is_truncated INTEGER NOT NULL
        ) STRICT;

        CREATE TABLE history (
            position INTEGER PRIMARY KEY AUTOINCREMENT,
            seq INTEGER NOT NULL UNIQUE,
            id TEXT NOT NULL UNIQUE,
            host TEXT NOT NULL,
            label TEXT NOT NULL,
            mode TEXT NOT NULL,
            state TEXT NOT NULL CHECK (state IN ('delivered', 'dead', 'cancelled', 'superseded')),
            finished_at INTEGER NOT NULL,
            -- is_whole: whether everything that a retry needs is kept. kept_bytes: its size, including the response.
            is_whole INTEGER NOT NULL,
            kept_bytes INTEGER NOT NULL,
        \(contentColumns)
        ) STRICT;
        CREATE INDEX history_age ON history (state, finished_at);
        CREATE INDEX history_file ON history (body_file) WHERE body_file IS NOT NULL AND is_whole = 1;

        INSERT INTO request (state, next_at, lease_token, owner_epoch, hold_reason,
            seq, id, lane_id, created_at, life, expire_at, boot, boot_expire_at, attempts, deferrals,
            method, url, headers, size, body_bytes, key_header, key_value, last_status, last_error)
        SELECT state, next_at, lease_token, owner_epoch, hold_reason,
            seq, id, lane_id, created_at, 604800000,
            -- Requests did not expire in version 1, so they get a full time to live now.
            max(created_at, 1000 * strftime('%s', 'now')) + 604800000, 0, 0, attempts, deferrals,
            method, url, headers, length(url) + length(headers) + ifnull(length(bytes), 0),
            ifnull(length(bytes), 0), iif(idempotency_key IS NULL, NULL, 'Idempotency-Key'), idempotency_key,
            last_status, last_error
        FROM request1 LEFT JOIN body1 USING (seq);
        INSERT INTO body SELECT seq, bytes FROM body1;
        -- Version 1 kept no bodies of dead requests.
        INSERT INTO history (position, state, finished_at, is_whole, kept_bytes,
            seq, id, host, label, mode, created_at, life, expire_at, boot, boot_expire_at, attempts, deferrals,
            method, url, headers, size, body_bytes, key_header, key_value, last_status, last_error)
        SELECT position, state, finished_at, 0, 0,
            seq, history1.id, host, label, mode, created_at, 604800000, created_at + 604800000, 0, 0, attempts, deferrals,
            method, url, '', length(url), 0, iif(idempotency_key IS NULL, NULL, 'Idempotency-Key'),
            idempotency_key, last_status, last_error
        FROM history1 JOIN lane ON lane.id = lane_id;

        -- Continues the sequence numbers, so that the number of a deleted row is not used again.
        DELETE FROM sqlite_sequence WHERE name = 'request';
        INSERT INTO sqlite_sequence (name, seq)
            SELECT 'request', ifnull(max(seq), 0) FROM sqlite_sequence WHERE name = 'request1';
        DROP TABLE body1;
        DROP TABLE request1;
        DROP TABLE history1;

        UPDATE lane SET (requests, bytes) =
            (SELECT count(*), ifnull(sum(size), 0) FROM request WHERE lane_id = lane.id);
        UPDATE meta SET (requests, bytes) = (SELECT count(*), ifnull(sum(size), 0) FROM request);

        -- The transaction that adds a request compares these counters with the limits.
        CREATE TRIGGER request_counted AFTER INSERT ON request BEGIN
            UPDATE lane SET requests = requests + 1, bytes = bytes + NEW.size WHERE id = NEW.lane_id;
            UPDATE meta SET requests = requests + 1, bytes = bytes + NEW.size;
        END;
        CREATE TRIGGER request_discounted AFTER DELETE ON request BEGIN
            UPDATE lane SET requests = requests - 1, bytes = bytes - OLD.size WHERE id = OLD.lane_id;
            UPDATE meta SET requests = requests - 1, bytes = bytes - OLD.size;
        END;
        CREATE TRIGGER history_counted AFTER INSERT ON history BEGIN
            UPDATE meta SET history_bytes = history_bytes + NEW.kept_bytes;
        END;
        CREATE TRIGGER history_discounted AFTER DELETE ON history BEGIN
            UPDATE meta SET history_bytes = history_bytes - OLD.kept_bytes;
        END;
        """
}

// MARK: - Version 1

extension QueueSchema {
    static let version1 = """
        CREATE TABLE meta (
            one INTEGER PRIMARY KEY CHECK (one = 1),
            owner_epoch INTEGER NOT NULL
        ) STRICT;
        INSERT INTO meta VALUES (1, 0);

        CREATE TABLE lane (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            scheme TEXT NOT NULL,
            host TEXT NOT NULL,
            port INTEGER NOT NULL,
            label TEXT NOT NULL,
            mode TEXT NOT NULL CHECK (mode IN ('parallel', 'fifo')),
            not_before INTEGER,
            UNIQUE (scheme, host, port, label, mode)
        ) STRICT;

        CREATE TABLE request (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            lane_id INTEGER NOT NULL REFERENCES lane (id),
            state TEXT NOT NULL CHECK (state IN ('pending', 'inflight', 'held')),
            next_at INTEGER NOT NULL,
            created_at INTEGER NOT NULL,
            attempts INTEGER NOT NULL DEFAULT 0,
            deferrals INTEGER NOT NULL DEFAULT 0,
            method TEXT NOT NULL,
            url TEXT NOT NULL,
            headers TEXT NOT NULL,
            idempotency_key TEXT,
            lease_token TEXT,
            owner_epoch INTEGER,
            hold_reason TEXT,
            last_status INTEGER,
            last_error TEXT,
            CHECK ((state = 'inflight') = (lease_token IS NOT NULL)),
            CHECK ((state = 'inflight') = (owner_epoch IS NOT NULL)),
            CHECK ((state = 'held') = (hold_reason IS NOT NULL))
        ) STRICT;
        CREATE INDEX request_due ON request (lane_id, next_at, seq) WHERE state = 'pending';
        CREATE INDEX request_order ON request (lane_id, seq);
        CREATE INDEX request_inflight ON request (owner_epoch) WHERE state = 'inflight';
        CREATE INDEX request_held ON request (lane_id, hold_reason) WHERE state = 'held';

        CREATE TABLE body (
            seq INTEGER PRIMARY KEY REFERENCES request (seq) ON DELETE CASCADE,
            bytes BLOB NOT NULL
        ) STRICT;

        CREATE TABLE history (
            position INTEGER PRIMARY KEY AUTOINCREMENT,
            seq INTEGER NOT NULL,
            id TEXT NOT NULL UNIQUE,
            lane_id INTEGER NOT NULL REFERENCES lane (id),
            state TEXT NOT NULL CHECK (state IN ('delivered', 'dead')),
            created_at INTEGER NOT NULL,
            finished_at INTEGER NOT NULL,
            attempts INTEGER NOT NULL,
            deferrals INTEGER NOT NULL,
            method TEXT NOT NULL,
            url TEXT NOT NULL,
            idempotency_key TEXT,
            last_status INTEGER,
            last_error TEXT
        ) STRICT;
        """
}
