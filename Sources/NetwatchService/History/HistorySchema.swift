internal import GRDB

/// The schema of the history's database.
enum HistorySchema {
    /// The `application_id` of a history's database, "nwhi" in ASCII.
    static let applicationID = 0x6e77_6869

    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { database in
            try database.execute(sql: "PRAGMA application_id = \(applicationID)")
            try database.execute(sql: version1)
        }
        migrator.registerMigration("2") { database in
            try database.execute(sql: version2)
        }
        migrator.registerMigration("3") { database in
            try database.execute(sql: version3)
        }
        migrator.registerMigration("4") { database in
            try database.execute(sql: version4)
        }
        migrator.registerMigration("5") { database in
            try database.execute(sql: version5)
        }
        return migrator
    }

    private static let version1 = """
        -- written_at: when the history was last written, in milliseconds since 1970.
        CREATE TABLE meta (written_at INTEGER NOT NULL) STRICT;
        INSERT INTO meta (written_at) VALUES (0);

        CREATE TABLE host (
            id INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE
        ) STRICT;

        -- tier: 0 for minutes, 1 for hours, 2 for days. start: in seconds since 1970.
        -- up, remote and local: milliseconds in each state. latencies: in the format of `LatencyHistogram.stored`.
        CREATE TABLE bucket (
            host_id INTEGER NOT NULL REFERENCES host (id) ON DELETE CASCADE,
            tier INTEGER NOT NULL,
            start INTEGER NOT NULL,
            up INTEGER NOT NULL,
            remote INTEGER NOT NULL,
            local INTEGER NOT NULL,
            probes INTEGER NOT NULL,
            failures INTEGER NOT NULL,
            latencies TEXT NOT NULL,
            PRIMARY KEY (host_id, tier, start)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX bucket_age ON bucket (tier, start);

        -- Times in milliseconds since 1970. ended_at: NULL while the outage lasts.
        CREATE TABLE outage (
            id INTEGER PRIMARY KEY,
            host_id INTEGER NOT NULL REFERENCES host (id) ON DELETE CASCADE,
            cause TEXT NOT NULL CHECK (cause IN ('local', 'remote')),
            started_at INTEGER NOT NULL,
            ended_at INTEGER,
            reason TEXT
        ) STRICT;
        CREATE INDEX outage_age ON outage (host_id, started_at);
        CREATE UNIQUE INDEX outage_open ON outage (host_id) WHERE ended_at IS NULL;
        """

    private static let version2 = """
        -- When each host was first down for each cause since it was last up, in milliseconds since 1970. For hooks,
        -- this is one outage. The state of the host may be unknown now.
        CREATE TABLE hook_outage (
            host_id INTEGER NOT NULL REFERENCES host (id) ON DELETE CASCADE,
            cause TEXT NOT NULL CHECK (cause IN ('local', 'remote')),
            started_at INTEGER NOT NULL,
            PRIMARY KEY (host_id, cause)
        ) STRICT, WITHOUT ROWID;
        INSERT INTO hook_outage SELECT host_id, cause, started_at FROM outage WHERE ended_at IS NULL;
        """

    private static let version3 = """
        -- boot_id: the kernel's id of the boot to which the times of the boot clock belong; '' if it is not known. Such
        -- times are in nanoseconds, and NULL if they were before that boot.
        ALTER TABLE meta ADD COLUMN boot_id TEXT NOT NULL DEFAULT '';
        ALTER TABLE meta ADD COLUMN written_boot INTEGER;
        -- While an outage lasts, each write sets `started_at` to the time by the wall clock as it is set then.
        ALTER TABLE outage ADD COLUMN started_boot INTEGER;
        ALTER TABLE hook_outage ADD COLUMN started_boot INTEGER;
        -- The first value of `started_at`, which identifies the outage.
        ALTER TABLE hook_outage ADD COLUMN start_id INTEGER NOT NULL DEFAULT 0;
        UPDATE hook_outage SET start_id = started_at;
        """

    private static let version4 = """
        -- clock: the time of `HistoryClock` when the row was last written. meta.boot_clock: its time when the boot of
        -- `boot_id` began. Rows from before this version count as rows of an earlier boot.
        ALTER TABLE meta ADD COLUMN clock INTEGER NOT NULL DEFAULT 1;
        ALTER TABLE meta ADD COLUMN boot_clock INTEGER NOT NULL DEFAULT 1;
        ALTER TABLE bucket ADD COLUMN clock INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE outage ADD COLUMN clock INTEGER NOT NULL DEFAULT 0;
        DROP INDEX bucket_age;
        CREATE INDEX bucket_age ON bucket (tier, clock);
        """

    private static let version5 = """
        -- The outages that each hook has reported and whose ends it has not. hook: see `Hook.keys(of:)`. The other
        -- columns are those of `hook_outage`. That table had outages until hooks had reported their ends. Now it has
        -- them until the host is up.
        CREATE TABLE hook_report (
            hook TEXT NOT NULL,
            host_id INTEGER NOT NULL REFERENCES host (id) ON DELETE CASCADE,
            cause TEXT NOT NULL CHECK (cause IN ('local', 'remote')),
            started_at INTEGER NOT NULL,
            started_boot INTEGER,
            start_id INTEGER NOT NULL,
            PRIMARY KEY (hook, host_id)
        ) STRICT, WITHOUT ROWID;
        -- The messages that the queue may not have stored. id: the id of the request.
        CREATE TABLE hook_message (
            position INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            hook TEXT NOT NULL,
            body BLOB NOT NULL
        ) STRICT;
        """
}
