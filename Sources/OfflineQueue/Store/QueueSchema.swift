internal import GRDB

/// The tables. Each index is ordered exactly as the statement that reads it, so that a claim costs the same
/// in an empty queue and in a full one.
enum QueueSchema {
    /// "nwqu". Tells `file(1)` and us whose database it is.
    static let applicationID = 0x6e77_7175

    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { database in
            try database.execute(sql: version1)
            try database.execute(sql: "PRAGMA application_id = \(applicationID); PRAGMA user_version = 1;")
        }
        return migrator
    }

    private static let version1 = """
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
