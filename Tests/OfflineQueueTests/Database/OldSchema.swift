/// The SQL statements that turn a store into one of an earlier version.
enum OldSchema {
    /// No lane may differ from another one only in its submitter.
    static let withoutVersion14 = """
        DROP INDEX lane_key; DROP INDEX request_waits; DROP INDEX request_rejected;
        ALTER TABLE lane DROP COLUMN lane_submitter; ALTER TABLE lane DROP COLUMN pauses_new;
        DELETE FROM grdb_migrations WHERE identifier = '14'; PRAGMA user_version = 13;
        """

    static let withoutVersion13 = """
        ALTER TABLE meta DROP COLUMN trusted_offset;
        ALTER TABLE history DROP COLUMN finished_boot; ALTER TABLE history DROP COLUMN boot_finished_at;
        ALTER TABLE lane DROP COLUMN boot_not_before; ALTER TABLE lane DROP COLUMN closure;
        DELETE FROM grdb_migrations WHERE identifier = '13'; PRAGMA user_version = 12;
        """

    static let withoutVersion12 = """
        ALTER TABLE request DROP COLUMN inline_sha256; ALTER TABLE history DROP COLUMN inline_sha256;
        DELETE FROM grdb_migrations WHERE identifier = '12'; PRAGMA user_version = 11;
        """
}
