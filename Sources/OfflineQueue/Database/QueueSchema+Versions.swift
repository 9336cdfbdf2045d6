// The SQL statements of the migrations to version 3 and later, the newest first.

// MARK: - Version 14

extension QueueSchema {
    static let version14 = """
        -- The submitter belongs to the key of a lane. SQLite cannot change a UNIQUE constraint, so the table is copied,
        -- as in version 8.
        DROP TRIGGER request_counted;
        DROP TRIGGER request_discounted;
        CREATE TABLE lane14 (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            scheme TEXT NOT NULL,
            host TEXT NOT NULL,
            port INTEGER NOT NULL,
            label TEXT NOT NULL,
            mode TEXT NOT NULL CHECK (mode IN ('parallel', 'fifo')),
            lane_constraints TEXT NOT NULL DEFAULT '',
            -- The user who has submitted all requests of the lane; NULL if they have no submitter.
            lane_submitter INTEGER,
            not_before INTEGER,
            is_paused INTEGER NOT NULL DEFAULT 0,
            -- Whether the pause also applies to new lanes that differ only in their submitter.
            pauses_new INTEGER NOT NULL DEFAULT 0,
            requests INTEGER NOT NULL DEFAULT 0,
            bytes INTEGER NOT NULL DEFAULT 0,
            closed_by INTEGER,
            boot_not_before INTEGER NOT NULL DEFAULT 0,
            closure INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        -- In a UNIQUE constraint, two NULLs would be different.
        CREATE UNIQUE INDEX lane_key
            ON lane14 (scheme, host, port, label, mode, lane_constraints, ifnull(lane_submitter, -1));
        -- The submitter with most requests keeps the id of a lane, so that few rows of `request` change.
        DELETE FROM sqlite_sequence WHERE name = 'lane14';
        INSERT INTO sqlite_sequence (name, seq) SELECT 'lane14', seq FROM sqlite_sequence WHERE name = 'lane';
        INSERT INTO lane14 (id, scheme, host, port, label, mode, lane_constraints, lane_submitter, not_before,
            is_paused, pauses_new, requests, bytes, closed_by, boot_not_before, closure)
        SELECT iif(row_number() OVER (PARTITION BY lane.id ORDER BY load.requests DESC, submitter) = 1, lane.id, NULL),
            scheme, host, port, label, mode, lane_constraints, submitter, not_before,
            is_paused, is_paused, ifnull(load.requests, 0), ifnull(load.bytes, 0), closed_by, boot_not_before, closure
        FROM lane LEFT JOIN (
            SELECT lane_id, submitter, count(*) AS requests, sum(size) AS bytes FROM request GROUP BY lane_id, submitter
        ) AS load ON load.lane_id = lane.id
        ORDER BY lane.id, submitter;
        UPDATE request SET lane_id = new.id FROM lane AS old JOIN lane14 AS new
            ON (new.scheme, new.host, new.port, new.label, new.mode, new.lane_constraints)
            = (old.scheme, old.host, old.port, old.label, old.mode, old.lane_constraints)
            WHERE old.id = request.lane_id AND ifnull(lane_submitter, -1) = ifnull(request.submitter, -1)
            AND new.id <> request.lane_id;
        DROP TABLE lane;
        ALTER TABLE lane14 RENAME TO lane;
        -- Finds the requests of a lane that may wait for others.
        CREATE INDEX request_waits ON request (lane_id, seq) WHERE state IN ('blocked', 'held');
        -- Finds the requests of a lane that are held because of a credential.
        CREATE INDEX request_rejected ON request (lane_id, credential) WHERE state = 'held' AND hold_reason = 'auth';
        CREATE TRIGGER request_counted AFTER INSERT ON request BEGIN
            UPDATE lane SET requests = requests + 1, bytes = bytes + NEW.size WHERE id = NEW.lane_id;
            UPDATE meta SET requests = requests + 1, bytes = bytes + NEW.size;
        END;
        CREATE TRIGGER request_discounted AFTER DELETE ON request BEGIN
            UPDATE lane SET requests = requests - 1, bytes = bytes - OLD.size WHERE id = OLD.lane_id;
            UPDATE meta SET requests = requests - 1, bytes = bytes - OLD.size;
        END;
        """
}

