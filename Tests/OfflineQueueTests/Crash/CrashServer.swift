internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import QueueTestProcess

/// The thread-safe ledger in which ``CrashServer`` and ``CrashSeries`` record events.
final class CrashRecord: Sendable {
    private let ledger = Lock(CrashLedger())

    func note(_ change: (inout CrashLedger) -> Void) {
        ledger.withLock { change(&$0) }
    }

    var current: CrashLedger { ledger.withLock { $0 } }
}

/// The server to which a ``TestProcess`` sends its requests. It records each request before it responds. Then it
/// accepts the request, at once or late, responds with an error, or closes or resets the connection.
///
/// Its choice depends only on the seed, the id of the request, and how often that id has arrived. The order of requests
/// does not influence it.
final class CrashServer: Sendable {
    private enum Behaviour {
        case kind, slow, overloaded, broken, closing, resetting
    }

    private let server: ScriptedServer

    var url: String { server.url }

    init(seed: UInt64, record: CrashRecord) throws {
        let counts = RequestCounts()
        server = try ScriptedServer { request in
            let id = String(request.target.dropFirst())
            if id.hasPrefix("ended/") {
                record.note { $0.reported(String(id.dropFirst(6)), request) }
                return .respond("")
            }
            return Self.answer(request, id, Self.behaviour(seed, id, number: counts.next(id)), record)
        }
    }

    func stop() { server.stop() }

    private static func answer(
        _ request: ScriptedServer.Request,
        _ id: String,
        _ behaviour: Behaviour,
        _ record: CrashRecord
    ) -> ScriptedServer.Action {
        let isSuccess = behaviour == .kind || behaviour == .slow
        record.note { ledger in
            ledger.arrived(
                id,
                key: request.values(of: "Idempotency-Key").first,
                isWhole: isWhole(request, id),
                isAnsweredWithSuccess: isSuccess
            )
        }
        switch behaviour {
        case .kind: return .respond("")
        case .slow:
            // Delays the response. This blocks only the thread of this connection.
            poll(nil, 0, CInt(5 + id.utf8.count))
            return .respond("")
        case .overloaded: return .respond(status: 503)
        case .broken: return .respond(status: 500)
        case .closing: return .close
        case .resetting: return .reset
        }
    }

    private static func isWhole(_ request: ScriptedServer.Request, _ id: String) -> Bool {
        guard let expected = TestProcessRequest(id: id) else { return false }
        return request.method == expected.method && request.body == expected.body
    }

    /// Returns how the server responds to an arrival of a request. From the fourth arrival on it accepts the request,
    /// so that every series ends.
    private static func behaviour(_ seed: UInt64, _ id: String, number: Int) -> Behaviour {
        guard number < 4, let request = TestProcessRequest(id: id) else { return .kind }
        let place = UInt64(request.producer) << 40 | UInt64(request.number) << 8 | UInt64(number)
        var generator = SeededGenerator(seed: seed &+ place)
        return switch Int.random(in: 0..<100, using: &generator) {
        case ..<64: .kind
        case ..<72: .slow
        case ..<80: .overloaded
        case ..<90: .broken
        case ..<96: .closing
        default: .resetting
        }
    }

    /// Counts the arrivals of each id.
    private final class RequestCounts: Sendable {
        private let counts = Lock<[String: Int]>([:])

        func next(_ id: String) -> Int {
            counts.withLock { counts in
                counts[id, default: 0] += 1
                return counts[id]!
            }
        }
    }
}
