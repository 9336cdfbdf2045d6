internal import Foundation
internal import OfflineQueue

extension QueueRequest {
    /// A POST of 1 KiB to one of many servers, which nobody answers for (RFC 5737).
    static func forBenchmark(server: Int = 0) -> QueueRequest {
        QueueRequest(
            method: "POST",
            url: "https://192.0.2.\(server)/orders",
            headers: [Header(name: "Content-Type", value: "application/octet-stream")],
            body: body
        )
    }

    private static let body = Data((0..<1024).map { _ in UInt8.random(in: 0 ... .max) })
}

/// Finds no host, so that a queue that was started sends nothing.
struct ClosedGate: HostGate {
    func watch(host: String) -> AsyncStream<GateState> {
        AsyncStream { $0.yield(.notReachable) }
    }
}

/// Has nothing to do behind a closed gate.
struct IdleSender: AttemptSender {
    func send(_ attempt: Attempt) async -> AttemptOutcome {
        .failure(AttemptFailure(code: 7, phase: .connect, message: "not sent"))
    }

    func networkPathChanged() async {}
}