// MARK: - Version 13

extension QueueSchema {
    static let version13 = """
        -- The wall clock minus the boot clock when the kernel last reported the wall clock as synchronized during this
        -- boot; NULL if it did not.
        ALTER TABLE meta ADD COLUMN trusted_offset INTEGER;
        UPDATE meta SET trusted_offset = clock_offset;
        -- The time `finished_at` by the boot clock, and the number of the boot to which that clock belongs.
        ALTER TABLE history ADD COLUMN finished_boot INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE history ADD COLUMN boot_finished_at INTEGER NOT NULL DEFAULT 0;
        -- The time `not_before` by the clock of this boot, and the length of the closure in milliseconds; 0 after its
        -- end.
        ALTER TABLE lane ADD COLUMN boot_not_before INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE lane ADD COLUMN closure INTEGER NOT NULL DEFAULT 0;
        -- Earlier versions did not store the length, so their closures end at the next boot.
        UPDATE lane SET boot_not_before = not_before - (SELECT clock_offset FROM meta) WHERE not_before IS NOT NULL;
        """
}

// MARK: - Version 12

extension QueueSchema {
    static let version12 = """
        -- The SHA-256 of an inline body in hexadecimal; encrypted like `body_sha256`. It remains when the body is
        -- deleted. NULL for other bodies, and for those that earlier versions stored.
        ALTER TABLE request ADD COLUMN inline_sha256 TEXT;
        ALTER TABLE history ADD COLUMN inline_sha256 TEXT;
        """
}

// MARK: - Version 11

extension QueueSchema {
    static let version11 = """
        -- The requests of each user: the unfinished ones in their order, the finished ones by their age.
        CREATE INDEX request_submitter ON request (submitter) WHERE submitter IS NOT NULL;
        CREATE INDEX history_submitter ON history (state, submitter, finished_at);
        -- The id of the webhook that reports this end; NULL if there is none.
        ALTER TABLE history ADD COLUMN webhook_id TEXT;
        """
}

// MARK: - Version 10

extension QueueSchema {
    static let version10 = """
        -- The id of the user who enqueued the request; NULL if it was enqueued within the process.
        ALTER TABLE request ADD COLUMN submitter INTEGER;
        ALTER TABLE history ADD COLUMN submitter INTEGER;

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

// MARK: - Version 9

extension QueueSchema {
    static let version9 = """
        -- The SHA-256 of a plaintext body; NULL for those that earlier versions stored. For an encrypted body NULL, or
        -- zeros if the body was changed before it was encrypted.
        ALTER TABLE body ADD COLUMN sha256 BLOB;
        """
}

// MARK: - Version 8

extension QueueSchema {
    static let version8 = """
        -- In the format of `RequestConstraints.description`; NULL for none.
        ALTER TABLE request ADD COLUMN constraints TEXT;
        ALTER TABLE history ADD COLUMN constraints TEXT;

