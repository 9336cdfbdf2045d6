internal import GRDB

/// The temporary triggers that report changed rows to an ``EventRecorder``.
enum EventTriggers {
    private static let name = "queue_event"

    /// The SQL function that the triggers call. Its arguments are those of ``RowChange/init(_:)``.
    static func function(_ record: @escaping @Sendable (RowChange) -> Void) -> DatabaseFunction {
        DatabaseFunction(name) { values in
            record(RowChange(values))
            return nil
        }
    }

    static let create = triggers.map { name, event, values in
        "CREATE TEMP TRIGGER \(name) AFTER \(event) BEGIN SELECT \(Self.name)(\(values)); END;"
    }.joined(separator: "\n")

    static let drop = triggers.map { "DROP TRIGGER temp.\($0.name);" }.joined(separator: "\n")

    private static let triggers: [(name: String, event: String, values: String)] = [
        (
            "event_stored", "INSERT ON main.request",
            values("request", "(SELECT state FROM main.history WHERE seq = NEW.seq)", "NEW.state", new)
        ),
        (
            "event_changed",
            """
            UPDATE OF state, hold_reason, next_at, attempts, deferrals, last_error ON main.request
            WHEN (OLD.state, OLD.hold_reason, OLD.last_error) IS NOT (NEW.state, NEW.hold_reason, NEW.last_error)
            OR (NEW.state = 'pending'
                AND (OLD.next_at, OLD.attempts, OLD.deferrals) <> (NEW.next_at, NEW.attempts, NEW.deferrals))
            """,
            values("request", "OLD.state", "NEW.state", new)
                + """
                , (OLD.state, OLD.hold_reason) IS (NEW.state, NEW.hold_reason)
                AND (OLD.next_at, OLD.attempts, OLD.deferrals) = (NEW.next_at, NEW.attempts, NEW.deferrals)
                """
        ),
        (
            "event_credential",
            "UPDATE OF credential ON main.request WHEN OLD.credential IS NOT NEW.credential",
            values("credential", "NEW.state", "NEW.state", new)
        ),
        (
            "event_finished", "INSERT ON main.history",
            values("request", "(SELECT state FROM main.request WHERE seq = NEW.seq)", "NEW.state", finished)
        ),
        (
            "event_dropped", "UPDATE OF state ON main.history",
            values("request", "OLD.state", "NEW.state", finished)
        ),
        // A retry also deletes a row of the history, after it has restored the request.
        (
            "event_removed",
            "DELETE ON main.history WHEN NOT EXISTS (SELECT 1 FROM main.request WHERE seq = OLD.seq)",
            "'request', OLD.host, OLD.label, OLD.id, OLD.state, NULL, NULL, NULL, NULL, NULL, NULL, OLD.tag, OLD.submitter"
        ),
        (
            // A step of the wall clock changes the date `not_before`, but not the closure.
            "event_closed",
            """
            UPDATE OF not_before ON main.lane
            WHEN (OLD.not_before IS NULL, OLD.boot_not_before) IS NOT (NEW.not_before IS NULL, NEW.boot_not_before)
            """,
            "'closure', NEW.host, NEW.label, NEW.not_before, NEW.closed_by, NEW.lane_submitter"
        ),
        (
            "event_paused", "UPDATE OF is_paused ON main.lane WHEN OLD.is_paused <> NEW.is_paused",
            "'pause', NEW.host, NEW.label, NEW.is_paused, NULL, NEW.lane_submitter"
        ),
        (
            "event_queue_paused", "UPDATE OF is_paused ON main.meta WHEN OLD.is_paused <> NEW.is_paused",
            "'pause', NULL, NULL, NEW.is_paused"
        ),
    ]

    private static let lane = """
        (SELECT host FROM main.lane WHERE id = NEW.lane_id), (SELECT label FROM main.lane WHERE id = NEW.lane_id)
        """
    private static let new = (
        lane: lane, rest: "NEW.hold_reason, iif(NEW.state = 'pending', NEW.next_at, NULL)"
    )
    private static let finished = (lane: "NEW.host, NEW.label", rest: "NULL, NULL")

    private static func values(
        _ table: String,
        _ old: String,
        _ state: String,
        _ source: (lane: String, rest: String)
    ) -> String {
        """
        '\(table)', \(source.lane), NEW.id, \(old), \(state), \(source.rest), NEW.attempts, NEW.last_status, NEW.last_error,
        NEW.tag, NEW.submitter, NEW.created_at
        """
    }
}
