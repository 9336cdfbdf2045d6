internal import ClientCore
internal import GRDB

extension RequestState {
    /// Reads the state of a row of `request`.
    init(row: Row) throws {
        let phase: Phase =
            switch row["state"] as String {
            case "inflight": .inflight(Lease(token: row["lease_token"], ownerEpoch: row["owner_epoch"]))
            case "held": .held(HoldReason(rawValue: row["hold_reason"]) ?? .ambiguous)
            default: .pending(due: Timestamp(milliseconds: row["next_at"]))
            }
        let key: String? = row["idempotency_key"]
        self.init(
            phase: phase,
            attempts: row["attempts"],
            deferrals: row["deferrals"],
            mayBeSentTwice: key != nil || HTTPMethod.isIdempotent(row["method"])
        )
    }

    /// The columns of a row of `request` that is still on its way.
    fileprivate var columns: StatementArguments {
        let (name, due, lease, reason): (String, Timestamp?, Lease?, HoldReason?) =
            switch phase {
            case .pending(let due): ("pending", due, nil, nil)
            case .inflight(let lease): ("inflight", nil, lease, nil)
            case .held(let reason): ("held", nil, nil, reason)
            case .delivered, .dead: preconditionFailure("finished requests are in the history")
            }
        return [
            "state": name, "due": due?.milliseconds, "token": lease?.token, "epoch": lease?.ownerEpoch,
            "reason": reason?.rawValue, "attempts": attempts, "deferrals": deferrals,
        ]
    }
}

extension SQLiteQueueStore {
    /// Writes a state. `fencedBy`: the lease that the row has to be under, `nil` for none.
    static func write(
        _ state: RequestState,
        ofRow sequence: Int64,
        fencedBy token: String?,
        status: Int? = nil,
        detail: String? = nil,
        _ database: Database
    ) throws {
        let update = try database.cachedStatement(
            sql: """
                UPDATE request SET state = :state, next_at = ifnull(:due, next_at), lease_token = :token,
                owner_epoch = :epoch, hold_reason = :reason, attempts = :attempts, deferrals = :deferrals,
                last_status = ifnull(:status, last_status), last_error = ifnull(:detail, last_error)
                WHERE seq = :seq AND lease_token IS :fence
                """
        )
        let place: StatementArguments = [
            "seq": sequence, "fence": token, "status": status, "detail": detail,
        ]
        try update.execute(arguments: state.columns &+ place)
        precondition(database.changesCount == 1, "a row was not under the lease it was read with")
    }
}