        -- The constraints belong to the key of a lane. SQLite cannot change a UNIQUE constraint, so the table is copied.
        -- Its triggers are those of `request`, which would prevent the renaming.
        DROP TRIGGER request_counted;
        DROP TRIGGER request_discounted;
        CREATE TABLE lane8 (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            scheme TEXT NOT NULL,
            host TEXT NOT NULL,
            port INTEGER NOT NULL,
            label TEXT NOT NULL,
            mode TEXT NOT NULL CHECK (mode IN ('parallel', 'fifo')),
            -- The same text as in `request`; empty for none.
            lane_constraints TEXT NOT NULL DEFAULT '',
            not_before INTEGER,
            is_paused INTEGER NOT NULL DEFAULT 0,
            requests INTEGER NOT NULL DEFAULT 0,
            bytes INTEGER NOT NULL DEFAULT 0,
            closed_by INTEGER,
            UNIQUE (scheme, host, port, label, mode, lane_constraints)
        ) STRICT;
        INSERT INTO lane8 (id, scheme, host, port, label, mode, not_before, is_paused, requests, bytes, closed_by)
            SELECT id, scheme, host, port, label, mode, not_before, is_paused, requests, bytes, closed_by FROM lane;
        DELETE FROM sqlite_sequence WHERE name = 'lane8';
        INSERT INTO sqlite_sequence (name, seq) SELECT 'lane8', seq FROM sqlite_sequence WHERE name = 'lane';
        DROP TABLE lane;
        ALTER TABLE lane8 RENAME TO lane;
        CREATE TRIGGER request_counted AFTER INSERT ON request BEGIN
            UPDATE lane SET requests = requests + 1, bytes = bytes + NEW.size WHERE id = NEW.lane_id;
            UPDATE meta SET requests = requests + 1, bytes = bytes + NEW.size;
        END;
        CREATE TRIGGER request_discounted AFTER DELETE ON request BEGIN
            UPDATE lane SET requests = requests - 1, bytes = bytes - OLD.size WHERE id = OLD.lane_id;
            UPDATE meta SET requests = requests - 1, bytes = bytes - OLD.size;
        END;
        """
}

// MARK: - Version 7

extension QueueSchema {
    static let version7 = """
        ALTER TABLE request ADD COLUMN tag TEXT;
        ALTER TABLE history ADD COLUMN tag TEXT;
        CREATE INDEX request_tag ON request (tag) WHERE tag IS NOT NULL;
        CREATE INDEX history_tag ON history (tag) WHERE tag IS NOT NULL;
        -- on_done: the webhook that reports the end of the request, in the format of `Webhook.stored`.
        -- webhook_of: the id of the request whose end this request reports; NULL if it is not a webhook.
        ALTER TABLE request ADD COLUMN on_done TEXT;
        ALTER TABLE history ADD COLUMN on_done TEXT;
        ALTER TABLE request ADD COLUMN webhook_of TEXT;
        ALTER TABLE history ADD COLUMN webhook_of TEXT;

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
        """
}

// MARK: - Version 6

extension QueueSchema {
    static let version6 = """
        -- The id of the key that encrypts `headers`, `key_value` and `body_sha256` of this row, and `bytes` of its body;
        -- NULL if they are plaintext. Encrypted text is Base64.
        ALTER TABLE request ADD COLUMN key_id TEXT;
        ALTER TABLE history ADD COLUMN key_id TEXT;
        -- The key that encrypts `headers` and `body` of a response; NULL if they are plaintext.
        ALTER TABLE response ADD COLUMN key_id TEXT;
        -- The key of the body's file, encrypted with the key `key_id`; NULL if the file is plaintext.
        ALTER TABLE request ADD COLUMN body_key BLOB;
        ALTER TABLE history ADD COLUMN body_key BLOB;
        CREATE INDEX request_key ON request (key_id) WHERE key_id IS NOT NULL;
        CREATE INDEX history_key ON history (key_id) WHERE key_id IS NOT NULL;
        -- The id of the key that encrypted new rows last; NULL if the store was never encrypted.
        ALTER TABLE meta ADD COLUMN key_id TEXT;
        """
}

// MARK: - Version 5

extension QueueSchema {
    static let version5 = """
        -- The name of the credential that each attempt adds; NULL for none. The credential itself is never stored.
        ALTER TABLE request ADD COLUMN credential TEXT;
        ALTER TABLE history ADD COLUMN credential TEXT;
        CREATE INDEX request_credential ON request (credential)
            WHERE credential IS NOT NULL AND state = 'held' AND hold_reason = 'auth';
        """
}

// MARK: - Version 4

extension QueueSchema {
    static let version4 = """
        -- How attempts are made, in the format of `AttemptSettings.stored`; NULL if all settings have their defaults.
        ALTER TABLE request ADD COLUMN timeouts TEXT;
        ALTER TABLE history ADD COLUMN timeouts TEXT;
        -- overruns: the number of attempts that ended with a timeout while the server may still have executed them.
        -- busy_until: when the server should be done with the last one. Not in `history`: a manual retry resets both.
        ALTER TABLE request ADD COLUMN overruns INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE request ADD COLUMN busy_until INTEGER;
        """
}

// MARK: - Version 3

extension QueueSchema {
    static let version3 = """
        -- The time of the first of consecutive 409 responses, by the wall clock. Not in `history`: a retry resets it.
        ALTER TABLE request ADD COLUMN conflict_at INTEGER;
        -- The status of the response whose `Retry-After` closed the lane until `not_before`.
        ALTER TABLE lane ADD COLUMN closed_by INTEGER;
        """
}
