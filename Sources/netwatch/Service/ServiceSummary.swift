internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchService
internal import OfflineQueue

/// What `netwatch status` can learn from the service in a moment.
struct ServiceSummary: Encodable, Sendable {
    /// Whether there is a service to ask.
    enum State: String, Encodable {
        case running, busy, notRunning, notPermitted, notAnswering
    }

    /// The queue, as far as it was told.
    struct Queue: Encodable {
        /// How many requests are in each state.
        var counts: [String: Int]
        /// When the oldest one that is not finished was made.
        var oldest: Date?
        /// Whether the whole queue is paused.
        var paused: Bool
        /// Lanes with requests that are closed for a time.
        var closedLanes: Int

        init(_ statistics: ControlMessage.Statistics) {
            counts = statistics.counts
            oldest = statistics.oldest
            paused = statistics.paused
            closedLanes = statistics.closedLanes.count
        }
    }

    var state: State
    var socket: String
    /// The process that listens.
    var pid: Int32?
    var queue: Queue?
    /// What its resolver knows.
    var names: ControlMessage.Names?

    /// Asks the service.
    ///
    /// - Parameters:
    ///   - path: Its socket.
    ///   - patience: How long it may be silent; a person waits for the whole of `netwatch status`.
    static func asking(_ path: String, patience: Duration) async -> ServiceSummary {
        do throws(SystemError) {
            let pid = try ServiceProcess.id(listeningAt: path)
            let client = ServiceClient(path: path, patience: patience, busyPatience: .zero)
            return await asking(client, at: path, pid: pid)
        } catch {
            return ServiceSummary(state: state(error), socket: path)
        }
    }

    private static func asking(_ client: ServiceClient, at path: String, pid: Int32) async -> ServiceSummary {
        do throws(CommandError) {
            let queue = Queue(try await client.get("/v1/queue/stats", as: ControlMessage.Statistics.self))
            // A service of an earlier version has no such route.
            let names = try? await client.get("/v1/names", as: ControlMessage.Names.self)
            return ServiceSummary(state: .running, socket: path, pid: pid, queue: queue, names: names)
        } catch {
            return ServiceSummary(state: state(error.status), socket: path, pid: pid)
        }
    }

    private static func state(_ error: SystemError) -> State {
        switch error.errno {
        case EACCES, EPERM: .notPermitted
        // More connections wait than the service accepts.
        case EAGAIN: .busy
        default: .notRunning
        }
    }

    /// - Parameter failure: How a question ended after the socket was found.
    private static func state(_ failure: ExitStatus) -> State {
        switch failure {
        case .tryAgain: .busy
        case .noPermission: .notPermitted
        case .unavailable: .notRunning
        default: .notAnswering
        }
    }

    // MARK: For people

    var words: String {
        let process = pid.map { ", pid \($0)" } ?? ""
        switch state {
        case .running: return "running" + process
        case .busy: return "busy\(process): it is running, and serves as many clients as it may"
        case .notRunning: return "not running (nothing listens at `\(socket)`)"
        case .notPermitted: return "running, but this user may not ask it (`\(socket)`)"
        case .notAnswering: return "does not answer in time\(process)"
        }
    }

    func queueWords(now: Date) -> String? {
        guard let queue else { return nil }
        let counts = QueuedRequest.State.allCases.compactMap { state in
            queue.counts[state.rawValue].flatMap { $0 > 0 ? "\($0) \(state)" : nil }
        }
        let age = queue.oldest.map { Duration.seconds(now.timeIntervalSince($0)) }
        let oldest = age.map { ["oldest \(DurationText.words($0))"] } ?? []
        let closed =
            queue.closedLanes > 0
            ? ["\(queue.closedLanes) \(queue.closedLanes == 1 ? "lane" : "lanes") closed"] : []
        let words = (counts.isEmpty ? ["empty"] : counts + oldest) + (queue.paused ? ["paused"] : []) + closed
        return words.joined(separator: ", ")
    }
}
