internal import GRDB

/// The database schema. Each index has the order that its statement needs, so that a claim takes the same time in a
/// short queue and in a long one.
enum QueueSchema {
    /// The `application_id` of a queue's database, "nwqu" in ASCII. `file(1)` and this library identify the database by
    /// it.
    static let applicationID = 0x6e77_7175

    /// The schema's versions, oldest first. The migration to a version has its name; `user_version` is its number.
    private static let versions = [version1]

    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        for (version, sql) in zip(1..., versions) {
            migrator.registerMigration("v\(version)") { database in
                try database.execute(sql: sql)
                try database.execute(sql: "PRAGMA user_version = \(version)")
            }
        }
        return migrator
    }

    /// Returns whether a development version has written the database. Their migrations are named by numbers only.
    static func isOfDevelopmentVersion(_ database: Database) throws -> Bool {
        guard try database.tableExists("grdb_migrations") else { return false }
        return try database.row("SELECT 1 FROM grdb_migrations WHERE identifier NOT LIKE 'v%'") != nil
    }

    /// The columns of both `request` and `history` that no attempt changes.
    static let fixedContent = """
        seq, id, priority, created_at, life, expire_at, boot, boot_expire_at, method, url, content, key_id, size,
        body_bytes, body_file, body_key, is_repeatable, is_droppable, replace_key, credential, tag, submitter, options
        """

    /// The columns of both `request` and `history`. Options that SQL neither selects, orders nor counts by are in
    /// `options`.
    private static let contentColumns = """
        priority INTEGER NOT NULL,
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
        method TEXT NOT NULL,
        url TEXT NOT NULL,
        -- The header fields, the idempotency key and the SHA-256 of the body, in the format of `RequestContent`.
        content TEXT NOT NULL,
        -- The id of the key that encrypts `content` and the body; NULL if they are plaintext. Encrypted text is Base64.
        key_id TEXT,
        -- The bytes that count towards the limits.
        size INTEGER NOT NULL,
        body_bytes INTEGER NOT NULL,
        body_file TEXT,
        -- The key of the body's file, encrypted with the key `key_id`; NULL if the file is plaintext.
        body_key BLOB,
        -- Whether the server may receive the request twice without harm.
        is_repeatable INTEGER NOT NULL,
        -- Whether the request can make room for others: it has no webhook, and is none.
        is_droppable INTEGER NOT NULL,
        replace_key TEXT,
        -- The name of the credential that each attempt adds; NULL for none. The credential itself is never stored.
        credential TEXT,
        tag TEXT,
        -- The id of the user who enqueued the request; NULL if it was enqueued within the process.
        submitter INTEGER,
        -- The other options, in the format of `EnqueueOptions.stored`; NULL if all of them have their defaults.
        options TEXT,
        last_status INTEGER,
        last_error TEXT
        """

    private static let version1 = """
        CREATE TABLE meta (
            one INTEGER PRIMARY KEY CHECK (one = 1),
            owner_epoch INTEGER NOT NULL DEFAULT 0,
            is_paused INTEGER NOT NULL DEFAULT 0,
            -- boot_id: the kernel's id of the last known boot. boot: the number of boots so far, which rows refer to.
            boot_id TEXT NOT NULL DEFAULT '',
            boot INTEGER NOT NULL DEFAULT 0,
            -- The wall clock minus the boot clock. It changes when the wall clock is set.
            clock_offset INTEGER NOT NULL DEFAULT 0,
            -- The same when the kernel last reported the wall clock as synchronized during this boot; NULL if it did not.
            trusted_offset INTEGER,
            requests INTEGER NOT NULL DEFAULT 0,
            bytes INTEGER NOT NULL DEFAULT 0,
            history_bytes INTEGER NOT NULL DEFAULT 0,
            -- The id of the key that encrypted new rows last; NULL if the store was never encrypted.
            key_id TEXT
        ) STRICT;
        INSERT INTO meta (one) VALUES (1);

        CREATE TABLE lane (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            scheme TEXT NOT NULL,
            host TEXT NOT NULL,
            port INTEGER NOT NULL,
            label TEXT NOT NULL,
            mode TEXT NOT NULL CHECK (mode IN ('parallel', 'fifo')),
            -- The constraints of all requests of the lane, in the format of `RequestConstraints.description`.
            lane_constraints TEXT NOT NULL,
            -- The user who has submitted all requests of the lane; NULL if they have no submitter.
            lane_submitter INTEGER,
            -- The end of a closure by the wall clock, and by the clock of this boot, and the length of the closure in
            -- milliseconds; 0 after its end.
            not_before INTEGER,
            boot_not_before INTEGER NOT NULL DEFAULT 0,
            closure INTEGER NOT NULL DEFAULT 0,
            -- The status of the response whose `Retry-After` closed the lane.
            closed_by INTEGER,
            is_paused INTEGER NOT NULL DEFAULT 0,
            -- Whether the pause also applies to new lanes that differ only in their submitter.
            pauses_new INTEGER NOT NULL DEFAULT 0,
            requests INTEGER NOT NULL DEFAULT 0,
            bytes INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        -- In a UNIQUE constraint, two NULLs would be different.
        CREATE UNIQUE INDEX lane_key
            ON lane (scheme, host, port, label, mode, lane_constraints, ifnull(lane_submitter, -1));

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
            -- The time of the first of consecutive 409 responses, by the wall clock. A retry by a user resets it, and
            -- the next two.
            conflict_at INTEGER,
            -- The number of attempts that ended with a timeout while the server may still have executed them, and the
            -- time at which the server should be done with the last one.
            overruns INTEGER NOT NULL DEFAULT 0,
            busy_until INTEGER,
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
        CREATE INDEX request_credential ON request (credential)
            WHERE credential IS NOT NULL AND state = 'held' AND hold_reason = 'auth';
        -- Finds the requests of a lane that are held because of a credential.
        CREATE INDEX request_rejected ON request (lane_id, credential) WHERE state = 'held' AND hold_reason = 'auth';
        -- Finds the requests of a lane that may wait for others.
        CREATE INDEX request_waits ON request (lane_id, seq) WHERE state IN ('blocked', 'held');
        CREATE INDEX request_key ON request (key_id) WHERE key_id IS NOT NULL;
        CREATE INDEX request_tag ON request (tag) WHERE tag IS NOT NULL;
        CREATE INDEX request_submitter ON request (submitter) WHERE submitter IS NOT NULL;

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
            is_truncated INTEGER NOT NULL,
            -- The key that encrypts `headers` and `body`; NULL if they are plaintext.
            key_id TEXT
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
            -- The time `finished_at` by the boot clock, and the number of the boot to which that clock belongs.
            finished_boot INTEGER NOT NULL,
            boot_finished_at INTEGER NOT NULL,
            -- is_whole: whether everything that a retry needs is kept. kept_bytes: its size, including the response.
            is_whole INTEGER NOT NULL,
            kept_bytes INTEGER NOT NULL,
            -- The id of the webhook that reports this end; NULL if there is none.
            webhook_id TEXT,
        \(contentColumns)
        ) STRICT;
        CREATE INDEX history_age ON history (state, finished_at);
        CREATE INDEX history_file ON history (body_file) WHERE body_file IS NOT NULL AND is_whole = 1;
        CREATE INDEX history_key ON history (key_id) WHERE key_id IS NOT NULL;
        CREATE INDEX history_tag ON history (tag) WHERE tag IS NOT NULL;
        -- The oldest finished requests of each user in a state.
        CREATE INDEX history_submitter ON history (state, submitter, finished_at);

        -- The finished requests with a tag that no handler has handled yet. The triggers cover every way in which a
        -- request ends, is retried, or is removed from the history.
        CREATE TABLE completion (
            position INTEGER PRIMARY KEY AUTOINCREMENT,
            seq INTEGER NOT NULL UNIQUE,
            tag TEXT NOT NULL
        ) STRICT;
        CREATE INDEX completion_tag ON completion (tag);
        CREATE TRIGGER history_completed AFTER INSERT ON history WHEN NEW.tag IS NOT NULL BEGIN
            INSERT INTO completion (seq, tag) VALUES (NEW.seq, NEW.tag);
        END;
        CREATE TRIGGER history_forgotten AFTER DELETE ON history WHEN OLD.tag IS NOT NULL BEGIN
            DELETE FROM completion WHERE seq = OLD.seq;
        END;

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

        -- The unfinished requests of each user, which the transaction that adds a request compares with the quota.
        CREATE TABLE submitter (
            user INTEGER PRIMARY KEY,
            requests INTEGER NOT NULL,
            bytes INTEGER NOT NULL
        ) STRICT;
        CREATE TRIGGER request_submitted AFTER INSERT ON request WHEN NEW.submitter IS NOT NULL BEGIN
            INSERT INTO submitter VALUES (NEW.submitter, 1, NEW.size)
            ON CONFLICT (user) DO UPDATE SET requests = requests + 1, bytes = bytes + NEW.size;
        END;
        CREATE TRIGGER request_resized AFTER UPDATE OF size ON request WHEN NEW.submitter IS NOT NULL BEGIN
            UPDATE submitter SET bytes = bytes + NEW.size - OLD.size WHERE user = NEW.submitter;
        END;
        CREATE TRIGGER request_withdrawn AFTER DELETE ON request WHEN OLD.submitter IS NOT NULL BEGIN
            UPDATE submitter SET requests = requests - 1, bytes = bytes - OLD.size WHERE user = OLD.submitter;
        END;
        """
}
