import ClientCore
import Foundation
import OfflineQueue

/// A gateway that sends the readings of a sensor to a server. It loses no reading that it has reported as `queued`.
///
/// Usage: `Gateway DIRECTORY URL [SECONDS]`. Takes a reading every SECONDS, by default every second. The readings wait
/// in DIRECTORY while the server cannot be reached, even if this process is killed in the meantime. Stop it with
/// SIGTERM or Ctrl-C.
@main struct Gateway {
    private let queue: OfflineQueue
    /// Stores each reading before it is sent, so that a crash at any time loses none.
    private let readings: SessionManager
    /// Sends at once. A request is stored only if the server cannot be reached.
    private let alarms: SessionManager
    private let url: String
    private let interval: Double

    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        let interval = arguments.count == 3 ? Double(arguments.last!) : 1
        guard (2...3).contains(arguments.count), let interval, (0.01...3600).contains(interval) else {
            FileHandle.standardError.write(
                Data("usage: Gateway DIRECTORY URL [SECONDS, 0.01 to 3600]\n".utf8)
            )
            exit(64)
        }
        let gateway = try await Gateway(arguments[1], url: arguments[2], interval: interval)
        try await gateway.run()
    }

    private init(_ directory: String, url: String, interval: Double) async throws {
        self.url = url
        self.interval = interval
        var configuration = OfflineQueue.Configuration(directory: directory)
        configuration.backoffBase = .seconds(interval)
        configuration.backoffCap = .seconds(max(60, interval))
        queue = try await OfflineQueue(configuration: configuration)
        // One lane keeps the readings in order.
        readings = .background(queue: queue, options: EnqueueOptions(lane: "readings", isFIFO: true))
        alarms = SessionManager()
        alarms.queuesFailedRequests(in: queue, options: OfflineOptions(EnqueueOptions(lane: "alarms")))
        for session in [readings, alarms] { session.completionQueue = .global() }
    }

    // MARK: Running

    private func run() async throws {
        let statistics = try await queue.statistics()
        report("started with \(statistics.requests) requests of earlier runs")
        try await queue.start()
        let sampling = Task { await self.sample() }
        await Signals.termination()
        sampling.cancel()
        await sampling.value
        // Handlers of stored requests receive `leftToQueue`. The next run sends these requests.
        await queue.stop()
        report("stopped")
    }

    private func sample() async {
        while !Task.isCancelled {
            send(Reading.take())
            try? await Task.sleep(for: .seconds(interval))
        }
    }

    private func send(_ reading: Reading) {
        readings.request(url, method: .post, parameters: reading.fields, encoding: JSONEncoding.default)
            .validate()
            .onQueued { _ in report("queued \(reading.number)") }
            .response { response in finished(reading, response) }
        guard reading.isAlarming else { return }
        alarms.request(url, method: .put, parameters: reading.fields, encoding: JSONEncoding.default)
            .validate()
            .response { response in finished(reading, response) }
    }

    private func finished(_ reading: Reading, _ response: DefaultDataResponse) {
        switch response.error {
        case nil: report("delivered \(reading.number)")
        case let error as QueueError where error.code == .leftToQueue: report("left \(reading.number)")
        case let error?: report("failed \(reading.number): \(error)")
        }
    }
}

/// One value of the sensor.
struct Reading: Sendable {
    /// The time in microseconds since 1970. It rises from reading to reading unless the clock is set back.
    let number: Int64
    let celsius: Double

    var isAlarming: Bool { celsius > 80 }

    var fields: Parameters { ["number": number, "celsius": celsius] }

    /// Reads the sensor. This one makes the values up: a slow wave with an alarming crest once a minute.
    static func take() -> Reading {
        let now = Date().timeIntervalSince1970
        return Reading(number: Int64(now * 1_000_000), celsius: 60 + 21 * sin(now / 60 * 2 * .pi))
    }
}

/// The signals that end the process.
enum Signals {
    /// Waits for SIGTERM or SIGINT.
    static func termination() async {
        let (signals, continuation) = AsyncStream.makeStream(of: Void.self)
        let sources = [SIGTERM, SIGINT].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { continuation.yield() }
            source.resume()
            return source
        }
        for await _ in signals { break }
        for source in sources { source.cancel() }
    }
}

/// Prints a line at once, also into a pipe.
func report(_ line: String) {
    FileHandle.standardOutput.write(Data("\(line)\n".utf8))
}
